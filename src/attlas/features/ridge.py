"""Ridge regression along a path of penalties, with leave-one-out errors; and the learning curve nested in one factor.

min_v ||y - Phi v||^2 + lam ||v||^2, lam absolute. In the dual K = Phi Phi^T, prediction = k(x)^T (K + lam)^-1 y; in the
primal G = Phi^T Phi, v = (G + lam)^-1 Phi^T y. Where neither matrix fits, conjugate gradients need products with K only.
"""

from collections.abc import Callable, Iterable
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
        finite = np.isfinite(self.errors).all(1)
        floor = np.maximum(self.errors[finite].min(0), np.finfo(float).tiny)
        return int(np.flatnonzero(finite)[np.argmin((self.errors[finite] / floor).mean(1))])


def with_constant(Y: Array, intercept: bool) -> Array:
    """Return Y, with a column of ones appended if there is an intercept: everything below is linear in the targets."""
    return np.concatenate([Y, np.ones((len(Y), 1))], axis=1) if intercept else Y


def left_out(errors: Array, Y: Array, intercept: bool) -> Array:
    """Return what each sample is missed by when left out, given the same for targets (and ones) that were not centred.

    With an intercept the fit is one to y - mean(y). Without sample i the mean is m_i = (sum y - y_i)/(n - 1), and a shift of
    all targets by m_i moves the error by -m_i times that of the constant.
    """
    if not intercept:
        return errors
    means = (Y.sum(0) - Y) / (len(Y) - 1)
    return np.asarray(errors[:, :-1] - means * errors[:, -1:])


def dual_path(K: Array, Y: Array, penalties: Array, intercept: bool = False) -> Path:
    """Return the leave-one-out errors of all penalties, by one Cholesky factorisation each.

    Left out, sample i is missed by ((K + lam)^-1 y)_i / ((K + lam)^-1)_ii. A penalty too small for the rounding of K has an
    infinite error.
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
    rows: Callable[[], Iterable[tuple[Array, slice]]],
    penalties: Array,
    intercept: bool = False,
) -> Path:
    """Return the leave-one-out errors of all penalties from G = Phi^T Phi, by one factorisation each.

    Left out, sample i is missed by (y_i - phi_i v)/(1 - h_i), h_i = |L^-1 phi_i|^2.

    Parameters
    ----------
    G : array of shape (p, p)
    Y : array of shape (n, targets)
    rows : callable
        Called once per penalty; yields blocks of features (m, p) and which samples they are.
    penalties : array
    """
    from scipy.linalg import solve_triangular

    errors, columns = np.full((len(penalties), Y.shape[1]), np.inf), with_constant(Y, intercept)
    B = np.sum([Phi.T @ columns[part] for Phi, part in rows()], axis=0)
    missed = np.empty_like(columns)
    for row, penalty in enumerate(penalties):
        try:
            L = factor(G, penalty)
        except InputError:
            continue
        coefficients = solve(L, B)
        for Phi, part in rows():
            half = solve_triangular(
                L, np.asfortranarray(Phi.T, dtype=float), lower=True, overwrite_b=True, check_finite=False
            )
            kept = 1 - np.einsum("ki,ki->i", half, half)
            missed[part] = (columns[part] - Phi @ coefficients) / np.maximum(kept, 1e-12)[:, None]
        errors[row] = np.mean(left_out(missed, Y, intercept) ** 2, axis=0)
    if np.isinf(errors).all():
        raise InputError("the Gram matrix is not positive definite at any of the penalties; give larger alphas")
    return Path(np.asarray(penalties), errors)


class Iterations(NamedTuple):
    """What conjugate gradients return: coefficients (n, targets), their number of steps, the largest relative residual."""

    coefficients: Array
    steps: int
    residual: float


def conjugate_gradients(
    product: Callable[[Array], Array], Y: Array, penalty: float, nystrom: "Nystrom", tol: float, max_steps: int
) -> Iterations:
    """Solve (K + penalty) a = Y for all targets side by side, given products with K and a preconditioner."""
    a, residual = np.zeros_like(Y), Y.copy()
    size = np.maximum(np.linalg.norm(Y, axis=0), np.finfo(float).tiny)
    z = nystrom.solve(residual, penalty)
    direction, weight = z.copy(), np.sum(residual * z, axis=0)
    steps = 0
    while steps < max_steps and float(np.max(np.linalg.norm(residual, axis=0) / size)) > tol:
        image = product(direction) + penalty * direction
        curvature = np.sum(direction * image, axis=0)
        step = np.divide(
            weight, curvature, out=np.zeros_like(weight), where=curvature > 0
        )  # zero once a target is solved
        a += step * direction
        residual -= step * image
        z = nystrom.solve(residual, penalty)
        before, weight = weight, np.sum(residual * z, axis=0)
        direction = z + np.divide(weight, before, out=np.zeros_like(weight), where=before > 0) * direction
        steps += 1
    return Iterations(a, steps, float(np.max(np.linalg.norm(residual, axis=0) / size)))


class Nystrom(NamedTuple):
    """A low-rank approximation U diag(values) U^T of K, U orthonormal, as a preconditioner.

    References
    ----------
    frangella2023randomized.
    """

    U: Array
    values: Array

    @classmethod
    def of(cls, columns: Array, chosen: NDArray[np.intp]) -> "Nystrom":
        """Return the approximation from the columns K[:, chosen], (n, rank)."""
        from scipy.linalg import solve_triangular

        core = columns[chosen]
        shift = float(np.finfo(np.float32).eps * np.trace(core))  # the columns are sums of float32 products
        L = factor(core, shift)
        U, singular, _ = np.linalg.svd(
            solve_triangular(L, columns.T, lower=True, check_finite=False).T, full_matrices=False
        )
        return cls(U, np.maximum(singular**2 - shift, 0.0))

    def solve(self, Y: Array, penalty: float) -> Array:
        """Apply the preconditioner's inverse: 1 off the span of U, (smallest value + penalty)/(value + penalty) on it."""
        inside = self.U.T @ Y
        scaled = inside * ((self.values[-1] + penalty) / (self.values + penalty))[:, None]
        return np.asarray(Y + self.U @ (scaled - inside))


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


def nested_curve(
    K: Array,
    Y: Array,
    K_test: Array,
    Y_test: Array,
    sizes: NDArray[np.intp],
    penalties: Array,
    intercept: bool = False,
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
    """
    from scipy.linalg import lapack, solve_triangular

    if sizes[-1] > len(Y):
        raise InputError(f"the largest size, {sizes[-1]}, exceeds the {len(Y)} samples")
    shape = (len(penalties), len(sizes), Y.shape[1])
    test, loo, forecast = np.full(shape, np.inf), np.full(shape, np.inf), np.full(shape, np.inf)
    columns = with_constant(Y, intercept)
    # the mean of the samples before each: what a forecast may know (before the first, nothing)
    before = (
        np.concatenate([np.zeros((1, Y.shape[1])), np.cumsum(Y, 0)[:-1]]) / np.maximum(np.arange(len(Y)), 1)[:, None]
    )
    for row, penalty in enumerate(penalties):
        try:
            L = factor(K, penalty)
        except InputError:
            continue
        z = solve_triangular(L, columns, lower=True, check_finite=False)
        missed = np.diagonal(L)[:, None] * z
        missed = (missed[:, :-1] - before * missed[:, -1:] if intercept else missed) ** 2
        inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        for column, n in enumerate(sizes):
            leading = inverse[:n, :n]
            coefficients = leading.T @ z[:n]
            prediction = K_test[:, :n] @ coefficients
            mean = Y[:n].mean(0)
            found = prediction[:, :-1] + mean * (1 - prediction[:, -1:]) if intercept else prediction
            test[row, column] = np.mean((found - Y_test) ** 2, axis=0)
            diagonal = np.einsum("ki,ki->i", leading, leading)
            each = left_out(coefficients / diagonal[:, None], Y[:n], intercept)
            loo[row, column] = np.mean(each**2, axis=0)
            forecast[row, column] = missed[n - max(n // 5, 1) : n].mean(0)
    if np.isinf(loo).all():
        raise InputError("the kernel matrix is not positive definite at any of the penalties; give larger alphas")
    return Curve(sizes, np.asarray(penalties), test, loo, forecast)
