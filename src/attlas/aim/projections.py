"""Between sequences and matrices: the indices of a matrix on all sequences, and the way back."""

import numpy as np
from numpy.typing import NDArray

from attlas.aim.channels.channel import doubling

Array = NDArray[np.float64]

_BLOCK = 1 << 20


def indices(X: Array, S: Array) -> Array:
    """Return the attention indices of symmetric S, in blocks."""
    n, T, d = X.shape
    h = np.empty((n, T, T))
    for rows in _rows(n, T * d):
        block = X[rows]
        moved = (block.reshape(-1, d) @ S).reshape(block.shape)
        np.matmul(moved, block.transpose(0, 2, 1), out=h[rows])
    h -= np.trace(S) * np.eye(T)
    h /= np.sqrt(d)
    return h


def back_projection(X: Array, g: Array) -> Array:
    """Return sum_mu (X^T H X - Tr(H) I)/sqrt(d), H the score with its off-diagonal entries halved."""
    n, T, d = X.shape
    H = 0.5 * g * doubling(T)
    total = np.zeros((d, d))
    for rows in _rows(n, T * d):
        block = X[rows].reshape(-1, d)
        total += block.T @ (H[rows] @ X[rows]).reshape(-1, d)
    total = (total + total.T) / 2
    total -= np.trace(H, axis1=1, axis2=2).sum() * np.eye(d)
    total /= np.sqrt(d)
    return total


def squared_norms(X: Array) -> Array:
    """Return 2 ||X_ab||^2/d, which averages 1 + delta_ab: the variance of an index of its sample, over V."""
    d = X.shape[2]
    gram = X @ X.transpose(0, 2, 1)
    squares = np.einsum("naa->na", gram)
    off = (squares[:, :, None] * squares[:, None, :] + gram**2) / d**2
    diagonal = 2 * (squares**2 - 2 * squares + d) / d**2
    T = X.shape[1]
    return np.asarray(np.where(np.eye(T, dtype=bool), diagonal[:, :, None] * np.eye(T), off))


def distance(A: Array, B: Array) -> float:
    """Return ||A - B||^2 / d."""
    return float(np.sum((A - B) ** 2) / len(A))


def _rows(n: int, numbers_per_row: int) -> list[slice]:
    size = max(1, _BLOCK // numbers_per_row)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
