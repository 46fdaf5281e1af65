"""Things made from a store, made again in the background when the store has changed: nobody waits for a disk or a lock."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Followed(Generic[T]):
    """What `make` last made of a store.

    Parameters
    ----------
    store : path
        It need not exist.
    make : callable
    start : T
        What there is until something was made.
    patience : float
        Made again at most every so many seconds: a sweep may be writing.

    Attributes
    ----------
    error : str
        Why the last attempt failed; what was made before it stands.
    """

    def __init__(self, store: Path, make: Callable[[Path], T], start: T, patience: float = 10.0) -> None:
        self._store, self._make, self._made, self._patience = store, make, start, patience
        self._seen: tuple[int, ...] | None = None
        self._when = -float("inf")
        self._busy = threading.Lock()
        self.error = ""

    def look(self, wait: float = 0.0) -> T:
        """Return what was last made; who finds it stale has it made again, and waits for that so many seconds."""
        stale = self._seen != stamp(self._store) and time.monotonic() - self._when > self._patience
        if stale and self._busy.acquire(blocking=False):
            work = threading.Thread(target=self._again, daemon=True, name="explorer-store")
            work.start()
            work.join(wait)
        return self._made

    def _again(self) -> None:
        seen = stamp(self._store)  # before: what changes meanwhile is looked at again
        try:
            self._made, self.error = self._make(self._store), ""
        except Exception as error:  # such as a damaged store: told until it has changed
            self.error = str(error)
        finally:
            self._seen, self._when = seen, time.monotonic()
            self._busy.release()


def stamp(store: Path) -> tuple[int, ...]:
    """Return what changes with a store: the times and sizes of its file and its log; nothing if there is no store."""
    files = (path for path in (store, store.with_name(store.name + "-wal")) if path.exists())
    return tuple(number for path in files for number in (path.stat().st_mtime_ns, path.stat().st_size))
