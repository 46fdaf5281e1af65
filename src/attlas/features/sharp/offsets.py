"""The score offset of a head, omega = W[d, d] ~ N(0, 1/4), as a few values with weights."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def offsets(nodes: int) -> tuple[Array, Array]:
    """Return values of omega and their weights, by Gauss-Hermite quadrature."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return z / 2, weights / weights.sum()
