"""A short queue for answers that take a moment to compute: a few at once, a few waiting, the rest are told to come back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from attlas.explorer.queue import QueueFull


class Lane:
    """Lets a few in at a time, so that no flood of requests takes every thread of the server.

    Parameters
    ----------
    at_once : int
        How many may compute at the same time.
    waiting : int
        How many more may wait for that; one more is refused.
    seconds : float
        How long one waits at most.
    """

    def __init__(self, at_once: int = 1, waiting: int = 3, seconds: float = 30.0) -> None:
        self._doors, self._seats = threading.Semaphore(at_once), threading.Semaphore(at_once + waiting)
        self._seconds = seconds

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Wait for one's turn, or raise `QueueFull`."""
        if not self._seats.acquire(blocking=False):
            raise QueueFull("too many data files are being computed; try again in a moment")
        try:
            if not self._doors.acquire(timeout=self._seconds):
                raise QueueFull("the data files before this one take too long; try again in a minute")
            try:
                yield
            finally:
                self._doors.release()
        finally:
            self._seats.release()
