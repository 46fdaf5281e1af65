"""Adam, as a baseline."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Adam:
    """Means of the gradient over the root of those of its square, both corrected for their start at zero.

    The first axis of W runs over independent searches, each with its own count of steps.

    References
    ----------
    kingma2015adam, algorithm 1.
    """

    def __init__(self, W: Array) -> None:
        self._mean, self._square = np.zeros_like(W), np.zeros_like(W)
        self._steps = np.zeros((len(W), *[1] * (W.ndim - 1)))

    def __call__(self, gradient: Array) -> Array:
        """Return the step, to be multiplied by a rate."""
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient * gradient - self._square)
        mean, square = self._mean / (1 - 0.9**self._steps), self._square / (1 - 0.999**self._steps)
        return np.asarray(-mean / (np.sqrt(square) + 1e-12))

    def forget(self, which: NDArray[np.bool_]) -> None:
        """Start these searches anew."""
        self._mean[which] = self._square[which] = self._steps[which] = 0.0
