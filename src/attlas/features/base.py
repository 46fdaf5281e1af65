"""What the estimators share: sequences of either shape, targets, penalties and random states, checked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from attlas.errors import InputError
from attlas.features.ridge import GRID
from attlas.features.sequences import sequences
from attlas.inputs import integer

Array = NDArray[Any]


class OnSequences(BaseEstimator):
    """An estimator on sequences, X of shape (n, 1 + keys, d) or (n, numbers)."""

    token_dim: int | None
    token_dim_: int

    def _sequences(self, X: Any, reset: bool) -> Array:
        """Return X as (n, 1 + keys, d). A 2-D row is one token, query and only key, or `token_dim`-long tokens."""
        try:
            given = X if hasattr(X, "shape") else np.asarray(X)
        except ValueError as error:
            raise InputError(
                "X must be an array (n, 1 + keys, d): sequences of different length are padded with rows of NaN"
            ) from error
        if getattr(given, "ndim", 2) > 3:
            raise InputError(f"X must have shape (n, 1 + keys, d), or (n, numbers); got {given.shape}")
        if getattr(given, "ndim", 2) == 3 and self.token_dim not in (None, given.shape[2]):
            raise InputError(f"X has tokens of dimension {given.shape[2]}, token_dim says {self.token_dim!r}")
        if getattr(given, "ndim", 2) == 3:
            checked = sequences(given, d=None if reset else self.token_dim_)
            if reset:
                self.n_features_in_ = checked.shape[2]
        else:
            finite = "allow-nan" if self.token_dim is not None else True
            flat = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite)
            d = flat.shape[1] if self.token_dim is None else integer(self.token_dim, "token_dim")
            if flat.shape[1] % d:
                raise InputError(f"X has rows of {flat.shape[1]} numbers, which token_dim = {d} does not divide")
            shaped = flat.reshape(len(flat), -1, d)
            checked = sequences(np.repeat(shaped, 2, axis=1) if self.token_dim is None else shaped)
        if reset:
            self.token_dim_ = checked.shape[2]
        return np.asarray(checked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = True
        tags.input_tags.allow_nan = self.token_dim is not None
        return tags


def seed_of(random_state: Any) -> np.random.Generator:
    """Return a generator for scikit-learn's kinds of random state, or the generator given."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(0, 2**31 - 1, size=4))


def regression_targets(y: Any, n: int, model: str) -> Array:
    """Return y as finite floats of shape (n,) or (n, targets)."""
    if y is None:
        raise InputError(f"{model} requires y to be passed, but the target y is None")
    try:
        checked = np.asarray(y)
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
        grid = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be positive and finite; got {given!r}") from error
    if isinstance(given, bool) or grid.ndim != 1 or not len(grid) or not np.all(np.isfinite(grid) & (grid > 0)):
        raise InputError(f"{name} must be positive and finite; got {given!r}")
    if name == "alpha" and np.ndim(given):
        raise InputError(f"alpha must be one number or 'loo'; got {given!r}; a grid is given as alphas")
    return grid
