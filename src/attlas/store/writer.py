"""The driver's side of the store: put results, lease points so that no two drivers compute the same one."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from attlas.errors import DamagedStore, InputError, StoreError
from attlas.store import connection, salvage
from attlas.store.check import intact
from attlas.store.presence import Presence
from attlas.store.record import INSERT, Record


def repair(path: Path | str) -> str | None:
    """Rebuild a store from its intact results if anything in it is damaged; return what was done, None if nothing was.

    Opening a store does the same, except that it does not decode results whose seals are unbroken. Nobody but one who seals
    what attlas does not write makes such a result that cannot be decoded; here it is removed, too.

    Examples
    --------
    >>> from attlas import store
    >>> store.repair("attlas.db") is None  # nothing was damaged
    True
    """
    if not connection.present(path):
        raise InputError(f"{path}: there is no store here; `attlas run` makes one")
    with Store(path, thorough=True) as store:
        return store.repaired


class Store:
    """A store open for writing. Each `put` is one transaction: on disk when it returns, or not there at all.

    Opening verifies the whole file, a hundred thousand results in about two seconds. If anything is damaged, the file is
    rebuilt from the results that are intact and the damaged one set aside; `repaired` then says so. Several drivers may
    share one store.

    Parameters
    ----------
    path : Path or str
        Created if it does not exist.
    thorough : bool, default False
        Decode every result as well, which takes several times as long: see `repair`.

    Raises
    ------
    InputError
        If the path is a folder or lies in none.
    StoreError
        If the file is another program's, of a newer attlas, or cannot be written.
    """

    def __init__(self, path: Path | str, *, thorough: bool = False) -> None:
        connection.check_path(Path(path))  # before links are followed, which may lead nowhere
        self.path, self._thorough = Path(path).resolve(), thorough
        self.repaired: str | None = None
        sound = self._intact()  # refuses a file that is not ours before anything is written beside it
        self._presence = Presence(self.path)
        db = None
        try:
            self._db = db = self._open(sound)
            self._presence.tie()
            self._identity = self.path.stat().st_ino
            self._do(self._forget_leases)
        except BaseException:
            if db is not None:
                db.close()
            self._presence.close()
            raise

    def put(self, record: Record) -> None:
        """Commit one result and end its lease. A result that is already there stays as it is."""

        def act() -> None:
            self._db.execute(INSERT, record.row())
            self._db.execute("DELETE FROM leases WHERE key = ?", (record.key,))

        self._do(act)

    def lease(self, keys: Iterable[str]) -> tuple[str | None, list[str]]:
        """Lease the first of `keys` that is neither in the store nor leased to a driver at work.

        A driver that is stopped (`Presence.frozen`) loses its leases; if it wakes, its results are the same as those that
        were computed in its place, and the first to arrive stay.

        Returns the key, or None if there is none now, and those passed over because their results are there already.
        """
        chosen: list[str] = []
        there: list[str] = []

        def act() -> None:
            held = dict(self._db.execute("SELECT key, driver FROM leases"))
            at_work = {
                driver: self._presence.alive(driver) and not self._presence.frozen(driver)
                for driver in set(held.values())
            }
            for key in keys:
                if key in held and at_work[held[key]]:
                    continue
                if self._db.execute("SELECT 1 FROM results WHERE key = ?", (key,)).fetchone():
                    there.append(key)
                    continue
                self._db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?)", (key, self._presence.driver))
                chosen.append(key)
                return

        self._do(act)
        return (chosen[0] if chosen else None), there

    def put_all(self, records: Iterable[Record]) -> int:
        """Commit many results in one transaction, all or none; return how many were not there before."""
        added = 0

        def act() -> None:
            nonlocal added
            for record in records:
                added += self._db.execute(INSERT, record.row()).rowcount

        self._do(act)
        return added

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every result's payload, by the key of the result."""
        with connection.explained(self.path):
            return dict(self._db.execute("SELECT key, payload_sha256 FROM results"))

    def versions(self) -> dict[str, dict[str, str]]:
        """Return what every result was computed with: its versions, by its key."""
        with connection.explained(self.path):
            texts = self._db.execute("SELECT key, versions FROM results").fetchall()
        told = {text: json.loads(text) for text in {text for _, text in texts}}
        return {key: told[text] for key, text in texts}

    def release(self, key: str) -> None:
        """Give a lease back, for a point that failed."""
        self._do(lambda: self._db.execute("DELETE FROM leases WHERE key = ?", (key,)))

    def keys(self) -> set[str]:
        """Return the keys of all results."""
        with connection.explained(self.path):
            return {row[0] for row in self._db.execute("SELECT key FROM results")}

    def close(self) -> None:
        """End the leases and leave; the last to leave folds the log into the file."""
        try:
            if self.path.exists():
                self._do(self._forget_leases)
        finally:
            self._db.close()
            self._presence.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, act: Callable[[], object]) -> None:
        with connection.explained(self.path):
            if not self.path.exists() or self.path.stat().st_ino != self._identity:
                raise StoreError("the file was removed or replaced while this run was writing to it; run again")
            with connection.transaction(self._db):
                act()

    def _forget_leases(self) -> None:
        """Drop the leases of this driver's number: its own, or of a dead driver that had the number before."""
        self._db.execute("DELETE FROM leases WHERE driver = ?", (self._presence.driver,))

    def _open(self, sound: bool) -> sqlite3.Connection:
        if not sound:
            self._rebuild(unless=self._intact)
        try:
            return connection.write(self.path)
        except DamagedStore:  # what a check does not see, such as a schema version that the tables contradict
            if self.repaired:
                raise
            self._rebuild(unless=lambda: False)
            return connection.write(self.path)

    def _intact(self) -> bool:
        return not self.path.exists() or not self.path.stat().st_size or intact(self.path, thorough=self._thorough)

    def _rebuild(self, unless: Callable[[], bool]) -> None:
        if not self._presence.alone():
            raise DamagedStore(
                f"{self.path}: damaged, and in use by another run; stop that run, then run again to rebuild the store"
            )
        if not unless():  # another driver may have rebuilt it in the meantime
            with connection.explained(self.path):
                kept, aside = salvage.rebuild(self.path)
            self.repaired = (
                f"{self.path} was damaged: its {kept} intact results are kept, the others will be computed again;"
                f" the damaged file is now {aside.name}"
            )
        self._presence.share()
