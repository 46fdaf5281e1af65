"""One file under two names, and files that are none."""

import os
import shutil
import stat
import subprocess
import sys

import pytest

from attlas.errors import InputError, StoreError
from attlas.store import Store, check, presence, read

from ..conftest import record


@pytest.mark.parametrize("act", [Store, lambda path: list(read(path)), check], ids=["write", "read", "check"])
def test_a_hard_link_is_refused(filled, tmp_path, act):
    """Each name would have a log of its own, and two writers would lose each other's results."""
    other = tmp_path / "other.db"
    os.link(filled, other)
    for path in (filled, other):
        with pytest.raises(InputError, match=r"has 2 names \(hard links\)"):
            act(path)
    other.unlink()
    assert len(list(read(filled))) == 60


def test_a_link_made_while_a_run_writes_is_refused_and_loses_nothing(tmp_path):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.put(record(0))
        os.link(path, tmp_path / "b.db")
        with pytest.raises(InputError, match="hard links"):
            Store(tmp_path / "b.db")
        store.put(record(1))
        (tmp_path / "b.db").unlink()
    assert len(list(read(path))) == 2


def test_the_lock_is_tied_to_the_file_and_not_to_its_name(tmp_path, monkeypatch):
    """As a file mounted at two places: one name each, one file. The second writer is told."""
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    code = f"from attlas.store import Store; s = Store({str(path)!r}); print('open', flush=True); input()"
    with Store(path) as store:
        store.put(record(0))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout.readline().strip() == "open"
        os.link(path, other)
        second = presence.Presence(other)
        with pytest.raises(StoreError, match="under another name"):
            second.tie()
        second.close()
        first.communicate("\n")
    third = presence.Presence(other)
    third.tie()  # the first has left
    third.close()


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for act in (Store, lambda p: list(read(p)), check):
        with pytest.raises(InputError, match="no plain file"):
            act(path)
    with pytest.raises(InputError, match="no plain file"):
        Store("/dev/null")
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_symbolic_link_is_another_way_to_the_same_store(filled, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(filled)
    assert len(list(read(link))) == 60
    with Store(link) as store, pytest.raises(StoreError, match="already open"):
        Store(filled)
    assert store.repaired is None


def test_a_driver_that_is_stopped_is_told_from_one_that_works(tmp_path):
    """SIGSTOP keeps its locks; its counter stands still, and another driver takes its points over."""
    path, keys = tmp_path / "a.db", [record(0).key]
    quick = "from attlas.store import presence; presence.BEAT = 0.02\n"
    code = (
        quick + f"from attlas.store import Store; s = Store({str(path)!r}); print(s.lease({keys!r})[0], flush=True)\n"
    )
    code += "input(); from tests.conftest import record; s.put(record(0)); s.close(); print('woke', flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline().strip() == keys[0]
        other = quick + (
            "import time; presence.FROZEN = 0.5\n"
            f"from attlas.store import Store; s = Store({str(path)!r}); end = time.monotonic() + 1.5; taken = None\n"
            f"while taken is None and time.monotonic() < end: taken = s.lease({keys!r})[0]; time.sleep(0.05)\n"
            "print(taken, flush=True)"
        )

        def attempt():
            done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
            return done.stdout.strip()

        assert attempt() == "None"  # it works
        holder.send_signal(19)
        assert attempt() == keys[0]  # it is stopped
        holder.send_signal(18)
        assert "woke" in holder.communicate("\n")[0]
    assert len(list(read(path))) == 1
    assert check(path).good


def test_a_copied_lock_file_means_nothing(filled, tmp_path):
    shutil.copy(f"{filled}-lock", tmp_path / "b.db-lock")
    shutil.copy(filled, tmp_path / "b.db")
    with Store(tmp_path / "b.db") as store:
        assert len(store.keys()) == 60


@pytest.mark.parametrize("act", [Store, lambda path: list(read(path)), check], ids=["write", "read", "check"])
def test_links_that_lead_nowhere_are_a_sentence(tmp_path, act):
    circle, away = tmp_path / "circle.db", tmp_path / "away.db"
    circle.symlink_to(circle)
    away.symlink_to(tmp_path / "gone" / "a.db")
    with pytest.raises(InputError, match="in a circle"):
        act(circle)
    with pytest.raises(InputError, match="there is no folder"):
        act(away)


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "a.db")
    with Store(link) as store:
        store.put(record(0))
    assert len(list(read(tmp_path / "a.db"))) == 1
    assert link.is_symlink()
