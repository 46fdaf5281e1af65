"""A driver or worker killed at any moment: nothing committed is lost, nothing wrong is accepted, little is repeated."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from attlas import lab
from attlas.store import Store, check, read

HERE = Path(__file__).parent
POINTS = 300


@pytest.fixture
def uninterrupted(fast, tmp_path):
    """The digest of a sweep that nobody disturbed."""
    lab.run(["test.fast"], store=tmp_path / "calm.db", executor="serial")
    health = check(tmp_path / "calm.db")
    assert health.intact == POINTS
    fast.write_bytes(b"")
    return health.digest


def repeated(log):
    """How often points were begun again."""
    return sum(count - 1 for count in Counter(log.read_text().split()).values())


def committed(path):
    if not path.exists() or not path.stat().st_size:
        return {}
    return {r.key: r.payload for r in read(path)}


def test_a_driver_killed_a_hundred_times(fast, uninterrupted, tmp_path):
    """Serial drivers, killed at random moments from their first instruction to their last."""
    rng = random.Random(0)
    zygote = subprocess.Popen(
        [sys.executable, HERE / "zygote.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    kills = sweeps = 0
    kept = {}
    path = tmp_path / "sweep-0.db"
    while kills < 100:
        zygote.stdin.write(f"{path}\n")
        zygote.stdin.flush()
        driver = int(zygote.stdout.readline())
        time.sleep(rng.uniform(0, 0.15))
        os.kill(driver, signal.SIGKILL)
        if int(zygote.stdout.readline()) == 0:  # it had finished: on to the next sweep
            assert check(path).digest == uninterrupted
            sweeps, kept = sweeps + 1, {}
            path = tmp_path / f"sweep-{sweeps}.db"
            continue
        kills += 1
        now = committed(path)
        assert kept.items() <= now.items()
        kept = now
    zygote.stdin.close()
    zygote.wait()
    zygote.stdout.close()
    lab.run(["test.fast"], store=path, executor="serial")
    health = check(path)
    assert health.good
    assert health.digest == uninterrupted
    begun = len(fast.read_text().split())
    assert begun - (sweeps + 1) * POINTS <= kills


def start_driver(path, *options):
    command = [sys.executable, "-m", "attlas", "run", "test.fast", "--store", str(path), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_a_driver_of_two_processes_killed_five_times(fast, uninterrupted, tmp_path):
    """Each time once it computes; its workers go with it, and each repeats at most the point it was at."""
    rng = random.Random(1)
    path = tmp_path / "sweep.db"
    kept = {}
    for _ in range(5):
        before = len(committed(path))
        with start_driver(path, "--workers", "2") as driver:
            wait_for(lambda before=before: len(committed(path)) > before)
            time.sleep(rng.uniform(0, 0.05))
            driver.kill()
        now = committed(path)
        assert kept.items() <= now.items()
        kept = now
    assert len(kept) < POINTS
    time.sleep(0.5)  # workers notice that their driver is gone
    begun = len(fast.read_text().split())
    time.sleep(0.5)
    assert len(fast.read_text().split()) == begun
    lab.run(["test.fast"], store=path, executor="processes", workers=2)
    assert check(path).digest == uninterrupted
    assert repeated(fast) <= 5 * 2


def test_a_worker_process_that_is_killed_is_replaced(fast, uninterrupted, tmp_path):
    import psutil

    path = tmp_path / "sweep.db"
    kills = 0
    with start_driver(path, "--workers", "2") as driver:
        while driver.poll() is None and kills < 5:
            before = len(committed(path))
            wait_for(lambda before=before: driver.poll() is not None or len(committed(path)) > before + 10)
            children = psutil.Process(driver.pid).children() if driver.poll() is None else []
            if children:
                children[kills % len(children)].kill()
                kills += 1
        driver.wait()
        assert driver.returncode == 0, driver.stderr.read()
    assert kills == 5
    assert check(path).digest == uninterrupted
    assert repeated(fast) <= kills


@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_a_point_that_takes_its_worker_with_it_once(fast, tmp_path, executor):
    """The first try ends the process; the second is another process."""
    grid = {"i": [1, 2, 3], "deadly": [False, True]}
    summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor=executor, workers=2, grid=grid)
    assert not summary.failed
    assert summary.computed == 6


@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_a_point_that_kills_every_worker_is_given_up(fast, tmp_path, monkeypatch, executor):
    monkeypatch.setenv("ATTLAS_TEST_DEADLY", "always")
    grid = {"i": [1], "deadly": [False, True]}
    summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor=executor, workers=2, grid=grid)
    assert summary.computed == 1
    (why,) = summary.failed.values()
    assert "its worker died" in why


def test_a_worker_that_cannot_be_joined_at_the_end_costs_no_result(fast, tmp_path, monkeypatch):
    """Dask takes a worker that died at once for its successor, and then refuses to wait for a process not yet started."""
    from distributed.process import AsyncProcess

    joined = []

    async def join(process, timeout=None):
        joined.append(process)
        assert len(joined) > 1, "can only join a started process"
        await original(process, timeout)

    original = AsyncProcess.join
    before = spawned()
    monkeypatch.setattr(AsyncProcess, "join", join)
    grid = {"i": [1, 2, 3]}
    summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="dask", workers=2, grid=grid)
    assert (summary.computed, summary.failed) == (3, {})
    assert len(joined) >= 2
    wait_for(lambda: not spawned() - before)


def spawned():
    """The processes that this one started as workers and that are still there."""
    import psutil

    found = set()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may end while it is looked at
            if "spawn_main" in " ".join(child.cmdline()):
                found.add(child)
    return found


def test_a_failing_point_fails_alone_and_is_tried_again(fast, tmp_path):
    grid = {"i": [1, 2], "fails": [False, True]}
    for _ in range(2):
        summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial", grid=grid)
        assert len(summary.failed) == 2
        assert set(summary.failed.values()) == {"ArithmeticError: this point is meant to fail"}
    assert summary.found == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("options", [("--workers", "1"), ("--workers", "2"), ("--executor", "dask", "--workers", "1")])
def test_a_stop_is_clean_and_says_how_to_resume(fast, tmp_path, number, code, options):
    path = tmp_path / "sweep.db"
    with start_driver(path, *options) as driver:
        wait_for(lambda: len(committed(path)) > 5)
        driver.send_signal(number)
        said = driver.stderr.read()
    assert driver.returncode == code, said
    kept = len(committed(path))
    assert f"Stopped: {kept} of 300 points are in {path}. Run the same command again to finish." in said
    assert "Traceback" not in said
    with Store(path) as store:
        assert store.repaired is None
        assert store.lease(["x"])[0] == "x"


@pytest.mark.parametrize("options", [("--workers", "2"), ("--executor", "dask", "--workers", "2")])
def test_ctrl_c_on_a_terminal(fast, tmp_path, options):
    """There it goes to every process of the group, workers too; one line is said, and nothing is left behind."""
    import pty

    import psutil

    path = tmp_path / "sweep.db"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "attlas", "run", "test.fast", "--store", str(path), *options]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as driver:
        os.close(theirs)
        wait_for(lambda: len(committed(path)) > 5)
        children = psutil.Process(driver.pid).children(recursive=True)
        os.killpg(driver.pid, signal.SIGINT)
        said = b""
        try:
            while chunk := os.read(ours, 4096):
                said += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert driver.returncode == 130
    assert b"Stopped: " in said
    assert b"Traceback" not in said
    wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))


def test_two_drivers_on_one_store(fast, uninterrupted, tmp_path):
    """Every point once, whoever computes it, and neither hears of a lock."""
    path = tmp_path / "shared.db"
    drivers = [start_driver(path, "--workers", workers) for workers in ("1", "2")]
    said = [driver.communicate()[1] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0], said
    assert not any("locked" in text for text in said)
    assert repeated(fast) == 0
    assert check(path).digest == uninterrupted


def test_the_second_driver_takes_over_from_a_killed_first(fast, uninterrupted, tmp_path):
    path = tmp_path / "shared.db"
    with start_driver(path, "--workers", "1") as first:
        wait_for(lambda: len(committed(path)) > 5)
        with start_driver(path, "--workers", "1") as second:
            before = len(committed(path))
            wait_for(lambda: len(committed(path)) > before + 30)
            first.kill()
            assert second.wait(120) == 0, second.stderr.read()
    assert check(path).digest == uninterrupted
    assert repeated(fast) <= 1
