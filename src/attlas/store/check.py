"""Is the store what was written? Which results are not?"""

import hashlib
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attlas.errors import DamagedStore
from attlas.store import connection, schema
from attlas.store.record import verified
from attlas.store.salvage import sealed_records


@dataclass
class Health:
    """What a check found.

    Attributes
    ----------
    whole : int
        Results whose seals are unbroken, wherever in the file they were found.
    damaged : list of dict
        One entry per damaged result: its row, key and claim as far as they can be read, why, and if it can be
        recovered.
    structure : list of str
        What is wrong with the file itself, in SQLite's words.
    digest : str
        SHA-256 over keys and payloads of the whole results: equal for two stores that hold the same results.
    """

    whole: int = 0
    damaged: list[dict[str, Any]] = field(default_factory=list)
    structure: list[str] = field(default_factory=list)
    digest: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and not self.structure


def check(path: Path | str) -> Health:
    """Verify every byte that matters: the structure of the file and the seals of every result."""
    path = Path(path)
    health = Health()
    try:
        db = connection.read(path)
    except DamagedStore as error:
        health.structure.append(str(error))
    else:
        try:
            health.structure += structure(db)
            if schema.version(db):
                health.damaged += _damaged(db)
        finally:
            db.close()
    records = {record.key: record for record in sealed_records(path)}
    for entry in health.damaged:  # an earlier copy of it may be whole
        entry["recoverable"] = entry["key"] in records
    health.whole = len(records)
    health.digest = digest({key: record.payload for key, record in records.items()})
    return health


def digest(payloads: dict[str, bytes]) -> str:
    """Return the SHA-256 over sorted keys and payloads."""
    total = hashlib.sha256()
    for key in sorted(payloads):
        total.update(key.encode() + hashlib.sha256(payloads[key]).digest())
    return total.hexdigest()


def structure(db: sqlite3.Connection) -> list[str]:
    """Return what SQLite finds wrong with the file, nothing if it is whole."""
    try:
        found = [row[0] for row in db.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def _damaged(db: sqlite3.Connection) -> list[dict[str, Any]]:
    found, seen = [], set()
    try:
        for row in db.execute(f"SELECT id, {schema.columns(db)} FROM results ORDER BY id"):  # noqa: S608
            seen.add(row[1])
            try:
                verified(row[1:])
            except DamagedStore as error:
                found.append({"row": row[0], "key": row[1], "claim": row[2], "why": str(error)})
    except sqlite3.DatabaseError:
        pass  # reported by the structure check; the rows behind are found by key below
    try:
        for (key,) in db.execute("SELECT key FROM results INDEXED BY sqlite_autoindex_results_1"):
            if key not in seen:
                found.append({"row": None, "key": key, "claim": None, "why": "its row cannot be read"})
    except sqlite3.DatabaseError:
        pass
    return found
