"""What a solver returns: a value that cannot be mistaken for converged when it is not."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from attlas.errors import ConvergenceError

T = TypeVar("T")


class Status(StrEnum):
    """How an iteration ended."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "out of steps"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Solution(Generic[T]):
    """The outcome of a solver.

    Attributes
    ----------
    value : float or array
        The last iterate.
    status : Status
        Only ``Status.CONVERGED`` may be used as a result.
    residual : float
        The size of the last update, in the units the solver states.
    steps : int
        Iterations taken.
    trace : array
        One number per iteration, in the order they were made.
    """

    value: T
    status: Status
    residual: float
    steps: int
    trace: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def converged(self) -> bool:
        """Whether the value may be used."""
        return self.status is Status.CONVERGED

    def or_raise(self, what: str = "the iteration") -> Self:
        """Return self if converged, else raise `ConvergenceError` saying how far it came."""
        if not self.converged:
            raise ConvergenceError(
                f"{what} did not converge: {self.status} after {self.steps} steps, residual {self.residual:.3g}",
                self,
            )
        return self
