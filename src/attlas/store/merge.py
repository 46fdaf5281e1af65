"""A store from stores: a consistent copy while a run is writing, and the results of several machines in one."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attlas.errors import InputError
from attlas.store.connection import check_path
from attlas.store.reader import read
from attlas.store.record import Record
from attlas.store.writer import Store

_TOGETHER = 1000  # results that are committed at a time


@dataclass(frozen=True)
class Merged:
    """What a merge did.

    Attributes
    ----------
    added : int
        Results that the first store did not have.
    same : int
        Results that it had, bit for bit.
    differing : list of str
        Keys of results that it has with other bits, such as those of another kind of processor: its own stay.
    """

    added: int
    same: int
    differing: list[str]


def copy(source: Path | str, target: Path | str) -> int:
    """Write a copy of a store and return how many results it holds; a run may be writing to the store meanwhile.

    Every result is verified on the way. Copying the file alone, with `cp` or a backup program, leaves out what is still in
    the log beside it, and may catch the file in the middle of a write.

    Raises
    ------
    InputError
        If there is a file at `target`.
    DamagedStore
        If a result is not what was written; nothing is then left at `target`.

    Examples
    --------
    >>> from attlas import store
    >>> store.copy("attlas.db", "backup.db")
    3
    """
    source, target = Path(source), Path(target)
    check_path(target)
    if target.exists():
        raise InputError(f"{target} exists; give a new name, or add to it with `attlas store merge {target} {source}`")
    unfinished = target.with_name(f".{target.name}.unfinished")
    count = 0
    try:
        _remove(unfinished)
        with Store(unfinished) as keeper:
            for some in _batches(read(source)):
                count += keeper.put_all(some)
        os.link(unfinished, target)  # fails if another program was faster
    except FileExistsError as error:
        raise InputError(f"{target} exists; give a new name") from error
    finally:
        _remove(unfinished)
    return count


def merge(target: Path | str, sources: Sequence[Path | str]) -> Merged:
    """Add the results of other stores to the first, which is created if it does not exist.

    Every result of every store is verified before the first is changed. Where two stores hold the same point, the result of
    the first stays.

    Raises
    ------
    DamagedStore
        If any result of a source is not what was written; the target is then as it was.

    Examples
    --------
    >>> from attlas import store
    >>> store.copy("attlas.db", "all.db")
    3
    >>> store.merge("all.db", ["other.db"]).added  # of three: one was there
    2
    """
    target, stores = Path(target), [Path(source) for source in sources]
    for source in stores:
        if target.exists() and source.exists() and target.samefile(source):
            raise InputError(f"{source} cannot be merged into itself")
        for _ in read(source):
            pass
    added = same = 0
    differing: list[str] = []
    with Store(target) as keeper:
        digests = keeper.digests()
        for source in stores:
            for some in _batches(read(source)):
                new = [record for record in some if record.key not in digests]
                there = [record for record in some if record.key in digests]
                apart = [record.key for record in there if record.digest != digests[record.key]]
                added += keeper.put_all(new)
                same += len(there) - len(apart)
                differing += apart
                digests.update({record.key: record.digest for record in new})
    return Merged(added, same, differing)


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    records = iter(records)
    while some := list(islice(records, _TOGETHER)):
        yield some


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-lock"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
