"""What the estimators accept as sequences: a query, its keys, and rows of NaN where a key is missing."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import plain

Array = NDArray[Any]


def sequences(X: Any, name: str = "X", d: int | None = None, *, least: int = 2, keep: bool = False) -> Array:
    """Return X as an array (n, tokens, d) whose missing tokens are whole rows of NaN, or raise `InputError`.

    Parameters
    ----------
    X : array_like of shape (n, tokens, d)
        Masked tokens become NaN.
    name : str
        What the caller calls it; used in messages.
    d : int, optional
        What the dimension of tokens must be.
    least : {1, 2}
        Tokens that a sequence needs: with 2, token 0 is the query and must be there, with a key beside it.
    keep : bool
        Leave float32 as it is; else everything becomes float64.
    """
    checked = _numbers(X, name, keep)
    tokens = "1 + keys" if least > 1 else "tokens"
    if checked.ndim != 3:
        role = ", token 0 the query" if least > 1 else ""
        raise InputError(f"{name} must have shape (n, {tokens}, d){role}; got {checked.shape}")
    if not len(checked) or not checked.shape[2] or not checked.shape[1]:
        raise InputError(f"{name} is empty: shape {checked.shape}")
    if checked.shape[1] < least:
        raise InputError(f"{name} has the query token only; attention needs at least one key")
    if d is not None and checked.shape[2] != d:
        raise InputError(f"{name} has tokens of dimension {checked.shape[2]}, the model was made for {d}")
    if np.isinf(checked).any():
        raise InputError(f"{name} has infinite entries")
    missing = np.asarray(np.isnan(checked))
    if missing.any():
        _check_missing(missing, name, least)
    return checked


def _numbers(X: Any, name: str, keep: bool) -> Array:
    try:
        mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
        given = plain(X if mask is None else X.data, name, "an array of numbers")
        if given.dtype.kind == "c":
            raise InputError(f"{name} must be real numbers; got complex ones")
        if not (keep and given.dtype == np.float32):
            given = given.astype(float, copy=False)
        if mask is None or not mask.any():
            return given
        if mask.ndim == 3 and not np.array_equal(mask.any(2), mask.all(2)):
            raise InputError(
                f"{name} has tokens that are masked in part; mask all entries of a token, or fill them (.filled)"
            )
        return np.where(mask, given.dtype.type(np.nan), given)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError) and "unequal length" not in str(error):
            raise
        raise InputError(
            f"{name} must be an array of numbers of shape (n, 1 + keys, d); shorter sequences are padded with rows of NaN"
        ) from error


def _check_missing(missing: Array, name: str, least: int) -> None:
    whole: NDArray[np.bool_] = np.asarray(missing.all(2))
    if not np.array_equal(whole, missing.any(2)):
        raise InputError(f"{name} has tokens that are NaN in part; a missing key is NaN in all of its entries")
    if np.any(gone := np.asarray(whole.all(1))):
        raise InputError(f"{name} has no token left at row {int(np.flatnonzero(gone)[0])}")
    if least > 1 and whole[:, 0].any():
        raise InputError(f"{name} has a missing query (NaN in token 0) at row {int(np.flatnonzero(whole[:, 0])[0])}")
    if least > 1 and np.any(gone := np.asarray(whole[:, 1:].all(1))):
        raise InputError(f"{name} has no key left at row {int(np.flatnonzero(gone)[0])}")


def bias_matrix(bias: float | ArrayLike, d: int) -> Array:
    """Return W_0 of shape (d + 1, d + 1): b [[I, 0], [0, 0]] for a strength b, or the matrix given."""
    try:
        given = plain(bias, "bias", "a number or a matrix")
        given = given.astype(float) if given.dtype.kind in "iuf" else np.full((), np.nan)
    except (TypeError, ValueError):
        given = np.full((), np.nan)
    if given.shape not in ((), (d, d), (d + 1, d + 1)) or not np.isfinite(given).all():
        raise InputError(f"bias must be a finite number, or a finite matrix of shape ({d}, {d}) or ({d + 1}, {d + 1})")
    W0 = np.zeros((d + 1, d + 1))
    if given.shape == (d + 1, d + 1):
        W0[:] = given
    else:
        W0[:d, :d] = given * np.eye(d) if given.ndim == 0 else given
    return W0
