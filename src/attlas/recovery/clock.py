"""A stop by the clock, for those who ask for one: without it, steps and starts alone decide when a search ends."""

import time

from attlas.inputs import real
from attlas.numerics import Status


class Clock:
    """Seconds spent since it was made, and whether `max_seconds` are over; never, if there are none."""

    def __init__(self, max_seconds: float | None = None) -> None:
        self._began = time.perf_counter()
        self._end = None if max_seconds is None else self._began + real(max_seconds, "max_seconds", above=0)

    @property
    def seconds(self) -> float:
        """Seconds spent."""
        return time.perf_counter() - self._began

    @property
    def left(self) -> float | None:
        """Seconds left, more than zero, to be given on as `max_seconds`; None if there is no limit."""
        return None if self._end is None else max(self._end - time.perf_counter(), 1e-9)

    @property
    def share(self) -> float:
        """Seconds spent over `max_seconds`; zero if there is no limit."""
        return 0.0 if self._end is None else min(1.0, self.seconds / (self._end - self._began))

    @property
    def out(self) -> bool:
        """Whether time is up."""
        return self._end is not None and time.perf_counter() > self._end

    def status(self, otherwise: Status) -> Status:
        """Return `Status.OUT_OF_TIME` if time is up, else what is given."""
        return Status.OUT_OF_TIME if self.out else otherwise
