"""What the estimators share: sequences and sets of any shape, targets, penalties and random states, checked."""

from collections.abc import Callable, Iterator, Mapping, Set
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from attlas.errors import InputError
from attlas.features.ridge import GRID
from attlas.features.sequences import sequences
from attlas.features.sets import Sets, items_of
from attlas.inputs import HUGEST, TINIEST, described, integer, plain

Array = NDArray[Any]
Method = TypeVar("Method", bound=Callable[..., Any])


def whole_or_not_at_all(method: Method) -> Method:
    """Let a fit that fails, for data that are refused or on Ctrl-C, leave the model as it was."""

    @wraps(method)
    def tried(self: Any, *data: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *data, **options)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return tried  # type: ignore[return-value]


class OnSequences(BaseEstimator):
    """An estimator on sequences or sets: X of shape (n, tokens, d), a list of arrays (k_i, d), or rows of numbers."""

    token_dim: int | None
    token_dim_: int
    _on_sets: bool  # whether it was fitted on sets, not on rows of numbers

    def _sequences(self, X: Any, reset: bool) -> Any:
        """Return X as an array (n, tokens, d), rows of NaN where tokens are missing, or as `Sets` of different sizes.

        A 2-D row is one token, query and only key, or `token_dim`-long tokens. float32 stays float32.
        """
        if hasattr(X, "nnz"):
            raise InputError("X is sparse; sets of tokens are dense: give X.toarray()")
        if self.token_dim is not None:
            integer(self.token_dim, "token_dim")
        least = self._least
        X = list(X) if isinstance(X, Iterator) else X
        items = None if isinstance(X, Sets) else items_of(X)
        if isinstance(X, Sets) or items is not None:
            checked = self._of_sets(X if isinstance(X, Sets) else Sets.joined(items), least)
        elif getattr(X, "ndim", 2) == 3:
            checked = sequences(X, least=least, keep=True)
        else:
            return self._rows(X, reset, least)
        d = checked.shape[2]
        if self.token_dim not in (None, d):
            raise InputError(f"X has tokens of dimension {d}, token_dim says {self.token_dim!r}")
        if not reset and d != self.token_dim_:
            raise InputError(f"X has tokens of dimension {d}, the model was made for {self.token_dim_}")
        if reset:
            self.n_features_in_ = self.token_dim_ = d
            self._on_sets = True
        return checked

    def _of_sets(self, found: Sets, least: int) -> Any:
        """Return sets checked, as an array where all are of one size, or where places matter and a token is missing."""
        if np.any(getattr(self, "positions", 0.0)) and np.isnan(found.tokens).any():
            return sequences(found.padded(), least=least, keep=True)
        found = found.checked(least=least)
        even = found.dense()
        return found if even is None else even

    @property
    def _least(self) -> int:
        """Tokens that a sequence needs: a query and a key, or one token."""
        return 2 if query_of(self) == "first" else 1

    def _rows(self, X: Any, reset: bool, least: int) -> Array:
        """Return 2-D X as (n, tokens, d)."""
        if getattr(X, "ndim", 2) > 3:
            raise InputError(f"X must have shape (n, 1 + keys, d), or (n, numbers); got {X.shape}")
        if isinstance(X, np.ma.MaskedArray):
            if self.token_dim is None and np.ma.getmaskarray(X).any():
                raise InputError("X is masked; with rows that are one token nothing can be missing: fill it (.filled)")
            X = _unmasked(X)
        else:
            X = _even(X)
        if not reset and self.token_dim is None and getattr(self, "_on_sets", False):
            raise InputError(
                "X has two axes, and the model was fitted on sets; give a list of sets, [X] for one, or an array"
                " (n, tokens, d)"
            )
        finite = "allow-nan" if self.token_dim is not None else True
        try:
            flat = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=finite)
        except (ValueError, OverflowError) as error:
            if isinstance(error, ValueError) and "could not convert" not in str(error):
                raise InputError(" ".join(str(error).split())) from error
            raise InputError(f"X must be numbers, encode anything else first; {error}") from error
        d = flat.shape[1] if self.token_dim is None else int(self.token_dim)
        if flat.shape[1] % d:
            raise InputError(f"X has rows of {flat.shape[1]} numbers, which token_dim = {d} does not divide")
        shaped = flat.reshape(len(flat), -1, d)
        if self.token_dim is None and least > 1:
            shaped = np.repeat(shaped, 2, axis=1)
        if reset:
            self.token_dim_, self._on_sets = d, False
        return sequences(shaped, least=least, keep=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = True
        tags.input_tags.allow_nan = self.token_dim is not None
        return tags


def query_of(model: Any) -> str | None:
    """Return which token asks, as the estimator says: "first", "mean", or None for every token in turn."""
    query = getattr(model, "query", "first")
    if query is not None and not (isinstance(query, str) and query in ("first", "mean")):
        raise InputError(f"query must be 'first', 'mean', or None for every token in turn; got {described(query)}")
    return query


def _unmasked(X: Any) -> Array:
    """Return a masked array with NaN where it is masked, float32 if it is; as it is if nothing is masked."""
    gone = np.ma.getmaskarray(X)
    if not gone.any():
        return np.asarray(X.data)
    if X.dtype.kind not in "iufbO":
        raise InputError(f"X must be numbers, encode anything else first; got dtype {X.dtype}")
    held = np.array(X.data, dtype=X.dtype if X.dtype.kind in "fO" else float)
    held[gone] = np.nan
    try:
        return held.astype(np.float32 if X.dtype == np.float32 else float, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"X must be numbers, encode anything else first; {error}") from error


SETS = "give a list of arrays (tokens, d), one to a set, or an array (n, tokens, d)"


def _even(X: Any) -> Any:
    """Return rows of numbers, if X can be that, lists as an array; else a sentence that says what it is."""
    if X is None or isinstance(X, Mapping | Set):
        raise InputError(f"X is {described(X)}; {SETS}")
    if hasattr(X, "iloc"):
        _require_cells(X)
    if len(getattr(X, "shape", ())) == 2:
        return X
    try:
        found = plain(X, "X", "an array (n, numbers)")
    except InputError as error:
        if "unequal length" not in str(error):
            raise
        raise InputError(f"X has rows of unequal length; {SETS}") from error
    if found.ndim < 2 and not found.size:
        raise InputError(f"X has no sets or rows; {SETS}")
    if found.ndim < 2 and found.dtype.kind in "USO":
        raise InputError(f"X must be numbers, encode anything else first; got {described(X)}; {SETS}")
    if found.ndim < 2:
        raise InputError(
            f"X has {('no axis', 'one axis')[found.ndim]}, {described(X)}; {SETS}, or rows (n, numbers). Reshape your data:"
            " X[:, None] for one number to a sample, X[None] for one sample"
        )
    return found


def _require_cells(X: Any) -> None:
    """Check that the cells of a table are no arrays."""
    for name in getattr(X, "columns", ()):
        column = X[name]
        if getattr(getattr(column, "dtype", None), "kind", "") == "O" and len(column) and np.ndim(column.iloc[0]):
            raise InputError(f"X is a table whose column {described(name)} holds sets; give the column, X[{name!r}]")


def seed_of(random_state: Any) -> np.random.Generator:
    """Return a generator for scikit-learn's kinds of random state, or the generator given."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        state = check_random_state(random_state)
    except ValueError as error:
        raise InputError(
            "random_state must be an integer from 0 to 2^32 - 1, None, a numpy Generator or RandomState;"
            f" got {described(random_state)}"
        ) from error
    return np.random.default_rng(state.randint(0, 2**31 - 1, size=4))


def regression_targets(y: Any, n: int, model: str) -> Array:
    """Return y as finite floats of shape (n,) or (n, targets)."""
    if y is None:
        raise InputError(f"{model} requires y to be passed, but the target y is None")
    try:
        checked = plain(y, "y", "numbers of shape (n,) or (n, targets)")
        if checked.dtype.kind == "c":
            raise InputError("y must be real numbers; got complex ones")
        checked = checked.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("y must be numbers of shape (n,) or (n, targets)") from error
    if checked.ndim not in (1, 2) or len(checked) != n or 0 in checked.shape[1:]:
        raise InputError(f"y must have shape (n,) or (n, targets) with n = {n}; got {checked.shape}")
    if not np.isfinite(checked).all():
        raise InputError("y has entries that are not finite (NaN or infinite)")
    if np.abs(checked).max(initial=0) > 1e100:
        raise InputError("y has entries beyond 1e100, whose squares overflow; scale it down")
    return checked


def spread_of(y: Array) -> float:
    """Return the standard deviation of y; of a constant, whose deviation is rounding, its size instead, or 1."""
    size = float(np.abs(y).max(initial=0))
    deviation = float(y.std())
    return deviation if deviation > 1e-12 * size else (size or 1.0)


def penalties_of(alpha: Any, alphas: Any) -> Array:
    """Return the relative penalties to be tried: one for a number, a grid for "loo"."""
    name, given = ("alpha", alpha)
    if isinstance(alpha, str):
        if alpha != "loo":
            raise InputError(f"alpha must be a positive number or 'loo'; got {alpha!r}")
        name, given = ("alphas", GRID if alphas is None else alphas)
    try:
        read = plain(given, name, "positive and finite")
        grid = np.full(1, np.nan) if read.dtype.kind in "bc" else np.atleast_1d(read.astype(float))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be positive and finite; got {given!r}") from error
    if grid.ndim != 1 or not len(grid) or not np.all(np.isfinite(grid) & (grid > 0)):
        raise InputError(f"{name} must be positive and finite; got {given!r}")
    if grid.min() < TINIEST or grid.max() > HUGEST:
        raise InputError(f"{name} must lie between {TINIEST:g} and {HUGEST:g}; got {given!r}")
    if name == "alpha" and np.ndim(given):
        raise InputError(f"alpha must be one number or 'loo'; got {given!r}; a grid is given as alphas")
    return grid
