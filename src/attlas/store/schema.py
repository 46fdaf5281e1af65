"""The schema of the store and the steps from every earlier one. Steps are never changed, only added."""

import hashlib
import json
import sqlite3
from functools import cache

from attlas.errors import DamagedStore, StoreError
from attlas.store.record import COLUMNS, seal

APPLICATION = 0x6174746C  # "attl", so that another program's SQLite file is told from ours
PAGE = 4096
# the tables that `ANALYZE` adds, exactly as SQLite writes them: anything else of such a name is somebody's
_STATISTICS = (
    ("table", "sqlite_stat1", "CREATETABLEsqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "CREATETABLEsqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
)

_RESULTS = """
CREATE TABLE results (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  claim TEXT NOT NULL,
  version INTEGER NOT NULL,
  point TEXT NOT NULL,
  seed INTEGER NOT NULL,
  payload BLOB NOT NULL,
  payload_sha256 TEXT NOT NULL,
  seconds REAL NOT NULL,
  versions TEXT NOT NULL
)"""


def _create(db: sqlite3.Connection) -> None:
    """0 -> 1: results."""
    db.execute(_RESULTS)
    db.execute("CREATE INDEX results_of_claim ON results (claim)")
    db.execute(f"PRAGMA application_id = {APPLICATION}")


def _seal(db: sqlite3.Connection) -> None:
    """1 -> 2: a seal over settings and provenance as well, and leases so that several drivers can share a store."""
    db.execute("ALTER TABLE results ADD COLUMN seal TEXT NOT NULL DEFAULT ''")
    db.create_function("attlas_seal", 9, seal, deterministic=True)
    db.execute(
        "UPDATE results SET seal ="
        " attlas_seal(key, claim, version, point, seed, payload, payload_sha256, seconds, versions)"
    )
    db.execute("CREATE TABLE leases (key TEXT PRIMARY KEY, driver INTEGER NOT NULL)")


STEPS = (_create, _seal)
LATEST = len(STEPS)


def migrate(db: sqlite3.Connection) -> None:
    """Bring a store, or an empty file, to the latest schema in one transaction: all of it or nothing."""
    if version(db) == LATEST:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        present = version(db)  # another driver may have been faster
        if present == 0 and db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            raise DamagedStore("it has tables but no schema version")
        for step in STEPS[present:]:
            step(db)
        db.execute(f"PRAGMA user_version = {LATEST}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def columns(db: sqlite3.Connection) -> str:
    """Return the columns of a result, for a query, as far as the schema of this store has them."""
    return ", ".join(COLUMNS if version(db) == LATEST else COLUMNS[:-1])


def version(db: sqlite3.Connection) -> int:
    """Return the schema version of a store, or raise `StoreError` if it is newer than this attlas.

    The version is four bytes of the file's head. If they name another version than the one whose tables the store has, they
    are damaged; a newer store has tables that this attlas does not know.
    """
    present = int(db.execute("PRAGMA user_version").fetchone()[0])
    if 0 <= present <= LATEST:
        return present
    if _digest(db) in _digests():
        raise DamagedStore(f"its schema version reads {present}, but its tables are those of an earlier one")
    raise StoreError(
        f"it was written by a newer attlas (schema {present}; this attlas reads up to {LATEST}): upgrade attlas"
    )


def expected(db: sqlite3.Connection) -> None:
    """Refuse a store whose tables, indices, views and triggers are not exactly those of its version.

    Raises
    ------
    DamagedStore
        If they are those of another version, or one of them is altered or missing.
    StoreError
        If there is something that attlas never makes, such as a trigger: it would be run.
    """
    db.execute("BEGIN")  # another driver may be bringing it to the latest schema just now
    try:
        present = version(db)
        same = _digest(db) == _digests()[present]
    finally:
        db.execute("COMMIT")
    if same:
        return
    ours = {(kind, name) for kind, name, _ in _objects(_made(present))}
    for kind, name, _ in _objects(db):
        if (kind, name) not in ours and kind in ("trigger", "view"):
            raise StoreError(
                f"it has a {kind} {name!r}, which attlas did not make; results are not read from such a file"
            )
    raise DamagedStore("its tables are not those of its schema version")


def _objects(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    found = db.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name")
    # versions of SQLite write spaces differently, and may add statistics
    objects = [(kind, name, "".join(sql.split())) for kind, name, sql in found]
    return [each for each in objects if each not in _STATISTICS]


def _digest(db: sqlite3.Connection) -> str:
    """Return the seal of a schema: the SHA-256 over all that it makes."""
    return hashlib.sha256(json.dumps(_objects(db)).encode()).hexdigest()


@cache
def _digests() -> tuple[str, ...]:
    """Return the seal of every version, from that of an empty file on; steps that change none would not be told apart."""
    found = []
    for number in range(LATEST + 1):
        db = _made(number)
        found.append(_digest(db))
        db.close()
    return tuple(found)


def _made(number: int) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    for step in STEPS[:number]:
        step(db)
    return db
