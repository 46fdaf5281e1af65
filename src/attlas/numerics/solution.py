"""What a solver returns: a value that cannot be mistaken for converged when it is not."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from attlas.errors import ConvergenceError

T = TypeVar("T")


class Status(StrEnum):
    """How an iteration ended."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "out of steps"
    OUT_OF_TIME = "out of time"
    DIVERGED = "diverged"
    INACCURATE = "inaccurate"

    @property
    def advice(self) -> str:
        """What to do next, in one clause; nothing where all is well."""
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "",
    Status.OUT_OF_STEPS: "allow more (max_steps) or ask for less (tol) where possible, or take it as it is (throw=False)",
    Status.OUT_OF_TIME: "allow more seconds, or none to count steps alone",
    Status.DIVERGED: "check the scale of the input, or take smaller steps where possible",
    Status.INACCURATE: "the quadrature behind it is too coarse: give it more nodes or samples",
}


@dataclass(frozen=True)
class Solution(Generic[T]):
    """The outcome of a solver.

    Attributes
    ----------
    value : float or array
        The last iterate, or the best one met where the solver says so.
    status : Status
        Only ``Status.CONVERGED`` may be used as a result.
    residual : float
        The size of the last update, in the units the solver states.
    steps : int
        Iterations taken.
    history : array
        One number (or row) per iteration, in the order they were made.
    """

    value: T
    status: Status
    residual: float
    steps: int
    history: NDArray[Any] = field(default_factory=lambda: np.empty(0))

    @property
    def converged(self) -> bool:
        """Whether the value may be used."""
        return self.status is Status.CONVERGED

    def or_raise(self, what: str = "the iteration") -> Self:
        """Return self if converged, else raise `ConvergenceError` saying how far it came and what to do."""
        if not self.converged:
            raise ConvergenceError(
                f"{what} did not converge: {self.status} after {self.steps} steps, residual {self.residual:.3g};"
                f" {self.status.advice}",
                self,
            )
        return self
