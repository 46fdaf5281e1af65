"""Anderson's mixing: a fixed-point iteration hastened by what the last steps have shown."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Mixing:
    """x <- x + f - (dX + dF) g, where g minimises |f - dF g| over the last differences of x and f = image - x.

    References
    ----------
    walker2011anderson, equation (2.2).
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._x: list[Array] = []
        self._f: list[Array] = []

    def __call__(self, x: Array, f: Array) -> Array:
        """Return the next x from this one and its residual f."""
        self._x, self._f = [*self._x, x][-self._depth - 1 :], [*self._f, f][-self._depth - 1 :]
        if len(self._x) == 1:
            return x + f
        dX, dF = np.diff(self._x, axis=0).T, np.diff(self._f, axis=0).T
        g = np.linalg.lstsq(dF, f, rcond=1e-10)[0]
        return np.asarray(x + f - (dX + dF) @ g)
