"""The schema of the store and the steps from every earlier one. Steps are never changed, only added."""

import sqlite3

from attlas.errors import DamagedStore, StoreError
from attlas.store.record import COLUMNS, seal

APPLICATION = 0x6174746C  # "attl", so that another program's SQLite file is told from ours
PAGE = 4096

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
    """Return the schema version of a store, or raise `StoreError` if it is newer than this attlas."""
    present = int(db.execute("PRAGMA user_version").fetchone()[0])
    if not 0 <= present <= LATEST:
        raise StoreError(
            f"it was written by a newer attlas (schema {present}; this attlas reads up to {LATEST}): upgrade attlas"
        )
    return present
