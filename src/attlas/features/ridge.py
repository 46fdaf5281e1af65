"""Ridge regression along a path of penalties, with leave-one-out errors.

min_v sum_i w_i (y_i - phi_i v)^2 + lam ||v||^2, lam absolute. With Phi and y times sqrt(w): in the dual K = Phi Phi^T,
prediction = k(x)^T (K + lam)^-1 y; in the primal G = Phi^T Phi, v = (G + lam)^-1 Phi^T y. Where neither matrix fits into
memory, there is `conjugate_gradients`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.tridiagonal import Tridiagonal
from attlas.features.weighted_targets import Targets

Array = NDArray[np.float64]

GRID = tuple(10.0**k for k in range(-6, 4))  # relative to tr(K)/n; targets that cannot be learned want 10 to 100

_FEW = 5  # penalties for which one Cholesky factorisation and inverse each are faster than one reduction
_LIGHT = 1e-6  # of the largest weight: samples below it are left out by their leverage, not by dividing by their weight


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


class Dual(NamedTuple):
    """The solution at one penalty, for targets that are not centred.

    Attributes
    ----------
    coefficients : array of shape (n, columns)
        (K + lam)^-1 y, of targets and kernel times sqrt(w).
    missed : array of shape (n, columns)
        y_i minus the prediction without sample i.
    """

    coefficients: Array
    missed: Array


def dual_path(K: Array, Y: Array, penalties: Array, intercept: bool = False) -> Path:
    """Return the leave-one-out errors of all penalties. A penalty too small for the rounding of K has an infinite one."""
    targets = Targets.all(Y, intercept)
    return path_of(targets, penalties, (found and found.missed for found in dual_solutions(K, K, targets, penalties)))


def path_of(targets: Targets, penalties: Array, missed: Iterable[Array | None]) -> Path:
    """Return the errors of all penalties, given those of all columns on samples that are left out, or None."""
    errors = [np.nan if one is None else targets.sum_square(targets.missed(one)) for one in missed]
    return checked(penalties, np.array([np.broadcast_to(one, targets.Y.shape[1]) for one in errors]) / targets.total)


def checked(penalties: Array, errors: Array) -> Path:
    """Return the path, infinite where an error is not finite; raise `InputError` if all are."""
    errors = np.where(np.isfinite(errors).all(1, keepdims=True), errors, np.inf)
    if np.isinf(errors).all():
        raise InputError("the kernel matrix is not positive definite at any of the penalties; give larger alphas")
    return Path(np.asarray(penalties), errors)


def dual_solutions(K: Array, A: Array, targets: Targets, penalties: Array) -> Iterator[Dual | None]:
    """Yield the solution at each penalty, or None where A + lam is not positive definite.

    With A = sqrt(w) K sqrt(w) and y times sqrt(w), the error on sample i, when it is left out, is
    c_i / D_i, divided by sqrt(w_i), with c = (A + lam)^-1 y and D the diagonal of (A + lam)^-1; it is also
    (y_i - k_i sqrt(w) c)/(lam D_i) with y_i not weighted, which serves w_i = 0.

    Parameters
    ----------
    K, A : arrays of shape (n, n)
        Without weights and with them.
    targets : Targets
    penalties : array
    """
    root = targets.root
    columns = targets.weighted
    for penalty, found in zip(penalties, _inverses(A, columns, penalties), strict=True):
        if found is None:
            yield None
            continue
        coefficients, diagonal = found
        if root is None:
            yield Dual(coefficients, coefficients / diagonal[:, None])
            continue
        light = root < np.sqrt(_LIGHT) * root.max()
        missed = coefficients / (diagonal * np.where(light, 1.0, root))[:, None]
        fitted = K[light] @ (root[:, None] * coefficients)
        missed[light] = (targets.columns[light] - fitted) / (penalty * diagonal[light])[:, None]
        yield Dual(coefficients, missed)


def _inverses(A: Array, columns: Array, penalties: Array) -> Iterator[tuple[Array, Array] | None]:
    """Yield (A + lam)^-1 columns, and the diagonal of (A + lam)^-1, for each penalty.

    A Cholesky factor and its inverse for each of a few penalties; for more of them, one reduction serves all.
    """
    from scipy.linalg import lapack

    if len(penalties) > _FEW:
        reduced = Tridiagonal.of(A, penalties)
        for coefficients, diagonal in zip(reduced.solve(columns), reduced.forms(reduced.Qt), strict=True):
            yield None if np.isnan(diagonal[0]) else (coefficients, diagonal)
        return
    for penalty in penalties:
        L = factor_or_none(A, penalty)
        if L is None:
            yield None
            continue
        coefficients = solve(L, columns)
        inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        yield coefficients, np.einsum("ki,ki->i", inverse, inverse)


@dataclass(frozen=True)
class Primal:
    """The solutions of all penalties from G = Phi^T W Phi and B = Phi^T W Y.

    Attributes
    ----------
    penalties : array
    reduced : Tridiagonal
        G.
    values : array of shape (penalties, p, columns)
        v = (G + lam)^-1 B; NaN where G + lam is not positive definite.
    """

    penalties: Array
    reduced: Tridiagonal
    values: Array

    @classmethod
    def of(cls, G: Array, B: Array, penalties: Array) -> "Primal":
        """Solve for all penalties."""
        reduced = Tridiagonal.of(G, penalties)
        return cls(np.asarray(penalties), reduced, reduced.solve(B))

    @cached_property
    def _turn(self) -> NDArray[np.float32]:
        return self.reduced.Qt.astype(np.float32)

    def fitted(self, Phi: Array) -> Array:
        """Return the predictions (penalties, m, columns) for features (m, p)."""
        rows, p, columns = self.values.shape
        found = Phi @ self.values.transpose(1, 0, 2).reshape(p, -1)
        return np.asarray(found.reshape(-1, rows, columns).transpose(1, 0, 2))

    def leverages(self, Phi: NDArray[Any]) -> Array:
        """Return phi^T (G + lam)^-1 phi, (penalties, m), for features (m, p).

        One product with Q serves all penalties, in the precision of the features: float32 changes leave-one-out errors by
        less than float32 features in G do.
        """
        turn = self._turn if Phi.dtype == np.float32 else self.reduced.Qt
        return self.reduced.forms(turn @ Phi.T)


def primal_sums(rows: Iterable[tuple[Array, slice]], targets: Targets, p: int) -> tuple[Array, Array]:
    """Return G = Phi^T W Phi, (p, p), and B = Phi^T W Y, (p, columns), float64 sums over blocks of rows."""
    G, B = np.zeros((p, p)), np.zeros((p, targets.columns.shape[1]))
    for Phi, part in rows:
        scaled = Phi if targets.root is None else Phi * targets.root[part, None].astype(Phi.dtype)
        G += scaled.T @ scaled
        B += scaled.T @ targets.weighted[part]
    return G, B


def primal_errors(primal: Primal, targets: Targets, rows: Iterable[tuple[Array, slice]]) -> tuple[Array, Array]:
    """Return the sums of squared leave-one-out errors, (penalties, targets), and the leverages, (penalties, n), in one pass.

    The error on sample i, when it is left out, is (y_i - phi_i v)/(1 - h_i), h_i = w_i phi_i^T (G + lam)^-1 phi_i.

    Parameters
    ----------
    primal : Primal
    targets : Targets
    rows : iterable
        Blocks of features (m, p) and which samples they are.
    """
    squares = np.zeros((len(primal.penalties), targets.Y.shape[1]))
    leverages = np.empty((len(primal.penalties), len(targets.Y)))
    for Phi, part in rows:
        here = targets.of(part)
        leverages[:, part] = primal.leverages(Phi)
        fitted = primal.fitted(Phi)
        squares += [here.sum_square(here.left_out(one, h)) for one, h in zip(fitted, leverages[:, part], strict=True)]
    return squares, leverages


def primal_left_out(values: Array, leverage: Array, targets: Targets, rows: Iterable[tuple[Array, slice]]) -> Array:
    """Return the leave-one-out predictions (n, targets) at one penalty, given its values and leverages (n,)."""
    found = np.empty_like(targets.Y)
    for Phi, part in rows:
        here = targets.of(part)
        found[part] = here.Y - here.left_out(Phi @ values, leverage[part])
    return found


def factor(K: Array, penalty: float) -> Array:
    """Return the lower Cholesky factor of K + penalty I, in a fresh Fortran-ordered array that LAPACK works on in place."""
    from scipy.linalg import lapack

    A = np.array(K, dtype=float, order="F")
    A.flat[:: len(A) + 1] += penalty
    L, info = lapack.dpotrf(A, lower=1, overwrite_a=1, clean=1)
    if info:
        raise InputError(f"the kernel matrix is not positive definite at penalty {penalty:.3g}; raise alpha")
    return np.asarray(L)


def factor_or_none(K: Array, penalty: float) -> Array | None:
    """Return the factor, or None where K + penalty I is not positive definite."""
    try:
        return factor(K, penalty)
    except InputError:
        return None


def solve(L: Array, Y: Array) -> Array:
    """Return (L L^T)^-1 Y."""
    from scipy.linalg import lapack

    return np.asarray(lapack.dpotrs(L, np.asfortranarray(Y), lower=1)[0])
