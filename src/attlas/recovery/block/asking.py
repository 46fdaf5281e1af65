"""Asking for one token, or for two."""

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.oracle import CountingOracle

Array = NDArray[np.float64]


class Asking:
    """An oracle that counts its queries.

    `eps` is the relative accuracy of its answers: rounding, or noise if there is more of it.
    """

    def __init__(self, oracle: CountingOracle, d: int, eps: float) -> None:
        self.oracle, self.d, self.eps = oracle, d, eps

    @property
    def queries(self) -> int:
        """Queries so far."""
        return self.oracle.queries

    @property
    def outputs(self) -> int:
        """Dimension of the answers, once there was one."""
        return self.oracle.outputs or 0

    def __call__(self, X: Array) -> Array:
        """Return the answer (d_out,) to tokens X (k, d)."""
        return self.oracle(X)

    def single(self, x: Array) -> Array:
        """Return the answer to one token x (d,)."""
        return self(x[None])

    def pair(self, q: Array, w: Array) -> Array:
        """Return the answer to two tokens [q + w; q]."""
        return self(np.array([q + w, q]))
