"""A damaged write-ahead log: SQLite shows what comes before the damage, and a reader must not take that for all."""

import random
import shutil
import subprocess
import sys

import pytest

from attlas.errors import DamagedStore
from attlas.store import Store, check, read
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
