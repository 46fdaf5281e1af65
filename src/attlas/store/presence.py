"""Who is writing to a store: drivers hold byte locks on a file beside it, which the system drops when they die.

Byte 0 is shared by all writers and held alone by whoever rebuilds a damaged store. Byte s > 0 belongs to the driver
of number s. The kernel releases a dead process's locks, so a killed driver's leases are known to be free at once, with
no time-out and no record of hosts or process numbers. A driver that lives but is stopped (SIGSTOP, a suspended machine)
keeps its locks; it is known by the counter that every driver raises in the same file, and that then stands still.

The lock file is found by the name of the store. So that nobody writes to the same file under another name (a file mounted
twice, a link made later), writers also lock a byte of the store itself that depends on the name.
"""

import contextlib
import fcntl
import hashlib
import os
import struct
import threading
import time
from pathlib import Path

from attlas.errors import StoreError

_MOST = 4096
BEAT = 2.0  # seconds between two rises of a driver's counter
FROZEN = 60.0  # seconds without one after which a driver is taken for stopped
_NAMES, _SPREAD = 1 << 40, 1 << 40  # the bytes of a store that stand for its names, far beyond its end
_FLOCK = "hhqqi4x"  # struct flock: kind, whence, start, length, process
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
        self._tied: int | None = None
        self._seen: dict[int, tuple[int, float]] = {}
        self._ended, self._guard = threading.Event(), threading.Lock()
        try:
            fcntl.lockf(self._file, fcntl.LOCK_SH, 1, 0)  # waits while a damaged store is being rebuilt
            self.driver = self._take_number()
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._beat, daemon=True, name="store-beat").start()

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

    def frozen(self, driver: int) -> bool:
        """Return whether the driver of that number has shown no life for a minute, as far as this one has watched it."""
        if driver == self.driver:
            return False
        count, now = self._count(driver), time.monotonic()
        if self._seen.get(driver, (None, now))[0] != count or driver not in self._seen:
            self._seen[driver] = (count, now)
        return (
            count > 0 and now - self._seen[driver][1] > FROZEN
        )  # a driver of an attlas before this one does not count

    def tie(self) -> None:
        """Refuse to go on if somebody writes to the same file under another name. Called once the file is there."""
        if self._tied is not None:
            return
        if not hasattr(fcntl, "F_OFD_SETLK"):
            return  # a system without such locks
        self._tied = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC)
        own = int.from_bytes(hashlib.sha256(self._name.encode()).digest()[:4], "big")
        if not _lock(self._tied, fcntl.F_OFD_SETLK, _NAMES + own, 1):
            return  # this file system has no such locks
        for start, end in ((0, own), (own + 1, _SPREAD)):
            if start < end and not _lock(self._tied, fcntl.F_OFD_GETLK, _NAMES + start, end - start):
                raise StoreError(
                    f"{self._name}: another run is writing to this file under another name; wait for its end"
                )

    def close(self) -> None:
        """Leave."""
        with self._guard:  # the counter must not be written to a handle that by then is another file's
            self._ended.set()
            if self._name in _open_here:
                for handle in (_open_here.pop(self._name), self._tied):
                    if handle is not None:
                        os.close(handle)
                os.close(self._file)

    def _beat(self) -> None:
        """Raise this driver's counter until it leaves."""
        count = 0
        while True:
            count += 1
            with self._guard, contextlib.suppress(OSError):  # a full disk is told by what matters
                if self._ended.is_set():
                    return
                os.pwrite(self._file, struct.pack(">Q", count), _MOST + 8 * self.driver)
            self._ended.wait(BEAT)

    def _count(self, driver: int) -> int:
        return int.from_bytes(os.pread(self._file, 8, _MOST + 8 * driver), "big")

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


def _lock(handle: int, command: int, start: int, length: int) -> bool:
    """Lock bytes for sharing, or ask whether nobody has them; whether it could be had, or is so.

    These locks belong to the handle and not to the process, so SQLite's on the same file are not touched.
    """
    kind = fcntl.F_RDLCK if command == fcntl.F_OFD_SETLK else fcntl.F_WRLCK
    try:
        answer = fcntl.fcntl(handle, command, struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0))
    except OSError:
        return command != fcntl.F_OFD_SETLK
    return command == fcntl.F_OFD_SETLK or struct.unpack(_FLOCK, answer)[0] == fcntl.F_UNLCK


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
