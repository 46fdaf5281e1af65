"""Something made from a store, and made again in the background when the store changes: no visitor waits for a disk."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class StoreView(Generic[T]):
    """The latest value of a function of a store.

    Parameters
    ----------
    store : path
        It need not exist.
    make : callable
        ``make(store) -> T``.
    start : T
        The value until there is one.
    patience : float
        Seconds between two calls of `make`, at least: a sweep may be writing.

    Attributes
    ----------
    error : str
        Why the last call of `make` failed; the value before it stays.
    """

    def __init__(self, store: Path, make: Callable[[Path], T], start: T, patience: float = 10.0) -> None:
        self._store, self._make, self._value, self._patience = store, make, start, patience
        self._stamp: tuple[int, ...] | None = None
        self._when = -float("inf")
        self._guard = threading.Lock()
        self._work: threading.Thread | None = None
        self.error = ""

    def current(self, wait: float = 0.0) -> T:
        """Return the latest value, and have the next one made if the store has changed.

        Parameters
        ----------
        wait : float
            Seconds to wait for a first value.
        """
        with self._guard:
            stale = self._stamp != stamp(self._store) and time.monotonic() - self._when > self._patience
            if stale and not (self._work and self._work.is_alive()):
                self._work = threading.Thread(target=self._update, daemon=True, name="explorer-store")
                self._work.start()
        if self._stamp is None and self._work:
            self._work.join(wait)
        return self._value

    def _update(self) -> None:
        before = stamp(self._store)  # taken first: a change during the work is seen by the next call
        try:
            self._value, self.error = self._make(self._store), ""
        except Exception as error:  # such as a damaged store: reported until it changes
            self.error = str(error)
        self._stamp, self._when = before, time.monotonic()


def stamp(store: Path) -> tuple[int, ...]:
    """Return what changes with a store: the times and sizes of its file and its log; nothing if there is no store."""
    files = (path for path in (store, store.with_name(store.name + "-wal")) if path.exists())
    return tuple(number for path in files for number in (path.stat().st_mtime_ns, path.stat().st_size))
