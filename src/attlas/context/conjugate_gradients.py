"""Conjugate gradients on the matrix of a layer, without ever forming its n x d^2 design."""

import numpy as np
from numpy.typing import NDArray

from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]
_BYTES = 1 << 19  # of a block's intermediate rows: they stay in cache between the two products


def conjugate_gradients(
    X: Array,
    H: Array,
    y: Array,
    penalty: float,
    *,
    tol: float = 1e-8,
    max_steps: int = 10_000,
    progress: Progress | None = None,
) -> Solution[Array]:
    """Minimise sum (y - x^T Gamma h)^2 + penalty |Gamma|^2 over Gamma, from zero.

    A step costs the two products of Gamma -> X^T (diag((X Gamma o H) 1) H) and no memory beside the data. With more
    sequences than parameters the rows of Gamma are preconditioned by H^T H/d + penalty, the mean of the matrix of the normal
    equations over queries. With fewer, and without penalty, plain steps from zero lead to the smallest solution.

    Parameters
    ----------
    X, H, y : arrays of shape (n, d), (n, d') and (n,)
    penalty : float
    tol : float
        On the residual of the normal equations over their right-hand side.
    max_steps : int
    progress : callable, optional
        Called with an `Event` after every step; its value is that residual.

    Returns
    -------
    Solution
        Its history is the residual before the first step and after each.
    """
    precondition = _preconditioner(X, H, penalty)
    residual = _adjoint(X, H, y)
    size = max(float(np.linalg.norm(residual)), np.finfo(float).tiny)
    Gamma = np.zeros_like(residual)
    z = residual @ precondition
    direction, weight = z.copy(), float(np.vdot(residual, z))
    history = [float(np.linalg.norm(residual)) / size]
    while len(history) <= max_steps and history[-1] > tol:
        image = _normal(X, H, direction) + penalty * direction
        step = weight / float(np.vdot(direction, image))
        Gamma += step * direction
        residual -= step * image
        z = residual @ precondition
        before, weight = weight, float(np.vdot(residual, z))
        direction *= weight / before
        direction += z
        history.append(float(np.linalg.norm(residual)) / size)
        if progress is not None:
            progress(
                Event(len(history) - 1, max_steps, f"conjugate gradients: residual {history[-1]:.1e}", history[-1])
            )
    status = Status.CONVERGED if history[-1] <= tol else Status.OUT_OF_STEPS
    if not np.isfinite(history[-1]):
        status = Status.DIVERGED
    return Solution(Gamma, status, history[-1], len(history) - 1, np.array(history))


def _preconditioner(X: Array, H: Array, penalty: float) -> Array:
    n, d = X.shape
    width = H.shape[1]
    if n <= d * width:
        return np.eye(width)
    return np.linalg.inv((H.T @ H) / d + penalty * np.eye(width))


def _normal(X: Array, H: Array, Gamma: Array) -> Array:
    """Return X^T diag((X Gamma o H) 1) H, in blocks of rows."""
    rows = max(1, _BYTES // (8 * H.shape[1]))
    total, buffer = np.zeros_like(Gamma), np.empty((min(rows, len(X)), H.shape[1]))
    for start in range(0, len(X), rows):
        x, h = X[start : start + rows], H[start : start + rows]
        block = np.matmul(x, Gamma, out=buffer[: len(x)])
        fitted = np.einsum("nj,nj->n", block, h)
        total += x.T @ np.multiply(fitted[:, None], h, out=block)
    return total


def _adjoint(X: Array, H: Array, y: Array) -> Array:
    """Return X^T diag(y) H, in blocks of rows."""
    rows = max(1, _BYTES // (8 * H.shape[1]))
    total = np.zeros((X.shape[1], H.shape[1]))
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        total += X[block].T @ (y[block, None] * H[block])
    return total


def residual_of(X: Array, H: Array, y: Array, penalty: float, Gamma: Array) -> float:
    """Return the residual of the normal equations over their right-hand side."""
    right = _adjoint(X, H, y)
    missed = right - _normal(X, H, Gamma) - penalty * Gamma
    return float(np.linalg.norm(missed) / max(np.linalg.norm(right), np.finfo(float).tiny))
