"""What claims about trained attention share: a task, the solution of its convex problem, and errors on a common scale."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from attlas import aim
from attlas.aim.minimise import Problem

Array = NDArray[np.float64]

TOLERANCE = 1e-4  # of the duality gap
SHIFTS = {1.0: 0.3, -1.0: 0.03}  # of eigenvalues in a step of the splitting towards the smallest trace and the largest

predicted = lru_cache(maxsize=256)(aim.trained)  # the same for all seeds of a point


def size_of(task: aim.Task, rho: float) -> float:
    """Return ||S||^2/d of the drawn teacher over its mean, 1 + rho. Errors share its scatter and are divided by it."""
    return float(np.sum(task.S**2)) / len(task.S) / (1 + rho)


def scale_of(task: aim.Task, rho: float) -> float:
    """Return the trace of the drawn teacher over its mean, sqrt(rho) d."""
    return float(np.trace(task.S)) / len(task.S) / float(np.sqrt(rho))


def power_of(task: aim.Task, channel: aim.Channel, rho: float) -> float:
    """Return the mean square of what the data say of S, over what it is as d grows: 1 + rho and the noise."""
    problem = Problem(task.X, task.y, channel, 0.0)
    noise = aim.measurements(channel, 1.0)[1]
    return 0.5 * float(np.sum(problem.target**2)) / problem.numbers / (1 + rho + noise)


def constraints(task: aim.Task, channel: aim.Softmax) -> tuple[Array, Array]:
    """Return what two tokens say of S: matrices M (2 n, d d) and numbers with <M, S> equal to them.

    Without the common shift of the logits, h_11 - h_22 and h_11 + h_22 - 2 h_12 are left.
    """
    d = task.X.shape[2]
    first, second = task.X[:, 0], task.X[:, 1]
    less = first - second
    one = np.einsum("ni,nj->nij", first, first) - np.einsum("ni,nj->nij", second, second)
    other = np.einsum("ni,nj->nij", less, less) - 2 * np.eye(d)
    h = Problem(task.X, task.y, channel, 0.0).target
    numbers = np.stack([h[:, 0, 0] - h[:, 1, 1], h[:, 0, 0] + h[:, 1, 1] - 2 * h[:, 0, 1]], axis=1)
    return np.stack([one, other], axis=1).reshape(-1, d * d), np.sqrt(d) * numbers.ravel()


def extreme_trace(rows: Array, values: Array, sign: float, steps: int, tol: float = 1e-5) -> tuple[Array, bool]:
    """Return S >= 0 of the smallest trace (sign 1) or largest (-1) with <rows, S> = values, and whether it converged.

    Douglas and Rachford's splitting, from zero.
    """
    d = round(np.sqrt(rows.shape[1]))
    basis, triangle = np.linalg.qr(rows.T)
    fitted = (basis @ np.linalg.solve(triangle.T, values)).reshape(d, d)  # the S of the smallest norm that fits
    V = np.zeros((d, d))
    goal = tol * float(np.linalg.norm(fitted))
    for _ in range(steps):
        eigenvalues, vectors = np.linalg.eigh(V)
        S = (vectors * np.maximum(eigenvalues - sign * SHIFTS[sign], 0)) @ vectors.T
        reflected = 2 * S - V
        move = reflected - (basis @ (reflected.ravel() @ basis)).reshape(d, d) + fitted - S
        V = V + (move + move.T) / 2
        if np.linalg.norm(move) < goal:
            return S, True
    return S, False
