"""Reading results out of a damaged file, page by page, and rebuilding the store from those that are intact.

SQLite reaches rows through a tree, so one bad byte near the root hides everything beneath. But every row carries its
own seals, so it can be taken from any page on which it is found, whatever became of the tree. The layout of pages,
cells and records is that of the SQLite file format (sqlite.org/fileformat2.html).
"""

import itertools
import os
import re
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attlas.errors import DamagedStore
from attlas.store import schema
from attlas.store.log import FRAME, FRAME_HEADER, HEADER
from attlas.store.presence import read_raw
from attlas.store.record import INSERT, Record, verified

PAGE = schema.PAGE
_LEAF = 0x0D


def rebuild(path: Path) -> tuple[int, Path]:
    """Replace a damaged store by one that holds its intact results; set the damaged file aside.

    The caller must be the only writer. Returns the number of results kept and where the damaged file now is. Killed at any
    moment, nothing intact is lost: a rebuilt file that did not reach its place is read again by the next rebuild.
    """
    path = path.resolve()
    building, rebuilt = (path.with_name(f"{path.name}.{word}") for word in ("rebuilding", "rebuilt"))
    building.unlink(missing_ok=True)
    db = sqlite3.connect(building, isolation_level=None)
    try:
        db.execute(f"PRAGMA page_size = {PAGE}")
        db.execute("PRAGMA synchronous = FULL")
        schema.migrate(db)
        db.execute("BEGIN")
        kept = 0
        for source in (path, rebuilt):
            for record in sealed_records(source) if source.exists() else ():
                kept += db.execute(INSERT, record.row()).rowcount
        db.execute("COMMIT")
    except BaseException:
        db.close()
        building.unlink(missing_ok=True)
        raise
    db.close()
    os.replace(building, rebuilt)
    aside = _unused(path)
    os.link(path, aside)  # so that the path is never without a file
    for suffix in ("-wal", "-shm"):  # a log left beside the new file would be played back into it
        if (log := Path(f"{path}{suffix}")).exists():
            os.replace(log, f"{aside}{suffix}")
    os.replace(rebuilt, path)
    _sync_folder(path.parent)
    return kept, aside


def sealed_records(path: Path) -> Iterator[Record]:
    """Yield every committed record of a store file and its log that is intact and can be read; some more than once."""
    for row in _all_rows(path):
        try:
            record = verified(row)
            record.decoded()
        except DamagedStore:
            continue
        yield record


def broken_keys(path: Path) -> dict[str, str]:
    """Return the keys of the rows that are there but not intact, with their claims, as far as they can be read."""
    intact = {record.key for record in sealed_records(path)}
    found = {}
    for row in _all_rows(path, partial=True):
        if (
            len(row) >= 2
            and isinstance(row[0], str)
            and isinstance(row[1], str)
            and re.fullmatch("[0-9a-f]{64}", row[0])
        ):
            found[row[0]] = row[1]
    return {key: claim for key, claim in found.items() if key not in intact}


def _all_rows(path: Path, partial: bool = False) -> Iterator[tuple[Any, ...]]:
    pages = _pages(path.resolve())
    latest, first = dict(pages), dict(reversed(pages))
    for number, page in pages:
        start = 100 if number == 1 else 0
        if page[start : start + 1] == bytes([_LEAF]):
            yield from _rows(page, start, (latest, first), partial)


def _pages(path: Path) -> list[tuple[int, bytes]]:
    """Return (number, page) for the pages of the file, then for the committed ones of its log in the order of writing."""
    data = read_raw(path)
    pages = [(i // PAGE + 1, data[i : i + PAGE]) for i in range(0, len(data), PAGE)]
    log = Path(f"{path}-wal")
    if not log.exists():
        return pages
    data = log.read_bytes()
    frames = [data[i : i + FRAME] for i in range(HEADER, len(data), FRAME)]
    frames = [frame for frame in frames if len(frame) == FRAME]
    # a log is written over from its start; the salts tell the present round from what an earlier one left behind
    for _, group in itertools.groupby(frames, key=lambda frame: frame[8:16]):
        present = list(group)
        commits = [i for i, frame in enumerate(present) if any(frame[4:8])]
        for frame in present[: commits[-1] + 1 if commits else 0]:
            pages.append((struct.unpack(">I", frame[:4])[0], frame[FRAME_HEADER:]))
    return pages


def _rows(
    page: bytes, start: int, overlays: tuple[dict[int, bytes], ...], partial: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows on a leaf page, with overflow pages taken from each overlay in turn.

    With `partial` what the page itself holds of a row is enough, and the columns that it holds are given.
    """
    if len(page) < start + 8:
        return
    cells = struct.unpack(">H", page[start + 3 : start + 5])[0]
    for i in range(min(cells, PAGE // 4)):
        for pages in overlays:
            try:
                offset = struct.unpack(">H", page[start + 8 + 2 * i : start + 10 + 2 * i])[0]
                record = _record(_payload(page, offset, {} if partial else pages, partial), partial)
                yield tuple(record[1:])  # the id stands first, as NULL
            except (struct.error, IndexError, KeyError, ValueError, TypeError, OverflowError):
                continue


def _payload(page: bytes, offset: int, pages: dict[int, bytes], partial: bool) -> bytes:
    """Return the payload of a table-leaf cell, following its overflow chain unless `partial`."""
    size, offset = _varint(page, offset)
    _, offset = _varint(page, offset)  # the row id
    if size > 1 << 30:
        raise ValueError("no record is that large")
    largest = PAGE - 35
    if size <= largest:
        return page[offset : offset + size]
    least = (PAGE - 12) * 32 // 255 - 23
    local = least + (size - least) % (PAGE - 4)
    local = local if local <= largest else least
    parts = [page[offset : offset + local]]
    if partial:
        return parts[0]
    missing = size - local
    (following,) = struct.unpack(">I", page[offset + local : offset + local + 4])
    while missing > 0:
        overflow = pages[following]
        (following,) = struct.unpack(">I", overflow[:4])
        parts.append(overflow[4 : 4 + min(missing, PAGE - 4)])
        missing -= PAGE - 4
    return b"".join(parts)


def _record(data: bytes, partial: bool) -> list[Any]:
    """Decode a SQLite record into Python values; the columns that are complete if `partial`."""
    header, at = _varint(data, 0)
    kinds = []
    while at < header:
        kind, at = _varint(data, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value: Any = None
        size = 0
        if 1 <= kind <= 6:
            size = (1, 2, 3, 4, 6, 8)[kind - 1]
            value = int.from_bytes(data[at : at + size], "big", signed=True)
        elif kind == 7:
            size = 8
            (value,) = struct.unpack(">d", data[at : at + 8])
        elif kind in (8, 9):
            value = kind - 8
        elif kind >= 12:
            size = (kind - 12) // 2
            value = data[at : at + size]
            value = value.decode("utf-8", "surrogateescape") if kind % 2 else value
        elif kind:
            raise ValueError("reserved type")
        at += size
        if at > len(data):
            if partial:
                break
            raise ValueError("record cut short")
        values.append(value)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a SQLite variable-length integer and where it ends."""
    value = 0
    for i in range(9):
        byte = data[at + i]
        if i == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    raise AssertionError("unreachable")


def _unused(path: Path) -> Path:
    """Return a name for the damaged file that nothing has yet."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
