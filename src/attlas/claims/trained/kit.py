"""What claims about trained attention share: a task, the solution of its convex problem, and errors on a common scale."""

import numpy as np
from numpy.typing import NDArray

from attlas import aim

Array = NDArray[np.float64]

TOLERANCE = 1e-4  # of the duality gap


def size_of(task: aim.Task, rho: float) -> float:
    """Return ||S||^2/d of the drawn teacher over its mean, 1 + rho. Errors share its scatter and are divided by it."""
    return float(np.sum(task.S**2)) / len(task.S) / (1 + rho)


def least_trace(
    X: Array, y: Array, channel: aim.Channel, decay: float, by_way_of: tuple[float, ...] = (0.1, 0.01, 1e-3)
) -> aim.Minimum:
    """Return the solution at a small decay, reached by way of larger ones."""
    start = None
    for step in (*(larger for larger in by_way_of if larger > decay), decay):
        found = aim.minimise(X, y, channel, step, start=start, tol=TOLERANCE, max_steps=4000, throw=False)
        start = found.value
    return found
