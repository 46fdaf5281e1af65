"""The reader's side of the store. A reader never blocks a writer and never writes."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from attlas.errors import DamagedStore
from attlas.store import connection, log, schema
from attlas.store.record import Record, shown, verified

_TOGETHER = 200  # rows that are fetched at a time


def read(path: Path | str, claims: Iterable[str] | None = None) -> Iterator[Record]:
    """Yield the records of a store, of the given claims or of all, sorted by claim, point and seed.

    Every record is verified before it is shown. Results are fetched a few at a time, so that a store may be larger than
    memory; what is committed after the first is not shown.

    Raises
    ------
    DamagedStore
        At the first result that is not what was written, or before any if the log beside the file holds results that
        SQLite would leave out.

    Examples
    --------
    >>> from attlas import store
    >>> [record.seed for record in store.read("attlas.db", ["features.invariance"])]
    [0, 1, 2]
    """
    path = Path(path)
    with connection.explained(path):
        db = connection.read(path)
    try:
        with connection.explained(path):
            refuse_damaged_log(path)
            ids = _ids(db, claims)
        for start in range(0, len(ids), _TOGETHER):
            # each time anew: a reader that holds a snapshot while it is being consumed would let the log grow
            with connection.explained(path):
                rows = _rows(db, ids[start : start + _TOGETHER])
            for row in rows:
                yield _verified(row, path)
    finally:
        db.close()


def stored_keys(path: Path | str) -> set[str]:
    """Return the keys of all results in a store, without reading the results.

    Examples
    --------
    >>> from attlas import store
    >>> len(store.stored_keys("attlas.db"))
    3
    """
    path = Path(path)
    with connection.explained(path), closing(connection.read(path)) as db:
        refuse_damaged_log(path)
        return {row[0] for row in db.execute("SELECT key FROM results")} if schema.version(db) else set()


def refuse_damaged_log(path: Path) -> None:
    """Raise `DamagedStore` if SQLite would show less of a store than was committed."""
    if fault := log.fault(path.resolve()):
        raise DamagedStore(f"{path}: {fault}; `attlas run` keeps every result in it that is intact")


def _ids(db: sqlite3.Connection, claims: Iterable[str] | None) -> list[int]:
    if schema.version(db) == 0:
        return []
    wanted = None if claims is None else sorted(set(claims))
    where = "" if wanted is None else f" WHERE claim IN ({', '.join('?' * len(wanted))})"
    found = db.execute(f"SELECT id FROM results{where} ORDER BY claim, version, point, seed", wanted or ())  # noqa: S608
    return [row[0] for row in found]


def _rows(db: sqlite3.Connection, ids: list[int]) -> list[tuple[object, ...]]:
    query = f"SELECT id, {schema.columns(db)} FROM results WHERE id IN ({', '.join('?' * len(ids))})"  # noqa: S608
    found = {row[0]: row[1:] for row in db.execute(query, ids)}
    if len(found) < len(ids):
        raise DamagedStore("results disappeared while they were read")
    return [found[number] for number in ids]


def _verified(row: tuple[object, ...], path: Path) -> Record:
    try:
        return verified(row)
    except DamagedStore as error:
        raise DamagedStore(
            f"{path}: the result {shown(row[0])} of {shown(row[1])} is damaged ({error});"
            " `attlas store check` lists all, `attlas store repair` removes them, `attlas run` then computes them again"
        ) from error
