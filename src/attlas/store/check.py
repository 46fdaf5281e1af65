"""Is the store what was written? Which results are not?"""

import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attlas.errors import DamagedStore
from attlas.store import connection, log, schema
from attlas.store.presence import read_raw
from attlas.store.record import Record, verified
from attlas.store.salvage import broken_keys, sealed_records


@dataclass
class Health:
    """What a check found.

    Attributes
    ----------
    intact : int
        Results whose seals are unbroken, wherever in the file they were found.
    damaged : list of dict
        One entry per damaged result: its row, key and claim as far as they can be read, why, and if it can be
        recovered.
    structure : list of str
        What is wrong with the file itself, in SQLite's words.
    digest : str
        SHA-256 over keys and payloads of the intact results: equal for two stores that hold the same results.
    """

    intact: int = 0
    damaged: list[dict[str, Any]] = field(default_factory=list)
    structure: list[str] = field(default_factory=list)
    digest: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and not self.structure


def check(path: Path | str) -> Health:
    """Verify every byte that matters: the structure of the file, the seals of every result, and that each can be reached.

    Examples
    --------
    >>> from attlas import store
    >>> store.check("attlas.db").damaged
    []
    """
    path = Path(path)
    connection.check_path(path)
    health = Health()
    # read before SQLite looks: what is found now is committed, so SQLite must show it, whoever is writing meanwhile
    records = {record.key: record for record in sealed_records(path)} if path.is_file() else {}
    shown: set[str] = set()
    try:
        db = connection.read(path)
    except DamagedStore:
        health.structure.append("its head or its tables cannot be read")
    else:
        with connection.explained(path), closing(db):
            health.structure += structure(db)
            if schema.version(db):
                health.damaged += _damaged(db, records, shown)
    if path.is_file() and (fault := log.fault(path.resolve())):
        health.structure.append(fault)
    lost = len(records.keys() - shown)
    if lost:
        health.structure.append(f"{lost} intact results are in the file but cannot be reached through its tables")
    if not health.good:
        known = {entry["key"] for entry in health.damaged}
        for key, claim in broken_keys(path).items():
            if key not in known:
                health.damaged.append({"row": None, "key": key, "claim": claim, "why": "its row cannot be read"})
        health.structure += _cut_short(path)
    for entry in health.damaged:  # an earlier copy of it may be intact
        entry["recoverable"] = entry["key"] in records
    health.intact = len(records)
    health.digest = digest({key: record.payload for key, record in records.items()})
    return health


def intact(path: Path, *, thorough: bool = False) -> bool:
    """Return whether nothing at all is wrong with a store: in seconds, for a hundred thousand results.

    As `check`, but it stops at the first fault and does not look for what cannot be reached (only a fault can hide it).
    Unless it is to be `thorough`, sealed payloads are not decoded: damage breaks their seals; only somebody who seals what
    attlas does not write makes one that cannot be.
    """
    if log.fault(path.resolve()):
        return False
    try:
        db = connection.read(path)
    except DamagedStore:
        return False
    with connection.explained(path), closing(db):
        try:
            if structure(db):
                return False
            if schema.version(db):
                for row in db.execute(f"SELECT {schema.columns(db)} FROM results"):  # noqa: S608
                    record = verified(row)
                    if thorough:
                        record.decoded()
        except (sqlite3.DatabaseError, UnicodeDecodeError, DamagedStore):
            return False
    return True


def digest(payloads: dict[str, bytes]) -> str:
    """Return the SHA-256 over sorted keys and payloads.

    Examples
    --------
    >>> from attlas import store
    >>> store.digest({"key": b"payload"})[:12]
    'dec16233cc84'
    """
    total = hashlib.sha256()
    for key in sorted(payloads):
        total.update(key.encode() + hashlib.sha256(payloads[key]).digest())
    return total.hexdigest()


def structure(db: sqlite3.Connection) -> list[str]:
    """Return what SQLite finds wrong with the file, nothing if it is intact."""
    try:
        found = [row[0] for row in db.execute("PRAGMA integrity_check")]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def _damaged(db: sqlite3.Connection, records: Mapping[str, Record], shown: set[str]) -> list[dict[str, Any]]:
    """Return the damaged results that SQLite can still list, and note in `shown` the keys of the intact ones."""
    found, seen = [], set()
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):  # the structure check reports it; keys are found below
        for row in db.execute(f"SELECT id, {schema.columns(db)} FROM results ORDER BY id"):  # noqa: S608
            seen.add(row[1])
            try:
                record = verified(row[1:])
                if (
                    record.key not in records or records[record.key].digest != record.digest
                ):  # those are decoded already
                    record.decoded()
                shown.add(record.key)
            except DamagedStore as error:
                found.append({"row": row[0], "key": row[1], "claim": row[2], "why": str(error)})
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        for (key,) in db.execute("SELECT key FROM results INDEXED BY sqlite_autoindex_results_1"):
            if key not in seen:
                found.append({"row": None, "key": key, "claim": None, "why": "its row cannot be read"})
    return found


def _cut_short(path: Path) -> list[str]:
    """Return a line if the file has fewer pages than its head says."""
    size, head = path.stat().st_size, read_raw(path, 32)
    pages = int.from_bytes(head[28:32], "big")
    missing = pages - size // schema.PAGE
    return [f"the file ends {missing} of {pages} pages early; what they held is lost"] if 0 < missing < 1 << 24 else []
