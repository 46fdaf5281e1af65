"""Preconditioned conjugate gradients for ridge regression that fits in no matrix."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.features.ridge import factor
from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]


def conjugate_gradients(
    product: Callable[[Array], Array],
    Y: Array,
    penalty: float,
    nystrom: "Nystrom",
    *,
    tol: float = 1e-6,
    max_steps: int = 1000,
    progress: Progress | None = None,
    throw: bool = True,
) -> Solution[Array]:
    """Solve (K + penalty) a = Y for all targets side by side.

    Parameters
    ----------
    product : callable
        ``product(V)`` returns K V, V of shape (n, targets).
    Y : array of shape (n, targets)
    penalty : float
    nystrom : Nystrom
        The preconditioner.
    tol : float
        On the largest |residual| / |Y| of a target.
    max_steps : int
    progress : callable, optional
        Called with an `Event` after every step; its value is that residual.
    throw : bool, default True
        Raise `ConvergenceError` if the tolerance is not reached.

    Returns
    -------
    Solution
        Its history is the residual before the first step and after each.
    """
    a, residual = np.zeros_like(Y), Y.copy()
    size = np.maximum(np.linalg.norm(Y, axis=0), np.finfo(float).tiny)
    z = nystrom.solve(residual, penalty)
    direction, weight = z.copy(), np.sum(residual * z, axis=0)
    history = [float(np.max(np.linalg.norm(residual, axis=0) / size))]
    while len(history) <= max_steps and history[-1] > tol:
        image = product(direction) + penalty * direction
        curvature = np.sum(direction * image, axis=0)
        # zero once a target is solved
        step = np.divide(weight, curvature, out=np.zeros_like(weight), where=curvature > 0)
        a += step * direction
        residual -= step * image
        z = nystrom.solve(residual, penalty)
        before, weight = weight, np.sum(residual * z, axis=0)
        direction = z + np.divide(weight, before, out=np.zeros_like(weight), where=before > 0) * direction
        history.append(float(np.max(np.linalg.norm(residual, axis=0) / size)))
        if progress is not None:
            steps = len(history) - 1
            progress(Event(steps, max_steps, f"conjugate gradients: residual {history[-1]:.1e}", history[-1]))
    status = Status.CONVERGED if history[-1] <= tol else Status.OUT_OF_STEPS
    if not np.isfinite(history[-1]):
        status = Status.DIVERGED
    found = Solution(a, status, history[-1], len(history) - 1, np.array(history))
    return found.or_raise("conjugate gradients") if throw else found


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
