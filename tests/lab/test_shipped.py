"""Results that come with attlas: read where a store has none, compared where it has, whole and small."""

import lzma
from importlib import import_module, resources
from pathlib import Path

import pytest

from attlas import lab
from attlas.claims import find, names
from attlas.errors import DamagedStore
from attlas.store import read

module = import_module("attlas.lab.shipped")
LARGEST = 800_000  # bytes of one claim; all together are some MB
FOLDER = Path(str(resources.files("attlas"))) / "results"


@pytest.mark.parametrize("name", names())
def test_the_quick_tier_is_shipped_in_whole_runs(name):
    (claim,) = find([name])
    there = {record.key for record in lab.shipped([claim])}
    wholes = [{cell.key for cell in lab.plan([claim], "quick", run)} for run in range(10)]
    assert wholes[0] <= there
    full = {cell.key for run in range(10) for cell in lab.plan([claim], "full", run)}
    loose = there - full - {key for whole in wholes if whole <= there for key in whole}
    assert not loose
    assert (FOLDER / f"{name}.results.xz").stat().st_size < LARGEST


def test_nothing_else_is_shipped():
    assert {path.name.removesuffix(".results.xz") for path in FOLDER.glob("*.results.xz")} == set(names())


@pytest.fixture
def packed(fast, tmp_path, monkeypatch):
    """Two runs of a small claim, as if they had come with attlas."""
    lab.run(["test.fast"], "full", store=tmp_path / "made.db", executor="serial", runs=2)
    (claim,) = find(["test.fast"])
    records = list(read(tmp_path / "made.db"))
    folder = tmp_path / "attlas" / "results"
    folder.mkdir(parents=True)
    path = lab.pack(claim, records, folder)
    monkeypatch.setattr(module.resources, "files", lambda _: tmp_path / "attlas")
    module._records.cache_clear()
    yield path
    module._records.cache_clear()


def test_the_same_results_give_the_same_bytes(packed, tmp_path):
    (claim,) = find(["test.fast"])
    (tmp_path / "again").mkdir()
    records = sorted(read(tmp_path / "made.db"), key=lambda record: record.key, reverse=True)
    assert lab.pack(claim, records, tmp_path / "again").read_bytes() == packed.read_bytes()


def test_what_comes_out_is_what_went_in(packed, tmp_path):
    (claim,) = find(["test.fast"])
    made = {record.key: record for record in read(tmp_path / "made.db")}
    back = {record.key: record for record in lab.shipped([claim])}
    assert back == made
    assert all(back[key].row() == made[key].row() for key in made)  # payloads and seals, too


@pytest.mark.parametrize("place", [0, 40, -20])
def test_damage_is_one_sentence(packed, place):
    damaged = bytearray(lzma.decompress(packed.read_bytes()))
    damaged[place] ^= 1
    for data in (lzma.compress(bytes(damaged)), packed.read_bytes()[:-30], b"", b"not results"):
        with pytest.raises(DamagedStore, match="came with attlas cannot be read"):
            module.unpacked("test.fast", data)


def test_they_stand_in_for_a_store_that_has_nothing(packed, tmp_path):
    (without,) = lab.verdicts(["test.fast"], "full", store=tmp_path / "none.db")
    assert (without.status, without.shipped) == ("not run", False)
    (entry,) = lab.verdicts(["test.fast"], "full", store=tmp_path / "none.db", shipped=True, repeats=True)
    assert entry.shipped
    assert entry.verdict is not None
    assert sorted(entry.runs) == [0, 1]
    assert entry.repeated == f"{entry.status} in 2 of 2 runs"
    assert lab.agreement(entry, "full") == ""


def test_a_store_of_ones_own_comes_first_and_is_compared(packed, fast, tmp_path):
    lab.run(["test.fast"], "full", store=tmp_path / "own.db", executor="serial")
    (entry,) = lab.verdicts(["test.fast"], "full", store=tmp_path / "own.db", shipped=True)
    assert not entry.shipped
    assert lab.agreement(entry, "full") == "agrees"


def test_pilots_are_no_repetitions(fast, tmp_path):
    for run in (0, 1000):
        lab.run(["test.fast"], "full", store=tmp_path / "own.db", executor="serial", seed=run)
    (entry,) = lab.verdicts(["test.fast"], "full", store=tmp_path / "own.db", repeats=True)
    assert list(entry.runs) == [0]
    assert entry.repeated == ""
