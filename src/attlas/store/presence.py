"""Who is writing to a store: drivers hold byte locks on a file beside it, which the system drops when they die.

Byte 0 is shared by all writers and held alone by whoever rebuilds a damaged store. Byte s > 0 belongs to the driver
of number s. The kernel releases a dead process's locks, so a killed driver's leases are known to be free at once, with
no time-out and no record of hosts or process numbers.
"""

import fcntl
import os
import time
from pathlib import Path

from attlas.errors import StoreError

_MOST = 4096
# byte locks belong to the process, so one writer per store and process; with a handle for raw reading, once there is one
_open_here: dict[str, int | None] = {}


class Presence:
    """A driver's place among the writers of one store."""

    def __init__(self, path: Path) -> None:
        self._name = os.path.realpath(path)
        if self._name in _open_here:
            raise StoreError(f"{path}: already open for writing in this process; close the other first")
        try:
            self._file = os.open(f"{self._name}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written here ({error.strerror}); check the permissions") from error
        _open_here[self._name] = None
        try:
            fcntl.lockf(self._file, fcntl.LOCK_SH, 1, 0)  # waits while a damaged store is being rebuilt
            self.driver = self._take_number()
        except BaseException:
            self.close()
            raise

    def alone(self, patience: float = 5.0) -> bool:
        """Try to become the only writer, for rebuilding; the number of the driver stays."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, 0)  # two that both wait for the other to let go would wait forever
        deadline = time.monotonic() + patience
        while True:
            if self._try(fcntl.LOCK_EX, 0):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)

    def share(self) -> None:
        """Let other writers in again."""
        fcntl.lockf(self._file, fcntl.LOCK_SH, 1, 0)

    def alive(self, driver: int) -> bool:
        """Return whether the driver of that number still runs."""
        if driver == self.driver:
            return True
        if self._try(fcntl.LOCK_EX, driver):
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, driver)
            return False
        return True

    def close(self) -> None:
        """Leave."""
        if self._name in _open_here:
            handle = _open_here.pop(self._name)
            if handle is not None:
                os.close(handle)
            os.close(self._file)

    def _take_number(self) -> int:
        for number in range(1, _MOST):
            if self._try(fcntl.LOCK_EX, number):
                return number
        raise StoreError(f"more than {_MOST} drivers share this store")

    def _try(self, kind: int, byte: int) -> bool:
        try:
            fcntl.lockf(self._file, kind | fcntl.LOCK_NB, 1, byte)
        except OSError:
            return False
        return True


def read_raw(path: Path, size: int = -1) -> bytes:
    """Return the first bytes of a store file, or all, without disturbing SQLite.

    Closing any handle of a file drops every lock that the process holds on it, SQLite's too. So while this process has the
    store open for writing, one handle is kept open until that ends.
    """
    name = os.path.realpath(path)
    if name not in _open_here:
        with open(name, "rb") as file:
            return file.read(size)
    handle = _open_here[name]
    if handle is None:
        handle = _open_here[name] = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    return os.pread(handle, os.fstat(handle).st_size if size < 0 else size, 0)
