"""Conjugate gradients on the matrix of a layer, without ever forming its n x d^2 design."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]
_BYTES = 1 << 18  # of a block's intermediate rows: they stay in cache between the two products


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
    design = Design(X, H)
    right = design.adjoint(y)
    size = max(float(np.linalg.norm(right)), np.finfo(float).tiny)
    Gamma, residual = np.zeros_like(right), right.copy()
    z = residual @ precondition
    direction, weight = z.copy(), float(np.vdot(residual, z))
    history = [float(np.linalg.norm(residual)) / size]
    while len(history) <= max_steps and history[-1] > tol:
        image = design.normal(direction) + penalty * direction
        step = weight / float(np.vdot(direction, image))
        Gamma += step * direction
        residual -= step * image
        z = residual @ precondition
        before, weight = weight, float(np.vdot(residual, z))
        direction *= weight / before
        direction += z
        history.append(float(np.linalg.norm(residual)) / size)
        if history[-1] <= tol:  # the residual that is carried along drifts from the true one: go on from that
            residual = right - design.normal(Gamma) - penalty * Gamma
            history[-1] = float(np.linalg.norm(residual)) / size
            direction = residual @ precondition
            weight = float(np.vdot(residual, direction))
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


class Design:
    """The n x d d' design x o h, never formed: its products with a matrix Gamma and with a vector, in blocks of rows."""

    def __init__(self, X: Array, H: Array) -> None:
        self.X, self.H = X, H
        self._rows = max(1, min(len(X), _BYTES // (8 * H.shape[1])))
        self._buffer = np.empty((self._rows, H.shape[1]))

    def blocks(self) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Return rows, X and H there, and room for as many rows of H."""
        for start in range(0, len(self.X), self._rows):
            rows = slice(start, start + self._rows)
            x = self.X[rows]
            yield rows, x, self.H[rows], self._buffer[: len(x)]

    def fitted(self, Gamma: Array) -> Array:
        """Return x^T Gamma h of every sequence."""
        return np.concatenate([np.vecdot(np.matmul(x, Gamma, out=room), h) for _, x, h, room in self.blocks()])

    def adjoint(self, y: Array) -> Array:
        """Return sum y x h^T."""
        total = np.zeros((self.X.shape[1], self.H.shape[1]))
        for rows, x, h, room in self.blocks():
            total += x.T @ np.multiply(y[rows, None], h, out=room)
        return total

    def normal(self, Gamma: Array) -> Array:
        """Return sum (x^T Gamma h) x h^T."""
        total = np.zeros_like(Gamma)
        for _, x, h, room in self.blocks():
            fitted = np.vecdot(np.matmul(x, Gamma, out=room), h)
            total += x.T @ np.multiply(fitted[:, None], h, out=room)
        return total

    def residual(self, y: Array, penalty: float, Gamma: Array) -> float:
        """Return the residual of the normal equations over their right-hand side."""
        right = self.adjoint(y)
        missed = right - self.normal(Gamma) - penalty * Gamma
        return float(np.linalg.norm(missed) / max(np.linalg.norm(right), np.finfo(float).tiny))
