"""What the store promises a driver and a reader."""

import multiprocessing
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from attlas.errors import InputError, StoreError
from attlas.store import Store, canonical, check, key, read
from attlas.store.schema import LATEST

from ..conftest import record


def test_round_trip(tmp_path):
    made = record(3, x=np.arange(4.0), y=2.5, label="a")
    with Store(tmp_path / "a.db") as store:
        store.put(made)
    (back,) = read(tmp_path / "a.db")
    assert (back.key, back.point, back.seed, back.seconds, back.versions) == (
        key("test.made", 1, {"i": 3}, 0), {"i": 3}, 0, 0.5, {"attlas": "0", "numpy": "2"},
    )  # fmt: skip
    np.testing.assert_array_equal(back.result["x"], np.arange(4.0))
    assert back.result["y"] == 2.5


def test_durability_settings(tmp_path):
    """Write-ahead log and full synchronisation, as a connection of the driver has them."""
    with Store(tmp_path / "a.db") as store:
        assert store._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert store._db.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert store._db.execute("PRAGMA user_version").fetchone()[0] == LATEST


def test_first_result_stays(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.put(record(0, x=1.0))
        store.put(record(0, x=2.0))
    (back,) = read(tmp_path / "a.db")
    assert back.result["x"] == 1.0


def test_nothing_about_the_host_is_kept(filled):
    import getpass
    import socket

    data = filled.read_bytes()
    for secret in (socket.gethostname(), str(filled.parent), getpass.getuser() + "@"):
        assert secret.encode() not in data


def test_leases_are_one_each_and_end(tmp_path):
    keys = [record(i).key for i in range(3)]
    with Store(tmp_path / "a.db") as store:
        assert [store.lease(keys)[0] for _ in range(4)] == [*keys, None]
        store.put(record(1))
        assert store.lease(keys) == (None, [keys[1]])
        store.release(keys[0])
        assert store.lease(keys)[0] == keys[0]
    with Store(tmp_path / "a.db") as store:  # closing ended them
        assert store.lease(keys) == (keys[0], [])


def test_leases_of_a_killed_driver_are_free_at_once(tmp_path):
    path, keys = tmp_path / "a.db", [record(i).key for i in range(2)]
    code = (
        f"import os; from attlas.store import Store; s = Store({str(path)!r}); print(s.lease({keys!r})[0], flush=True);"
        "input()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline().strip() == keys[0]
        with Store(path) as store:
            assert store.lease(keys)[0] == keys[1]  # the other is alive
            holder.kill()
            holder.wait()
            assert store.lease(keys)[0] == keys[0]


def test_one_writer_per_process(tmp_path):
    with Store(tmp_path / "a.db"), pytest.raises(StoreError, match="already open for writing"):
        Store(tmp_path / "a.db")


def put_many(path, start):
    with Store(path) as store:
        for i in range(start, start + 40):
            store.put(record(i))


def test_writers_and_readers_at_once(tmp_path):
    """Four processes write, this one reads all the time: nobody waits for long, nothing is lost, no error."""
    path = tmp_path / "a.db"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=put_many, args=(path, 40 * i)) for i in range(4)]
    for writer in writers:
        writer.start()
    seen = 0
    while any(writer.is_alive() for writer in writers):
        if path.exists() and path.stat().st_size:
            count = len(list(read(path)))
            assert count >= seen
            seen = count
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(list(read(path))) == 160
    assert check(path).good


def test_a_long_read_blocks_no_writer(filled):
    reader = sqlite3.connect(f"file:{filled}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM results").fetchone()
    with Store(filled) as store:
        store.put(record(1000))
    reader.close()
    assert len(list(read(filled))) == 61


def test_a_read_only_folder_can_be_read(filled):
    """As another user's results: neither file nor folder can be written to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        path.write_bytes(filled.read_bytes())
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        # root may write anywhere, so the reader stops being root once everything is imported
        code = (
            "import os, sys; from attlas.store import read; os.getuid() or os.setuid(65534);"
            "print(len(list(read(sys.argv[1]))))"
        )
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        Path(folder).chmod(0o755)
        assert done.stdout.strip() == "60", done.stderr


@pytest.mark.parametrize("make", ["folder", "no folder", "other program", "text file", "newer"])
def test_a_path_that_is_no_store_is_refused_and_left_alone(tmp_path, filled, make):
    path = tmp_path / "x" / "target.db"
    if make != "no folder":
        path.parent.mkdir()
    if make == "folder":
        path.mkdir()
    elif make == "other program":
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE contacts (name TEXT)")
        db.execute("INSERT INTO contacts VALUES ('Ada')")
        db.commit()
        db.close()
    elif make == "text file":
        path.write_text("not a database\n" * 100)
    elif make == "newer":
        path.write_bytes(filled.read_bytes())
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE annotations (key TEXT)")  # a newer one has tables that we do not know
        db.execute("PRAGMA user_version = 99")
        db.close()
    before = {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()} if path.parent.exists() else None
    expected = {
        "folder": (InputError, "is a folder"),
        "no folder": (InputError, "there is no folder"),
        "other program": (StoreError, "not an attlas store"),
        "text file": (StoreError, "not an attlas store"),
        "newer": (StoreError, "newer attlas .schema 99; this attlas reads up to 2"),
    }[make]
    for act in (Store, lambda p: list(read(p)), check):
        with pytest.raises(expected[0], match=expected[1]):
            act(path)
    after = {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()} if path.parent.exists() else None
    side_files = {p for p in after or () if p.name.endswith(("-shm", "-wal"))}
    assert {p: b for p, b in (after or {}).items() if p not in side_files} == (before or {})


def test_reading_what_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no store here"):
        list(read(tmp_path / "none.db"))
    assert not list(tmp_path.iterdir())


def test_results_come_sorted_whatever_order_they_were_put(tmp_path):
    with Store(tmp_path / "a.db") as store:
        for i in (5, 1, 3):
            store.put(record(i))
    assert [canonical(r.point) for r in read(tmp_path / "a.db")] == ['{"i":1}', '{"i":3}', '{"i":5}']
    assert not list(read(tmp_path / "a.db", ["another.claim"]))


def test_a_link_is_its_target(tmp_path):
    """Two names of one file share leases, log and damage."""
    link, real = tmp_path / "link.db", tmp_path / "real" / "a.db"
    real.parent.mkdir()
    link.symlink_to(real)
    keys = [record(i).key for i in range(2)]
    with Store(real) as store:
        store.put(record(5))
    code = f"from attlas.store import Store; s = Store({str(real)!r}); print(s.lease({keys!r})[0], flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline().strip() == keys[0]
        with Store(link) as store:
            assert store.lease(keys)[0] == keys[1]
            other.kill()
            other.wait()
            assert store.lease(keys)[0] == keys[0]
    data = bytearray(real.read_bytes())
    data[30:36] = b"damage"
    real.write_bytes(data)
    with Store(link) as store:
        assert store.repaired
    assert link.is_symlink()
    assert check(real).good


def test_a_left_log_in_a_read_only_folder_is_not_passed_over(tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        code = (
            "import os; from tests.conftest import record; from attlas.store import Store; "
            f"s = Store({str(path)!r}); [s.put(record(i)) for i in range(5)]; os._exit(9)"
        )
        subprocess.run([sys.executable, "-c", code], check=False)
        (Path(folder) / "a.db-shm").unlink()
        for file in Path(folder).iterdir():
            file.chmod(0o444)
        Path(folder).chmod(0o555)
        code = "import os, sys; from attlas.store import read; os.getuid() or os.setuid(65534); list(read(sys.argv[1]))"
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        Path(folder).chmod(0o755)
    assert "left results in its log" in done.stderr
