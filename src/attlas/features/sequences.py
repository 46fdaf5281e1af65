"""What the estimators accept as sequences: a query, its keys, and rows of NaN where a key is missing."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError

Array = NDArray[np.float64]


def sequences(X: Any, name: str = "X", d: int | None = None) -> Array:
    """Return X as an array (n, 1 + keys, d) whose missing keys are whole rows of NaN, or raise `InputError`."""
    try:
        given = np.ma.filled(X.astype(float), np.nan) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        if given.dtype.kind == "c":
            raise InputError(f"{name} must be real numbers; got complex ones")
        checked: Array = given.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{name} must be an array of numbers of shape (n, 1 + keys, d); shorter sequences are padded with rows of NaN"
        ) from error
    if checked.ndim != 3:
        raise InputError(f"{name} must have shape (n, 1 + keys, d), token 0 the query; got {checked.shape}")
    if not len(checked) or not checked.shape[2]:
        raise InputError(f"{name} is empty: shape {checked.shape}")
    if checked.shape[1] < 2:
        raise InputError(f"{name} has the query token only; attention needs at least one key")
    if d is not None and checked.shape[2] != d:
        raise InputError(f"{name} has tokens of dimension {checked.shape[2]}, the model was made for {d}")
    if np.isinf(checked).any():
        raise InputError(f"{name} has infinite entries")
    missing = np.asarray(np.isnan(checked))
    if missing.any():
        whole = np.asarray(missing.all(2))
        if not np.array_equal(whole, np.asarray(missing.any(2))):
            raise InputError(f"{name} has tokens that are NaN in part; a missing key is NaN in all of its entries")
        if whole[:, 0].any():
            raise InputError(
                f"{name} has a missing query (NaN in token 0) at row {int(np.flatnonzero(whole[:, 0])[0])}"
            )
        if whole[:, 1:].all(1).any():
            raise InputError(f"{name} has no key left at row {int(np.flatnonzero(whole[:, 1:].all(1))[0])}")
    return checked


def bias_matrix(bias: float | ArrayLike, d: int) -> Array:
    """Return W_0 of shape (d + 1, d + 1): b [[I, 0], [0, 0]] for a strength b, or the matrix given."""
    try:
        given = np.asarray(bias)
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
