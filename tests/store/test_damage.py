"""Flipped and truncated bytes, a full disk: nothing damaged is shown as valid, and what is intact is kept."""

import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from attlas.errors import DamagedStore, StoreError
from attlas.store import Record, Store, check, encode, read

from ..conftest import record


def truth(path):
    return {r.key: r.payload for r in read(path)}


def assert_safe(path, whole):
    """After damage: either nothing that counts was hit, or it is found; what is then kept is right."""
    try:
        health = check(path)
    except StoreError as error:  # nothing left to recognise
        return "refused" if re.search("not an attlas store", str(error)) else pytest.fail(str(error))
    try:
        shown = truth(path)
    except StoreError:
        shown = None
    if health.good:
        assert shown == whole
        return "harmless"
    for key, payload in (shown or {}).items():
        assert whole[key] == payload
    with Store(path) as store:
        assert store.repaired
        kept = store.keys()
    repaired = truth(path)
    assert repaired.items() <= whole.items()
    assert set(repaired) == kept
    assert len(repaired) == health.intact
    assert check(path).good
    return len(repaired)


@pytest.mark.parametrize("chunk", range(4))
def test_a_flipped_byte_anywhere(filled, tmp_path, chunk):
    whole, data = truth(filled), filled.read_bytes()
    rng = random.Random(chunk)
    offsets = [*range(chunk, 112, 4)] + [rng.randrange(len(data)) for _ in range(20)]
    lost = []
    for n, offset in enumerate(offsets):
        target = tmp_path / f"flip-{n}.db"
        damaged = bytearray(data)
        damaged[offset] ^= 1 << rng.randrange(8)
        target.write_bytes(damaged)
        outcome = assert_safe(target, whole)
        if isinstance(outcome, int):
            lost.append(60 - outcome)
    assert lost
    assert max(lost) <= 12  # one byte costs at most the results of one page


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_page(filled, tmp_path, seed):
    """A whole page of noise, wherever it lies."""
    whole, data = truth(filled), filled.read_bytes()
    rng = random.Random(seed)
    for n in range(12):
        page = rng.randrange(len(data) // 4096) if n else 0
        target = tmp_path / f"page-{n}.db"
        target.write_bytes(data[: page * 4096] + rng.randbytes(4096) + data[(page + 1) * 4096 :])
        assert_safe(target, whole)


def test_truncation(filled, tmp_path):
    whole, data = truth(filled), filled.read_bytes()
    rng = random.Random(0)
    kept = []
    for n, size in enumerate([1, 50, 100, 4095, 4096, 5000] + [rng.randrange(len(data)) for _ in range(15)]):
        target = tmp_path / f"cut-{n}.db"
        target.write_bytes(data[:size])
        kept.append(assert_safe(target, whole))
    assert any(isinstance(number, int) and 10 < number < 60 for number in kept)


def test_check_names_the_damaged_result(filled):
    data = bytearray(filled.read_bytes())
    at = data.index("result 7".encode("utf-32-le"))
    data[at] ^= 1
    filled.write_bytes(data)
    health = check(filled)
    (entry,) = health.damaged
    assert entry["key"] == record(7).key
    assert entry["claim"] == "test.made"
    assert "payload does not match" in entry["why"]
    assert health.intact == 59
    with pytest.raises(DamagedStore, match="is damaged"):
        list(read(filled))


@pytest.mark.parametrize(
    "column", ["claim", "version", "point", "seed", "payload", "seconds", "versions", "seal", "key"]
)
def test_an_altered_column_is_seen(filled, column):
    """Altered through SQLite, so that the file itself is sound: only the seals can tell."""
    db = sqlite3.connect(filled)
    (old,) = db.execute(f"SELECT {column} FROM results WHERE id = 5").fetchone()
    new = old + 1 if isinstance(old, int | float) else old[:-1] + (b"x" if isinstance(old, bytes) else "x")
    db.execute(f"UPDATE results SET {column} = ? WHERE id = 5", (new,))
    db.commit()
    db.close()
    health = check(filled)
    assert not health.structure
    assert [entry["row"] for entry in health.damaged] == [5]
    assert health.intact == 59
    with Store(filled) as store:
        assert "59 intact results are kept" in store.repaired
        assert len(store.keys()) == 59
    assert (filled.parent / "filled.db.damaged-1").exists()


def test_results_in_the_log_survive_a_damaged_file(tmp_path):
    """A killed driver leaves results in the log; if then the head of the file is damaged, they are still found."""
    path = tmp_path / "a.db"
    code = (
        "import os; from tests.conftest import record; from attlas.store import Store; "
        f"s = Store({str(path)!r}); [s.put(record(i)) for i in range(30)]; os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    with open(path, "r+b") as file:
        file.write(b"\0" * 4096)
    with Store(path) as store:
        assert len(store.keys()) == 30
    assert check(path).good


def killed_with_log(tmp_path):
    """A store of 20 results in the file and 20 in the log of a killed driver."""
    path = tmp_path / "a.db"
    with Store(path) as store:
        for i in range(20):
            store.put(record(i))
    code = (
        "import os; from tests.conftest import record; from attlas.store import Store; "
        f"s = Store({str(path)!r}); [s.put(record(i)) for i in range(20, 40)]; os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    return path


def test_damage_in_the_log_loses_nothing_that_is_whole(tmp_path):
    """SQLite drops all of a log after its first bad byte; the results in it are still there to be found."""
    path = killed_with_log(tmp_path)
    log = tmp_path / "a.db-wal"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    health = check(path)
    assert not health.good
    assert any("cannot be reached" in line for line in health.structure)
    with Store(path) as store:
        assert store.repaired
        assert len(store.keys()) == health.intact >= 39


def test_a_kill_at_any_moment_of_a_rebuild_loses_nothing_that_is_whole(tmp_path):
    """Killed before every rename and link that a rebuild makes."""
    for stop in range(1, 7):
        folder = tmp_path / str(stop)
        folder.mkdir()
        path = killed_with_log(folder)
        with open(path, "r+b") as file:
            file.seek(30)
            file.write(b"damage")
        code = (
            "import os, sys; from attlas.store import Store\n"
            "calls = 0\n"
            "def fatal(name):\n"
            "    original = getattr(os, name)\n"
            "    def call(*a, **k):\n"
            "        global calls; calls += 1\n"
            f"        if calls == {stop}: os._exit(9)\n"
            "        return original(*a, **k)\n"
            "    setattr(os, name, call)\n"
            "[fatal(name) for name in ('replace', 'link', 'fsync')]\n"
            f"Store({str(path)!r}).close()"
        )
        subprocess.run([sys.executable, "-c", code], check=False)
        with Store(path) as store:
            assert len(store.keys()) == 40, stop


def test_reading_in_the_writing_process_costs_no_lock(tmp_path):
    """Closing a handle of the file drops SQLite's locks of the whole process; another driver then takes the log away."""
    path = tmp_path / "a.db"
    other = (
        "from tests.conftest import record; from attlas.store import Store\n"
        f"with Store({str(path)!r}) as s: [s.put(record(i)) for i in range(100, 110)]"
    )
    with Store(path) as store:
        for i in range(10):
            store.put(record(i))
            assert len(list(read(path))) >= i + 1
            check(path)
            with pytest.raises(StoreError, match="already open"):
                Store(path)
            if i in (3, 6):
                subprocess.run([sys.executable, "-c", other], check=True)
    assert len(truth(path)) == 20
    assert check(path).good


def test_a_damaged_schema_text_is_damage(filled):
    data = bytearray(filled.read_bytes())
    data[data.index(b"CREATE INDEX results_of_claim") + 3] = 0xAF
    filled.write_bytes(data)
    assert not check(filled).good
    with Store(filled) as store:
        assert len(store.keys()) == 60


def test_a_store_cut_short_is_damaged_not_foreign(filled):
    data = filled.read_bytes()
    filled.write_bytes(data[: len(data) // 2])
    health = check(filled)
    assert any("pages early" in line for line in health.structure)
    filled.write_bytes(data[:9000])
    health = check(filled)
    assert not health.good
    with Store(filled) as store:
        assert store.repaired


def test_rows_that_lost_a_page_are_named_though_the_file_is_beyond_sqlite(filled):
    """The head is destroyed, and one overflow page of result 2: its key is still on its leaf page."""
    data = bytearray(filled.read_bytes())
    at = data.index(np.full(300, 2.0).tobytes()) // 4096 * 4096
    data[at : at + 4096] = bytes(4096)
    data[:16] = bytes(16)
    filled.write_bytes(data)
    health = check(filled)
    assert health.intact == 59
    assert [entry["key"] for entry in health.damaged] == [record(2).key]


def test_a_store_that_is_removed_while_it_is_written_to(tmp_path):
    path = tmp_path / "a.db"
    store = Store(path)
    store.put(record(0))
    path.unlink()
    with pytest.raises(StoreError, match="removed or replaced"):
        store.put(record(1))
    store.close()


def test_damage_while_another_run_uses_the_store_is_refused(filled):
    code = f"from attlas.store import Store; s = Store({str(filled)!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline().strip() == "open"
        data = bytearray(filled.read_bytes())
        data[-100] ^= 255
        filled.write_bytes(data)
        before = filled.read_bytes()
        with pytest.raises(DamagedStore, match="in use by another run"):
            Store(filled)
        assert filled.read_bytes() == before
        other.communicate("\n")


def test_disk_full_leaves_the_previous_state(tmp_path):
    """SQLite's own limit of the file size, which fails as a full disk does."""
    path = tmp_path / "a.db"
    with Store(path) as store:
        store._db.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match="the disk is full"):  # noqa: PT012
            for i in range(1000):
                store.put(record(i))
        kept = store.keys()
    assert kept == {record(i).key for i in range(len(kept))}
    assert 0 < len(kept) < 1000
    assert check(path).good


def test_a_write_that_fails_leaves_the_previous_state(tmp_path):
    """The system refuses to let the file grow, in the middle of a sweep."""
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.put(record(0))
    code = (
        "import resource, sys; from tests.conftest import record; from attlas.store import Store\n"
        "from attlas.errors import StoreError\n"
        f"s = Store({str(path)!r}); resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))\n"
        "try:\n for i in range(1000): s.put(record(i)); print(i, flush=True)\n"
        "except StoreError as error: sys.exit(str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Every result committed before is kept" in done.stderr
    said = [int(line) for line in done.stdout.split()]
    assert 1 < len(said) < 1000
    assert {record(i).key for i in said} <= set(truth(path))
    assert check(path).good
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 200_000


def test_full_disk_while_rebuilding_keeps_the_damaged_file(filled, monkeypatch):
    from attlas.store import salvage

    data = bytearray(filled.read_bytes())
    data[-100] ^= 255
    filled.write_bytes(data)

    def full(db):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(salvage.schema, "migrate", full)
    with pytest.raises(StoreError):
        Store(filled)
    assert filled.read_bytes() == bytes(data)
    assert not list(filled.parent.glob("*.rebuil*"))
    monkeypatch.undo()
    with Store(filled) as store:
        assert len(store.keys()) >= 58


def test_copies_of_a_store_are_equal(filled, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(filled, copy)
    assert check(copy).digest == check(filled).digest


@pytest.mark.parametrize("seconds", [0.0, 1.0, 3.0, 1e6])
def test_a_whole_number_of_seconds_survives_a_rebuild(tmp_path, seconds):
    """SQLite keeps it as an integer; salvage reads the page without SQLite."""
    path = tmp_path / "a.db"
    kept = [Record("test.made", 1, {"i": i}, i, encode({"x": 1.0}), seconds, {"attlas": "0"}) for i in range(5)]
    with Store(path) as store:
        for each in kept:
            store.put(each)
    assert check(path).intact == 5
    data = bytearray(path.read_bytes())
    data[63] = 9  # the schema version
    path.write_bytes(data)
    with Store(path) as store:
        assert "its 5 intact results are kept" in store.repaired
    assert {r.key: r.row() for r in read(path)} == {r.key: r.row() for r in kept}
