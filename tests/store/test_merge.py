"""Copies of stores that are in use, and stores of several machines in one."""

import shutil
import subprocess
import sys

import pytest

from attlas.errors import DamagedStore, InputError
from attlas.store import Store, check, copy, merge, read

from ..conftest import record


def put(path, numbers, **result):
    with Store(path) as store:
        for i in numbers:
            store.put(record(i, **result))
    return path


def test_a_copy_while_a_run_writes_is_consistent(tmp_path):
    path = tmp_path / "a.db"
    code = (
        "from tests.conftest import record; from attlas.store import Store\n"
        f"with Store({str(path)!r}) as s:\n for i in range(600): s.put(record(i)); print(i, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        for n in range(3):
            said = int(writer.stdout.readline())
            count = copy(path, tmp_path / f"copy-{n}.db")
            health = check(tmp_path / f"copy-{n}.db")
            assert health.good
            assert count == health.intact > said  # everything that was acknowledged before the copy began
        writer.communicate()
    shutil.copy(path, tmp_path / "cp.db")
    assert not list(tmp_path.glob(".*"))


def test_a_copy_overwrites_nothing_and_of_damage_there_is_none(filled, tmp_path):
    (tmp_path / "there.db").write_bytes(b"mine")
    with pytest.raises(InputError, match="exists"):
        copy(filled, tmp_path / "there.db")
    assert (tmp_path / "there.db").read_bytes() == b"mine"
    data = bytearray(filled.read_bytes())
    data[data.index("result 7".encode("utf-32-le"))] ^= 1
    filled.write_bytes(data)
    with pytest.raises(DamagedStore):
        copy(filled, tmp_path / "copy.db")
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]
    with pytest.raises(InputError, match="no store here"):
        copy(tmp_path / "none.db", tmp_path / "copy.db")


def test_results_of_two_machines_become_one_store(tmp_path):
    ours, theirs = put(tmp_path / "a.db", range(10)), put(tmp_path / "b.db", range(5, 15))
    put(tmp_path / "c.db", [20])
    put(theirs, [30], x=1.0)
    put(ours, [30], x=2.0)
    found = merge(ours, [theirs, tmp_path / "c.db"])
    assert (found.added, found.same) == (6, 5)
    assert found.differing == [record(30).key]
    kept = {r.point["i"]: r for r in read(ours)}
    assert sorted(kept) == [*range(15), 20, 30]
    assert kept[30].result["x"] == 2.0
    assert kept[12].row() == record(12).row()
    assert check(ours).good


def test_a_damaged_store_is_not_merged(tmp_path):
    ours, theirs = put(tmp_path / "a.db", range(3)), put(tmp_path / "b.db", range(3, 6))
    data = bytearray(theirs.read_bytes())
    data[data.index(record(4).payload) + 300] ^= 1
    theirs.write_bytes(data)
    before = check(ours).digest
    with pytest.raises(DamagedStore, match="payload does not match"):
        merge(ours, [theirs])
    assert check(ours).digest == before


def test_a_store_is_not_merged_into_itself(tmp_path):
    path = put(tmp_path / "a.db", range(3))
    with pytest.raises(InputError, match="itself"):
        merge(path, [path])
