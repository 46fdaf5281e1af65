"""One reduction of a symmetric matrix serves every penalty: A = Q T Q^T with T tridiagonal.

(A + lam)^-1 = Q (T + lam)^-1 Q^T, and T + lam = L D L^T in a number of steps that is linear in the size of A.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COLUMNS = 256  # at a time: ten penalties of them stay in the cache


@dataclass(frozen=True)
class Tridiagonal:
    """A symmetric matrix A = Q T Q^T, and the factors of T + lam for all penalties.

    Attributes
    ----------
    Qt : array of shape (n, n)
        The transpose of Q.
    pivots : array of shape (penalties, n)
        D in T + lam = L D L^T. Rows are NaN where A + lam is not positive definite.
    below : array of shape (penalties, n)
        L beneath its diagonal of ones, from the second row on.
    """

    Qt: Array
    pivots: Array
    below: Array

    @classmethod
    def of(cls, A: Array, penalties: Array) -> "Tridiagonal":
        """Reduce A."""
        from scipy.linalg import lapack

        n = len(A)
        work = int(lapack.dsytrd_lwork(n, lower=1)[0])
        reduced, diagonal, beside, tau, _ = lapack.dsytrd(
            np.array(A.T, dtype=float, order="F"), lower=1, lwork=work, overwrite_a=1
        )
        turns = np.array(reduced[1:, :-1], order="F")
        del reduced  # at most three matrices at a time, A among them
        if n > 1:
            turns = lapack.dorgqr(turns, tau, lwork=work, overwrite_a=1)[0]
        Q = np.zeros((n, n), order="F")
        Q[0, 0], Q[1:, 1:] = 1.0, turns
        del turns
        pivots, below = np.empty((len(penalties), n)), np.zeros((len(penalties), n))
        _factorise(diagonal, beside, np.asarray(penalties, dtype=float), pivots, below)
        return cls(Q.T, pivots, below)

    def solve(self, Y: Array) -> Array:
        """Return (A + lam)^-1 Y, (penalties, n, columns)."""
        inside = np.broadcast_to(self.Qt @ Y, (len(self.pivots), *Y.shape)).copy()
        _substitute(self.below, self.pivots, inside)
        n, (rows, _, columns) = len(self.Qt), inside.shape
        found = self.Qt.T @ inside.transpose(1, 0, 2).reshape(n, -1)
        return np.asarray(found.reshape(n, rows, columns).transpose(1, 0, 2))

    def forms(self, turned: NDArray[Any]) -> Array:
        """Return x^T (A + lam)^-1 x, (penalties, m), for vectors given as Q^T x, (n, m)."""
        found = np.zeros((len(self.pivots), turned.shape[1]))
        _forms(self.below, self.pivots, turned, found)
        return found


@njit(cache=True, nogil=True)
def _factorise(diagonal: Any, beside: Any, penalties: Any, pivots: Any, below: Any) -> None:
    for r in range(len(penalties)):
        for k in range(len(diagonal)):
            pivots[r, k] = diagonal[k] + penalties[r]
            if k > 0:
                below[r, k] = beside[k - 1] / pivots[r, k - 1]
                pivots[r, k] -= below[r, k] * beside[k - 1]
            if not pivots[r, k] > 0:
                pivots[r] = np.nan
                break


@njit(cache=True, nogil=True)
def _substitute(below: Any, pivots: Any, Y: Any) -> None:
    """Solve L D L^T x = y in place, Y of shape (penalties, n, columns)."""
    rows, n, columns = Y.shape
    for r in range(rows):
        for k in range(1, n):
            for j in range(columns):
                Y[r, k, j] -= below[r, k] * Y[r, k - 1, j]
        for k in range(n - 1, -1, -1):
            for j in range(columns):
                Y[r, k, j] /= pivots[r, k]
                if k < n - 1:
                    Y[r, k, j] -= below[r, k + 1] * Y[r, k + 1, j]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _forms(below: Any, pivots: Any, turned: Any, found: Any) -> None:
    n, m = turned.shape
    half = np.empty((len(pivots), _COLUMNS))
    for start in range(0, m, _COLUMNS):
        width = min(_COLUMNS, m - start)
        half[:] = 0.0
        for k in range(n):
            row = turned[k, start : start + width]
            for r in range(len(pivots)):
                here, total = half[r], found[r, start : start + width]
                factor, share = below[r, k], 1.0 / pivots[r, k]
                for j in range(width):
                    value = row[j] - factor * here[j]
                    here[j] = value
                    total[j] += value * value * share
