"""Ridge regression along a path of penalties, with leave-one-out errors; and the learning curve nested in one factor.

min_v ||y - Phi v||^2 + lam ||v||^2, lam absolute. In the dual K = Phi Phi^T, prediction = k(x)^T (K + lam)^-1 y.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError

Array = NDArray[np.float64]

GRID = tuple(10.0**k for k in range(-6, 4))  # relative to tr(K)/n; targets that cannot be learned want 10 to 100


class Path(NamedTuple):
    """Penalties and what leave-one-out says of each: `errors` is (penalties, targets)."""

    penalties: Array
    errors: Array

    @property
    def best(self) -> int:
        """The penalty of the smallest error, averaged over targets in units of their smallest."""
        finite = np.isfinite(self.errors[:, 0])
        floor = np.maximum(self.errors[finite].min(0), np.finfo(float).tiny)
        return int(np.flatnonzero(finite)[np.argmin((self.errors[finite] / floor).mean(1))])


def dual_path(K: Array, Y: Array, penalties: Array) -> Path:
    """Return the leave-one-out errors of all penalties, by one Cholesky factorisation each.

    Left out, sample i is missed by ((K + lam)^-1 y)_i / ((K + lam)^-1)_ii. A penalty too small for the rounding of K has an
    infinite error.
    """
    from scipy.linalg import lapack

    errors = np.full((len(penalties), Y.shape[1]), np.inf)
    for row, penalty in enumerate(penalties):
        try:
            L = factor(K, penalty)
        except InputError:
            continue
        coefficients = solve(L, Y)
        inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        diagonal = np.einsum("ki,ki->i", inverse, inverse)
        errors[row] = np.mean((coefficients / diagonal[:, None]) ** 2, axis=0)
    if np.isinf(errors).all():
        raise InputError("the kernel matrix is not positive definite at any of the penalties; give larger alphas")
    return Path(np.asarray(penalties), errors)


def factor(K: Array, penalty: float) -> Array:
    """Return the lower Cholesky factor of K + penalty I, in a fresh Fortran-ordered array that LAPACK works on in place."""
    from scipy.linalg import lapack

    A = np.array(K, dtype=float, order="F")
    A.flat[:: len(A) + 1] += penalty
    L, info = lapack.dpotrf(A, lower=1, overwrite_a=1, clean=1)
    if info:
        raise InputError(f"the kernel matrix is not positive definite at penalty {penalty:.3g}; raise alpha")
    return np.asarray(L)


def solve(L: Array, Y: Array) -> Array:
    """Return (L L^T)^-1 Y."""
    from scipy.linalg import lapack

    return np.asarray(lapack.dpotrs(L, np.asfortranarray(Y), lower=1)[0])


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


def nested_curve(K: Array, Y: Array, K_test: Array, Y_test: Array, sizes: NDArray[np.intp], penalties: Array) -> Curve:
    """Return the learning curve of every size, target and penalty, from one factorisation per penalty.

    The factor of the leading n x n block of K + lam is the leading block of L. With z = L^-1 y and V = L^-1 K_test^T the
    prediction from the first n samples is the running sum V[:n]^T z[:n]; L_jj z_j is the error of forecasting y_j from the
    samples before it; and ((K_n + lam)^-1)_ii = sum_{k <= n} (L^-1)_ki^2.

    Parameters
    ----------
    K : array of shape (n, n)
    Y : array of shape (n, targets)
    K_test : array of shape (n_test, n)
    Y_test : array of shape (n_test, targets)
    sizes : increasing integers
    penalties : array
        Absolute.
    """
    from scipy.linalg import lapack, solve_triangular

    shape = (len(penalties), len(sizes), Y.shape[1])
    test, loo, forecast = np.empty(shape), np.empty(shape), np.empty(shape)
    for row, penalty in enumerate(penalties):
        L = factor(K, penalty)
        z = solve_triangular(L, Y, lower=True, check_finite=False)
        V = solve_triangular(L, K_test.T, lower=True, check_finite=False)
        missed = (np.diagonal(L)[:, None] * z) ** 2
        inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        prediction, start = np.zeros_like(Y_test), 0
        for column, n in enumerate(sizes):
            prediction += V[start:n].T @ z[start:n]
            test[row, column] = np.mean((prediction - Y_test) ** 2, axis=0)
            leading = inverse[:n, :n]
            diagonal = np.einsum("ki,ki->i", leading, leading)
            loo[row, column] = np.mean((leading.T @ z[:n] / diagonal[:, None]) ** 2, axis=0)
            forecast[row, column] = missed[n - max(n // 5, 1) : n].mean(0)
            start = n
    return Curve(sizes, np.asarray(penalties), test, loo, forecast)
