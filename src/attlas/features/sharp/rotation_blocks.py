"""Functions of two points on the sphere by representations of the rotations, and multiplication by w = <x_0, x> in them.

Functions of (x_0, x) fall into blocks (L1, L2), L1 >= L2 >= 0, of representations of O(d). A block has one basis
function for
each pair of degrees (a, b) = (k + L2 + i, k + L2 + m - i), m = L1 - L2, 0 <= i <= m, k >= 0, repeated `dimension` times.
Highest-weight functions are w^j A^L2 p^i q^(m-i), p = <z, x_0>, q = <z, x>, z null and A a minor; the Laplacians of
both spheres are triangular on them:

    x_0:  (j, i) -> -D(D + d - 2) (j, i) + j(j-1) (j-2, i) + 2 i j (j-1, i-1),        D = j + L2 + i,
    x:    (j, i) -> -D(D + d - 2) (j, i) + j(j-1) (j-2, i) + 2 (m-i) j (j-1, i+1),    D = j + L2 + m - i,

so the basis, and in it the matrix of w (which moves j to j + 1), come from back substitution, without an integral.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from attlas.features.sharp.spectrum import Label

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RotationBlock:
    """A block (L1, L2), its basis of degrees (a, b) with a + b <= cap, and multiplication by w."""

    name: Label
    basis: list[Label] = field(repr=False)
    dimension: float
    W: Array = field(repr=False)


def dimension(L1: int, L2: int, d: int) -> float:
    """Return the dimension of the representation (L1, L2) of O(d), d >= 3.

    (2 L1 + d - 2)(2 L2 + d - 4)(L1 + L2 + d - 3)(L1 - L2 + 1)(L1 + d - 4)!(L2 + d - 5)!/((L1 + 1)! L2! (d - 2)!(d - 4)!)
    """
    from scipy.special import gammaln

    from attlas.features.sharp.harmonics import harmonics

    if L2 == 0:
        return float(harmonics(L1, d))
    logarithm = gammaln(L1 + d - 3) + gammaln(L2 + d - 4) - gammaln(L1 + 2) - gammaln(L2 + 1)
    logarithm -= gammaln(d - 1) + gammaln(d - 3)
    found = (2 * L1 + d - 2) * (2 * L2 + d - 4) * (L1 + L2 + d - 3) * (L1 - L2 + 1) * np.exp(logarithm)
    return float(np.round(found) if found < 1e13 else found)


@lru_cache(maxsize=512)
def rotation_block(L1: int, L2: int, d: int, cap: int) -> RotationBlock:
    """Return the block of all degrees with a + b <= cap."""
    m = L1 - L2
    largest = (cap - 2 * L2 - m) // 2
    pairs = [(j, i) for j in range(largest + 2) for i in range(m + 1)]  # one j longer than is kept
    place = {pair: row for row, pair in enumerate(pairs)}
    laplacians = np.zeros((2, len(pairs), len(pairs)))
    for (j, i), column in place.items():
        for side, (own, moved) in enumerate(((i, i - 1), (m - i, i + 1))):
            D = j + L2 + own
            laplacians[side, column, column] = -D * (D + d - 2)
            if j >= 2:
                laplacians[side, place[j - 2, i], column] += j * (j - 1)
            if j >= 1 and own:
                laplacians[side, place[j - 1, moved], column] += 2 * own * j
    V = _eigenvectors(laplacians[0] + np.sqrt(2) * laplacians[1])
    shift = np.zeros_like(V)
    for (j, i), column in place.items():
        if (j + 1, i) in place:
            shift[place[j + 1, i], column] = 1
    from scipy.linalg import solve_triangular

    moved = solve_triangular(V, shift @ V, unit_diagonal=True)
    kept = (largest + 1) * (m + 1)
    W = _symmetric(moved[:kept, :kept])
    basis: list[Label] = [(j + L2 + i, j + L2 + m - i) for j, i in pairs[:kept]]
    return RotationBlock((L1, L2), basis, dimension(L1, L2, d), W)


def _eigenvectors(T: Array) -> Array:
    """Return the eigenvectors of an upper triangular matrix with distinct diagonal, with ones on their diagonal."""
    V = np.eye(len(T))
    for column in range(1, len(T)):
        for row in range(column - 1, -1, -1):
            V[row, column] = T[row, row + 1 : column + 1] @ V[row + 1 : column + 1, column]
            V[row, column] /= T[column, column] - T[row, row]
    return V


def _symmetric(W: Array) -> Array:
    """Return nu W nu^-1, nu such that it is symmetric: nu_i^2/nu_j^2 = W_ji/W_ij along any path."""
    logs = np.full(len(W), np.nan)
    logs[0], waiting = 0.0, [0]
    tiny = 1e-12 * np.abs(W).max()
    while waiting:
        j = waiting.pop()
        for i in np.flatnonzero((np.abs(W[:, j]) > tiny) & (np.abs(W[j]) > tiny) & np.isnan(logs)):
            logs[i] = logs[j] + 0.5 * np.log(W[j, i] / W[i, j])
            waiting.append(int(i))
    nu = np.exp(logs)
    return np.asarray(nu[:, None] * W / nu)
