"""How long work tells how far it has come: everything iterative takes ``progress``, a function of one `Event`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan


@dataclass(frozen=True)
class Event:
    """The progress of a long computation.

    Attributes
    ----------
    step : int
        Steps made.
    of : int
        Steps at most; it may end earlier.
    text : str
        One line for people.
    value : float
        The number to watch, such as an error or a residual; NaN if there is none.
    true_error : float
        The error itself where the truth was given; NaN elsewhere.
    """

    step: int
    of: int
    text: str
    value: float = nan
    true_error: float = nan

    @property
    def share(self) -> float:
        """Steps made over steps at most."""
        return min(1.0, self.step / self.of) if self.of > 0 else 0.0


Progress = Callable[[Event], object]
