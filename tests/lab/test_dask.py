"""On a real scheduler with two worker processes on loopback."""

import contextlib
import gc
import os
import random
import signal
import socket
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack

import pytest

from attlas import lab
from attlas.errors import InputError
from attlas.store import check

from .test_kill import committed, repeated, start_driver, uninterrupted, wait_for  # noqa: F401


class Cluster:
    """A scheduler and its workers, as subprocesses that can be killed."""

    def __init__(self, stack, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self._stack, self._folder = stack, folder
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        self.workers = [self.worker(), self.worker()]

    def worker(self):
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60",
            "--local-directory", str(self._folder),
        )  # fmt: skip

    def _start(self, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


@pytest.fixture
def cluster(fast, tmp_path):
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path)


def test_workers_and_drivers_killed(fast, uninterrupted, cluster, tmp_path):  # noqa: F811
    """Six workers end, by exit and by SIGKILL, and two drivers; the sweep finishes as if nothing had been."""
    rng = random.Random(0)
    path = tmp_path / "sweep.db"
    kills = 0
    for turn in range(3):
        with start_driver(path, "--scheduler", cluster.address) as driver:
            for kind in (signal.SIGKILL, signal.SIGTERM):
                before = len(committed(path))
                wait_for(
                    lambda before=before, driver=driver: driver.poll() is not None or len(committed(path)) > before + 15
                )
                time.sleep(rng.uniform(0, 0.02))
                victim = cluster.workers.pop(0)
                os.kill(victim.pid, kind)
                cluster.workers.append(cluster.worker())
                kills += 1
            if turn < 2:
                before = committed(path)
                wait_for(lambda before=before: len(committed(path)) > len(before))
                driver.kill()
                kills += 1
                driver.wait()
                assert before.items() <= committed(path).items()
            else:
                assert driver.wait(120) == 0, driver.stderr.read()
    assert kills == 8
    health = check(path)
    assert health.good
    assert health.digest == uninterrupted
    assert repeated(fast) <= kills * 2


def test_a_scheduler_that_dies_is_one_sentence(fast, cluster, tmp_path):
    path = tmp_path / "sweep.db"
    with start_driver(path, "--scheduler", cluster.address) as driver:
        wait_for(lambda: len(committed(path)) > 5)
        cluster.scheduler.kill()
        said = driver.stderr.read()
    assert driver.returncode == 1
    assert "the scheduler is gone" in said
    assert "run the same command again to finish" in said
    assert "Traceback" not in said, said
    assert check(path).good


def test_a_scheduler_without_workers_is_named(fast, tmp_path):
    with ExitStack() as stack:
        lonely = Cluster.__new__(Cluster)
        lonely._stack, lonely._folder = stack, tmp_path
        lonely._start("scheduler", "--host", "127.0.0.1", "--port", "18786", "--no-dashboard")
        with pytest.raises(InputError, match="has no workers; start some: dask worker"):
            lab.run(["test.fast"], store=tmp_path / "a.db", scheduler="tcp://127.0.0.1:18786")
    assert not (tmp_path / "a.db").exists()


def test_an_unreachable_scheduler_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        lab.run(["features.invariance"], store=tmp_path / "a.db", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        lab.run(["features.invariance"], store=tmp_path / "a.db", scheduler="nonsense")
    assert not list(tmp_path.iterdir())


def test_a_cluster_on_this_host_goes_with_its_run(fast, tmp_path):
    """Workers left behind would take their share of every run that follows."""
    import dask
    import psutil

    before = {child.pid for child in psutil.Process().children(recursive=True)}
    settings = dask.config.get("scheduler", None)
    lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="dask", workers=2, grid={"i": [1, 2]})
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert not [child for child in left if "spawn_main" in " ".join(child.cmdline())]
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="dask", scheduler="tcp://127.0.0.1:1")
    assert dask.config.get("scheduler", None) == settings  # what else uses Dask here goes on as before


@pytest.mark.parametrize("address", ["nonsense", "tls://127.0.0.1:9"])
def test_a_client_that_could_not_be_made_is_closed_at_once(address):
    """Left to be collected, it is closed by whichever thread that happens in, which may be its own, and waits for itself."""
    from distributed import Client

    others = {id(found) for found in gc.get_objects() if type(found) is Client}
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        lab.run(["features.invariance"], executor="dask", scheduler=address)
    made = [found for found in gc.get_objects() if type(found) is Client and id(found) not in others]
    assert [client.status for client in made] in ([], ["closed"])


def test_a_warning_of_dask_does_not_end_its_start(fast, tmp_path, monkeypatch):
    """Such as that the disk is slow, where warnings are errors; a test failed at random by it."""

    @contextlib.contextmanager
    def slow(*_):
        yield
        warnings.warn("this is taking a surprisingly long time", stacklevel=2)

    monkeypatch.setattr("distributed.core.warn_on_duration", slow)
    summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="dask", workers=1, grid={"i": [1]})
    assert summary.computed == 1
