"""Damped fixed-point iteration."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics.solution import Solution, Status

T = TypeVar("T", float, NDArray[np.float64])


def fixed_point(
    function: Callable[[T], T],
    start: T,
    *,
    damping: float = 0.0,
    tolerance: float = 1e-10,
    max_steps: int = 1000,
    throw: bool = True,
) -> Solution[T]:
    """Solve x = f(x) by x <- (1 - eta) f(x) + eta x.

    Parameters
    ----------
    function : callable
        The map f, from a float or array to the same shape.
    start : float or array
        The first x.
    damping : float, default 0
        eta in [0, 1). The fixed points do not depend on it.
    tolerance : float, default 1e-10
        Converged when max |f(x) - x| <= tolerance * max(1, max |x|). The residual is that of the undamped
        map, so damping cannot make an iteration look converged. It bounds the error only up to
        1 / |1 - f'|: near a transition, where f' -> 1, use a bracketed root instead.
    max_steps : int, default 1000
    throw : bool, default True
        Raise `ConvergenceError` on failure; otherwise return the `Solution` with its status.

    Returns
    -------
    Solution
        ``trace`` holds the residual of every step.
    """
    if not 0 <= real(damping, "damping") < 1:
        raise InputError(f"damping must be in [0, 1); got {damping!r}")
    real(tolerance, "tolerance", above=0)
    integer(max_steps, "max_steps")
    x, image, trace = start, start, []
    status = Status.OUT_OF_STEPS
    for _ in range(max_steps):
        with np.errstate(all="ignore"):  # an overflow is reported as a status, not as a warning
            try:
                image = function(np.copy(x) if isinstance(x, np.ndarray) else x)  # a map may work in place
                if np.shape(image) != np.shape(x):
                    raise InputError(f"function must keep the shape {np.shape(x)}; it gave {np.shape(image)}")
                residual = float(np.max(np.abs(image - x)))
            except OverflowError:  # what Python's own floats do instead
                residual = np.inf
        trace.append(residual)
        if not np.isfinite(residual):
            status = Status.DIVERGED
            break
        if residual <= tolerance * max(1.0, float(np.max(np.abs(x)))):
            x, status = image, Status.CONVERGED
            break
        x = (1 - damping) * image + damping * x
    solution = Solution(x, status, trace[-1], len(trace), np.array(trace))
    return solution.or_raise("the fixed-point iteration") if throw else solution
