"""Fits by one factorisation: of the Gram matrix of the sequences (dual), or of the parameters (primal)."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_BYTES = 1 << 25  # of a block of rows of the design


def dual(X: Array, H: Array, y: Array, penalty: float) -> Array:
    """Return Gamma = X^T diag(a) H, (K + penalty) a = y, K = (X X^T) o (H H^T): n^3/3 steps, n^2 numbers."""
    K = X @ X.T
    K *= H @ H.T
    a = _solve(K, y, penalty)
    return np.asarray(X.T @ (a[:, None] * H))


def primal(X: Array, H: Array, y: Array, penalty: float) -> Array:
    """Return the solution of the normal equations of p = d d' parameters, their matrix summed over blocks of sequences.

    2 n p^2 + p^3/3 steps and p^2 numbers.
    """
    n, d = X.shape
    p = d * H.shape[1]
    rows = max(1, _BYTES // (8 * p))
    gram, right = np.zeros((p, p)), np.zeros(p)
    for start in range(0, n, rows):
        block = slice(start, start + rows)
        design = (X[block, :, None] * H[block, None, :]).reshape(-1, p)
        gram += design.T @ design
        right += design.T @ y[block]
    return _solve(gram, right, penalty).reshape(d, -1)


def _solve(K: Array, y: Array, penalty: float) -> Array:
    """Solve (K + penalty) a = y; where K is singular to rounding, on the span of what is not."""
    from scipy.linalg import cho_factor, cho_solve, eigh

    K[np.diag_indices_from(K)] += penalty
    try:
        return np.asarray(cho_solve(cho_factor(K, lower=True, check_finite=False), y, check_finite=False))
    except np.linalg.LinAlgError:
        values, vectors = eigh(K, check_finite=False)
        kept = values > len(values) * np.finfo(float).eps * values[-1]
        return np.asarray(vectors[:, kept] @ ((vectors[:, kept].T @ y) / values[kept]))
