"""Stores of past versions, kept as they were written, must open for ever."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from attlas.store import Store, check, read, schema

ASSETS = Path(__file__).parent / "assets"
OLD = sorted(ASSETS.glob("schema-*.db"))


def test_there_is_an_asset_for_every_past_schema():
    assert [path.stem for path in OLD] == [f"schema-{n}" for n in range(1, schema.LATEST)]


@pytest.mark.parametrize("asset", OLD, ids=lambda path: path.stem)
def test_an_old_store_is_migrated(asset, tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(asset, path)
    before = {r.key: (r.point, r.seed, r.payload, r.seconds, r.versions) for r in read(path)}  # readable as it is
    assert len(before) == 12
    with Store(path) as store:
        assert store.repaired is None
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone()[0] == schema.LATEST
    after = {r.key: (r.point, r.seed, r.payload, r.seconds, r.versions) for r in read(path)}
    assert after == before
    np.testing.assert_array_equal(next(r for r in read(path) if r.point["i"] == 3).result["x"], [0, 0.5, 1, 1.5])
    assert check(path).good


@pytest.mark.parametrize("asset", OLD, ids=lambda path: path.stem)
def test_damage_in_an_old_store_is_seen(asset, tmp_path):
    path = tmp_path / "old.db"
    data = bytearray(asset.read_bytes())
    data[data.index("old 5".encode("utf-32-le"))] ^= 1
    path.write_bytes(data)
    with Store(path) as store:
        assert "11 intact results are kept" in store.repaired


def test_a_kill_during_migration_leaves_it_whole(tmp_path):
    """Killed before, inside and after every step: the store is then the old one or the new one, with all results."""
    seen = set()
    for stop in range(1, 9):
        path = tmp_path / f"{stop}.db"
        shutil.copy(OLD[0], path)
        # the process is killed when SQLite begins its `stop`-th statement of the migration
        code = (
            "import os, signal, sqlite3; from attlas.store import schema, connection; from pathlib import Path\n"
            f"db = sqlite3.connect({str(path)!r}, isolation_level=None); n = 0\n"
            "db.execute('PRAGMA journal_mode = WAL')\n"
            "def trace(statement):\n"
            "    global n; n += 1\n"
            f"    if n == {stop}: os.kill(os.getpid(), signal.SIGKILL)\n"
            "db.set_trace_callback(trace); schema.migrate(db)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False)
        db = sqlite3.connect(path)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        columns = {row[1] for row in db.execute("PRAGMA table_info(results)")}
        db.close()
        assert version in (1, schema.LATEST)
        assert ("seal" in columns) == (version == schema.LATEST)
        seen.add((done.returncode, version))
        with Store(path) as store:
            assert store.repaired is None
            assert len(store.keys()) == 12
    assert (-signal.SIGKILL, 1) in seen


def test_migration_by_two_drivers_at_once(tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(OLD[0], path)
    code = f"from attlas.store import Store; s = Store({str(path)!r}); print(len(s.keys())); s.close()"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in both] == ["12", "12"]


def test_a_kill_while_the_store_is_made_leaves_one_that_can_be_used(tmp_path):
    """At any moment of making a new store."""
    code = "import sys; from attlas.store import Store; print('ready', flush=True); Store(sys.argv[1]).close()"
    for n in range(12):
        path = tmp_path / f"{n}.db"
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(0.002 * n)
            os.kill(process.pid, signal.SIGKILL)
        with Store(path) as store:
            assert store.keys() == set()
            assert store.repaired is None


def test_a_schema_version_that_the_tables_contradict_is_damage(filled):
    for wrong in (0, 1):
        db = sqlite3.connect(filled)
        db.execute(f"PRAGMA user_version = {wrong}")
        db.close()
        with Store(filled) as store:
            assert store.repaired
            assert len(store.keys()) == 60
