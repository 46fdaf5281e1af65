"""Do sequences that are alike have residuals that are alike? Kernels of whole sequences.

    S(eps) = sum_{s != t} eps_s eps_t kappa(z_s, z_t) <E_s, E_t>

with z the flattened sequence. Products of two and of three coordinates of any tokens are the ANOVA kernels

    e_2 = (p_1^2 - p_2)/2,    e_3 = (p_1^3 - 3 p_1 p_2 + 2 p_3)/6,    p_j = sum_i (z_i z'_i)^j;

a Gaussian kernel sees what is local, and where sequences repeat, 1{z = z'} sees any function of X, however wild.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def kernels(X: Array) -> Iterator[tuple[str, Array]]:
    """Yield name and matrix (n, n) of every kernel of the sequences, flat or (n, k, d), its diagonal zero."""
    n = len(X)
    z = X.reshape(n, -1)
    z = z - z.mean(0)
    z = z / np.where(z.std(0) > 1e-9, z.std(0), np.inf) / np.sqrt(z.shape[1])
    one, two, three = z @ z.T, z**2 @ (z**2).T, z**3 @ (z**3).T
    yield "products of two coordinates of the sequence", _hollow(one**2 - two)
    yield "products of three coordinates of the sequence", _hollow(one**3 - 3 * one * two + 2 * three)
    square = np.diag(one)
    apart = np.maximum(square[:, None] + square - 2 * one, 0)
    if (middle := float(np.median(apart))) > 0:
        yield "sequences that are near each other", _hollow(np.exp(-2 * apart / middle))
    kinds = np.unique(X.reshape(n, -1), axis=0, return_inverse=True)[1].reshape(-1)
    if len(np.unique(kinds)) < n:
        yield "sequences that repeat", _hollow((kinds[:, None] == kinds).astype(float))


def forms(X: Array, E: Array, signs: NDArray[np.float32]) -> Iterator[tuple[str, Array]]:
    """Yield name and S of every row of signs (B, n), for the residuals E (n, rows, d_out) and for their means over rows."""
    n = len(E)
    alike = [np.asarray(R @ R.T, dtype=np.float32) for R in (E.reshape(n, -1), E.mean(1))]
    for name, kernel in kernels(X):
        for likeness in alike[: 1 if E.shape[1] == 1 else 2]:
            product = np.asarray(kernel, dtype=np.float32) * likeness
            yield name, np.einsum("bs,bs->b", signs @ product, signs).astype(float)


def _hollow(kernel: Array) -> Array:
    np.fill_diagonal(kernel, 0.0)
    return kernel
