"""What every search for a layer returns: a solution that holds a layer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.numerics import Solution
from attlas.recovery.layer import Layer

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fit(Solution[Layer]):
    """A layer that a search ended at.

    Attributes
    ----------
    value : Layer
        The best layer met, also called `layer`.
    status : Status
        Converged means that nothing more was to be gained from there; the layer may still be a wrong one.
    residual : float
        |F(X) - Y|/|Y| on the examples searched.
    steps : int
    history : array
        The residual after every step.
    """

    @property
    def layer(self) -> Layer:
        """The layer that was found."""
        return self.value

    @property
    def Theta(self) -> Array:
        """Query-key matrices (m, d, d)."""
        return self.value.Theta

    @property
    def W(self) -> Array:
        """Value matrices (m, d, d_out)."""
        return self.value.W
