"""Bytes flipped, cut off and overwritten, in the file and in its log: no reader is silently short or wrong."""

import random
import shutil

import pytest

from attlas.errors import StoreError
from attlas.store import Store, check, read

from ..store.test_damage import killed_with_log
from .form import tell, times


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Twenty results in the file, twenty in the log."""
    return killed_with_log(tmp_path_factory.mktemp("killed"))


def truth(path):
    return {r.key: r.payload for r in read(path)}


def damaged(data, kind, rng):
    data = bytearray(data)
    if kind == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "page":
        at = rng.randrange(len(data) // 4096) * 4096
        data[at : at + 4096] = rng.randbytes(len(data[at : at + 4096]))
    elif kind == "zeros":
        at = rng.randrange(len(data))
        data[at : at + 512] = bytes(len(data[at : at + 512]))
    else:
        del data[rng.randrange(len(data)) :]
    return bytes(data)


@pytest.mark.parametrize("part", ["file", "log"])
def test_corruption(killed, tmp_path, part):
    rng, whole = random.Random(part), truth(killed)
    log = killed.parent / "a.db-wal"
    tally = {"silently short": 0, "wrong": 0, "refused or found": 0, "harmless": 0, "kept": 0, "unkept": 0}
    kinds = ["flip", "flip", "page", "zeros"] + (["cut"] if part == "file" else [])
    for n in range(times(16, 300)):
        folder = tmp_path / str(n)
        folder.mkdir()
        shutil.copy(killed, folder / "a.db")
        shutil.copy(log, folder / "a.db-wal")
        target = folder / ("a.db" if part == "file" else "a.db-wal")
        target.write_bytes(damaged(target.read_bytes(), rng.choice(kinds), rng))
        try:
            shown = truth(folder / "a.db")
        except StoreError:
            tally["refused or found"] += 1
        else:
            tally["wrong"] += any(whole.get(key) != payload for key, payload in shown.items())
            tally["silently short" if len(shown) < len(whole) else "harmless"] += 1
        if n % 4 == 0:
            try:
                intact = check(folder / "a.db").intact
                with Store(folder / "a.db") as store:
                    kept = store.keys()
            except StoreError as error:
                tally["unkept"] += "not an attlas store" not in str(error)  # unless nothing is left to recognise it by
                continue
            tally["kept" if len(kept) == intact else "unkept"] += 1
            assert kept <= whole.keys()
        shutil.rmtree(folder)
    tell(f"corruptions of the {part}: {tally}")
    assert not tally["wrong"]
    assert not tally["silently short"]
    assert not tally["unkept"]
