"""Ridge regression along a path of penalties, with leave-one-out errors.

min_v ||y - Phi v||^2 + lam ||v||^2, lam absolute. In the dual K = Phi Phi^T, prediction = k(x)^T (K + lam)^-1 y; in the
primal G = Phi^T Phi, v = (G + lam)^-1 Phi^T y. Where neither matrix fits into memory, there is `conjugate_gradients`.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError

Array = NDArray[np.float64]

GRID = tuple(10.0**k for k in range(-6, 4))  # relative to tr(K)/n; targets that cannot be learned want 10 to 100


class Path(NamedTuple):
    """Penalties and their leave-one-out errors, (penalties, targets)."""

    penalties: Array
    errors: Array

    @property
    def best(self) -> int:
        """The penalty of the smallest error, averaged over targets in units of their smallest."""
        finite = np.isfinite(self.errors).all(1)
        floor = np.maximum(self.errors[finite].min(0), np.finfo(float).tiny)
        return int(np.flatnonzero(finite)[np.argmin((self.errors[finite] / floor).mean(1))])


def with_constant(Y: Array, intercept: bool) -> Array:
    """Return Y, with a column of ones appended if there is an intercept: everything below is linear in the targets."""
    return np.concatenate([Y, np.ones((len(Y), 1))], axis=1) if intercept else Y


def left_out(errors: Array, Y: Array, intercept: bool) -> Array:
    """Return the leave-one-out errors (n, targets), given those of targets (and of a column of ones) that were not centred.

    With an intercept the fit is one to y - mean(y). Without sample i the mean is m_i = (sum y - y_i)/(n - 1), and a shift of
    all targets by m_i moves the error by -m_i times that of the constant.
    """
    if not intercept:
        return errors
    means = (Y.sum(0) - Y) / (len(Y) - 1)
    return np.asarray(errors[:, :-1] - means * errors[:, -1:])


def dual_path(K: Array, Y: Array, penalties: Array, intercept: bool = False) -> Path:
    """Return the leave-one-out errors of all penalties, by one Cholesky factorisation each.

    The error on sample i, when it is left out, is ((K + lam)^-1 y)_i / ((K + lam)^-1)_ii. A penalty too small for the
    rounding of K has an infinite error.
    """
    from scipy.linalg import lapack

    errors, columns = np.full((len(penalties), Y.shape[1]), np.inf), with_constant(Y, intercept)
    for row, penalty in enumerate(penalties):
        try:
            L = factor(K, penalty)
        except InputError:
            continue
        coefficients = solve(L, columns)
        inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        diagonal = np.einsum("ki,ki->i", inverse, inverse)
        errors[row] = np.mean(left_out(coefficients / diagonal[:, None], Y, intercept) ** 2, axis=0)
    if np.isinf(errors).all():
        raise InputError("the kernel matrix is not positive definite at any of the penalties; give larger alphas")
    return Path(np.asarray(penalties), errors)


def primal_path(
    G: Array,
    Y: Array,
    rows: Iterable[tuple[Array, slice]],
    penalties: Array,
    intercept: bool = False,
) -> Path:
    """Return the leave-one-out errors of all penalties from G = Phi^T Phi, by one factorisation each.

    The error on sample i, when it is left out, is (y_i - phi_i v)/(1 - h_i), h_i = |L^-1 phi_i|^2.

    Parameters
    ----------
    G : array of shape (p, p)
    Y : array of shape (n, targets)
    rows : iterable
        Blocks of features (m, p) and which samples they are; gone through once per penalty.
    penalties : array
    """
    from scipy.linalg import solve_triangular

    errors, columns = np.full((len(penalties), Y.shape[1]), np.inf), with_constant(Y, intercept)
    B = np.sum([Phi.T @ columns[part] for Phi, part in rows], axis=0)
    missed = np.empty_like(columns)
    for row, penalty in enumerate(penalties):
        try:
            L = factor(G, penalty)
        except InputError:
            continue
        coefficients = solve(L, B)
        for Phi, part in rows:
            half = solve_triangular(
                L, np.asfortranarray(Phi.T, dtype=float), lower=True, overwrite_b=True, check_finite=False
            )
            kept = 1 - np.einsum("ki,ki->i", half, half)
            missed[part] = (columns[part] - Phi @ coefficients) / np.maximum(kept, 1e-12)[:, None]
        errors[row] = np.mean(left_out(missed, Y, intercept) ** 2, axis=0)
    if np.isinf(errors).all():
        raise InputError("the Gram matrix is not positive definite at any of the penalties; give larger alphas")
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
