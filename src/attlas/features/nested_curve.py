"""The learning curve nested in one Cholesky factor: every sample size, target and penalty at once."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.ridge import factor
from attlas.features.weighted_targets import with_constant
from attlas.numerics import Event, Progress

Array = NDArray[np.float64]


class Curve(NamedTuple):
    """Errors over (penalty, size, target), all mean squares.

    Attributes
    ----------
    sizes, penalties : arrays
    test : array
        On the test set.
    loo : array
        Leave-one-out within the first `size` samples.
    forecast : array
        Of predicting each of the last fifth of the first `size` samples from those before it: no test set is needed.
    """

    sizes: NDArray[np.intp]
    penalties: Array
    test: Array
    loo: Array
    forecast: Array

    def chosen(self) -> Array:
        """Return the test errors (size, target) at the penalty that leave-one-out chooses for each."""
        return np.asarray(np.take_along_axis(self.test, self.loo.argmin(0)[None], axis=0)[0])


def nested_curve(
    K: Array,
    Y: Array,
    K_test: Array,
    Y_test: Array,
    sizes: NDArray[np.intp],
    penalties: Array,
    intercept: bool = False,
    progress: Progress | None = None,
) -> Curve:
    """Return the learning curve of every size, target and penalty, from one factorisation per penalty.

    The factor of the leading n x n block of K + lam is the leading block of L, and so is its inverse. With z = L^-1 y the
    coefficients of the first n samples are L_n^-T z_n; L_jj z_j is the error of forecasting y_j from the samples before it;
    and ((K_n + lam)^-1)_ii = sum_{k <= n} (L^-1)_ki^2.

    Parameters
    ----------
    K : array of shape (n, n)
    Y : array of shape (n, targets)
    K_test : array of shape (n_test, n)
    Y_test : array of shape (n_test, targets)
    sizes : increasing integers
    penalties : array
        Absolute. One too small for the rounding of K has infinite errors.
    intercept : bool
        Centre the targets by the mean of the samples learned from.
    progress : callable, optional
        Called with an `Event` after every penalty.
    """
    if sizes[-1] > len(Y):
        raise InputError(f"the largest size, {sizes[-1]}, exceeds the {len(Y)} samples")
    errors = np.full((3, len(penalties), len(sizes), Y.shape[1]), np.inf)  # test, leave-one-out, forecast
    for row, penalty in enumerate(penalties):
        with suppress(InputError):  # of a penalty that is too small; its errors stay infinite
            errors[:, row] = _errors(factor(K, penalty), Y, K_test, Y_test, sizes, intercept)
        if progress is not None:
            progress(Event(row + 1, len(penalties), f"learning curve: {row + 1} of {len(penalties)} penalties"))
    if np.isinf(errors[1]).all():
        raise InputError("the kernel matrix is not positive definite at any of the penalties; give larger alphas")
    return Curve(sizes, np.asarray(penalties), *errors)


def _errors(L: Array, Y: Array, K_test: Array, Y_test: Array, sizes: NDArray[np.intp], intercept: bool) -> Array:
    """Return test, leave-one-out and forecast errors, (3, sizes, targets), from the factor of one penalty."""
    from scipy.linalg import lapack, solve_triangular

    z = solve_triangular(L, with_constant(Y, intercept), lower=True, check_finite=False)
    # the mean of the samples before each: what a forecast may know (before the first, nothing)
    before = (
        np.concatenate([np.zeros((1, Y.shape[1])), np.cumsum(Y, 0)[:-1]]) / np.maximum(np.arange(len(Y)), 1)[:, None]
    )
    missed = np.diagonal(L)[:, None] * z
    missed = (missed[:, :-1] - before * missed[:, -1:] if intercept else missed) ** 2
    inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
    found = np.empty((3, len(sizes), Y.shape[1]))
    for column, n in enumerate(sizes):
        leading = inverse[:n, :n]
        coefficients = leading.T @ z[:n]
        prediction = K_test[:, :n] @ coefficients
        mean = Y[:n].mean(0)
        predicted = prediction[:, :-1] + mean * (1 - prediction[:, -1:]) if intercept else prediction
        diagonal = np.einsum("ki,ki->i", leading, leading)
        each = _left_out(coefficients / diagonal[:, None], Y[:n], intercept)
        found[0, column] = np.mean((predicted - Y_test) ** 2, axis=0)
        found[1, column] = np.mean(each**2, axis=0)
        found[2, column] = missed[n - max(n // 5, 1) : n].mean(0)
    return found


def _left_out(errors: Array, Y: Array, intercept: bool) -> Array:
    """Return the leave-one-out errors (n, targets), given those of targets (and of a column of ones) that were not centred.

    With an intercept the fit is one to y - mean(y). Without sample i the mean is m_i = (sum y - y_i)/(n - 1), and a shift of
    all targets by m_i moves the error by -m_i times that of the constant.
    """
    if not intercept:
        return errors
    means = (Y.sum(0) - Y) / (len(Y) - 1)
    return np.asarray(errors[:, :-1] - means * errors[:, -1:])
