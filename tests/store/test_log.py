"""A damaged write-ahead log: SQLite shows what comes before the damage, and a reader must not take that for all."""

import os
import random
import shutil
import subprocess
import sys

import pytest

from attlas.errors import DamagedStore, InputError, StoreError
from attlas.store import Store, check, present, read, stored_keys
from attlas.store.log import FRAME, HEADER, examine, fault

from ..conftest import record
from .test_damage import killed_with_log


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    return killed_with_log(tmp_path_factory.mktemp("killed"))


def copied(killed, folder, log):
    folder.mkdir()
    shutil.copy(killed, folder / "a.db")
    (folder / "a.db-wal").write_bytes(log)
    return folder / "a.db"


def test_the_log_of_a_killed_driver_is_read_to_its_end(killed, tmp_path):
    log = (killed.parent / "a.db-wal").read_bytes()
    assert examine(log) == ""
    assert len(list(read(copied(killed, tmp_path / "x", log)))) == 40
    for size in (0, 10, HEADER, HEADER + 7, len(log) - 1):  # a write that was cut short never was one
        assert examine(log[:size]) == ""


def test_no_flip_in_the_log_makes_a_reader_silently_short(killed, tmp_path):
    """Each of many flips: every reader shows all results or says that it cannot, and the next run keeps what is whole."""
    log, rng = (killed.parent / "a.db-wal").read_bytes(), random.Random(0)
    frames = (len(log) - HEADER) // FRAME
    last = HEADER + (frames - 1) * FRAME
    offsets = [*range(HEADER), *range(last, last + 24), *(rng.randrange(len(log)) for _ in range(60))]
    silent = []
    for n, offset in enumerate(offsets):
        data = bytearray(log)
        data[offset] ^= 1 << rng.randrange(8)
        if not examine(bytes(data)):
            silent.append(offset)
        if n % 8 == 0:
            path = copied(killed, tmp_path / str(n), bytes(data))
            with pytest.raises(DamagedStore, match="log"):
                list(read(path))
            assert not check(path).good
            with Store(path) as store:
                assert store.repaired
                assert len(store.keys()) >= 39
            assert len(list(read(path))) >= 39
    assert not silent


def test_the_mark_of_a_transaction_is_missed_when_it_is_gone(killed):
    """Its end is a number of pages; an altered bit may make it 0, which looks like a transaction that never ended."""
    log = (killed.parent / "a.db-wal").read_bytes()
    last = HEADER + ((len(log) - HEADER) // FRAME - 1) * FRAME
    pages = int.from_bytes(log[last + 4 : last + 8], "big")
    for bit in range(32):
        data = bytearray(log)
        data[last + 4 : last + 8] = (pages ^ (1 << bit)).to_bytes(4, "big")
        assert examine(bytes(data))


def test_a_writer_at_work_is_no_damage(tmp_path):
    path = tmp_path / "a.db"
    code = (
        "import sys; from tests.conftest import record; from attlas.store import Store\n"
        f"with Store({str(path)!r}) as s:\n for i in range(4000): s.put(record(i)); i or print('go', flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline().strip() == "go"
        looks = 0
        while writer.poll() is None and looks < 300:
            assert fault(path) == ""
            looks += 1
        before = len(list(read(path)))
        writer.kill()
    assert fault(path) == ""
    assert len(list(read(path))) >= before >= 1


def test_what_an_unfinished_transaction_left_is_no_damage(tmp_path):
    """Frames of a transaction that was rolled back stay in the log, and the next one writes over their beginning."""
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.put(record(0))
        store._db.execute("PRAGMA cache_size = 1")
        store._db.execute("BEGIN")
        for i in range(1, 400):
            from attlas.store.record import INSERT

            store._db.execute(INSERT, record(i).row())
        store._db.execute("ROLLBACK")
        store.put(record(400))
        assert (tmp_path / "a.db-wal").stat().st_size > 50 * FRAME
        assert fault(path) == ""
        assert len(list(read(path))) == 2


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-lock"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_plain_file_beside_a_store_is_refused_and_not_waited_for(filled, suffix, kind):
    beside = filled.with_name(filled.name + suffix)
    beside.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(beside)
    elif kind == "link":
        beside.symlink_to("/dev/zero")
    else:
        beside.mkdir()
    for act in (Store, lambda path: list(read(path)), check, stored_keys, present):
        with pytest.raises(InputError, match="beside it is no plain file"):
            act(filled)


def test_a_log_that_attlas_would_not_leave_is_not_read(filled):
    with open(f"{filled}-wal", "wb") as file:
        file.truncate(40 << 30)  # it takes no room on the disk
    for act in (Store, lambda path: list(read(path)), check, stored_keys, present):
        with pytest.raises(StoreError, match=r"has 42.9 GB, and attlas reads up to 2.1"):
            act(filled)


def test_a_log_is_read_a_few_frames_at_a_time(killed, monkeypatch):
    """Whatever the number of frames that are in memory, the same is found, in good logs and in damaged ones."""
    log, rng = (killed.parent / "a.db-wal").read_bytes(), random.Random(1)
    damaged = []
    for _ in range(20):
        data = bytearray(log)
        data[rng.randrange(HEADER, len(log))] ^= 1 << rng.randrange(8)
        damaged.append(bytes(data))
    at_once = [examine(data) for data in (log, *damaged)]
    assert at_once[0] == ""
    assert any(at_once)
    for count in (1, 3):
        monkeypatch.setattr("attlas.store.log._TOGETHER", count)
        assert [examine(data) for data in (log, *damaged)] == at_once


def test_frames_of_an_earlier_round_alone_are_no_fault(killed):
    """A log that was begun anew and not yet written to: its frames carry other salts than its head."""
    log = bytearray((killed.parent / "a.db-wal").read_bytes())
    for start in range(HEADER, len(log) - FRAME + 1, FRAME):
        log[start + 8 : start + 16] = b"\xff" * 8
    assert examine(bytes(log)) == ""
