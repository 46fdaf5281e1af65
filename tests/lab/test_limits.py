"""Points that take too long, and workers that die before they begin."""

import os
import signal
import time

import pytest

from attlas import lab
from attlas.errors import AttlasError, InputError
from attlas.lab import cluster, processes
from attlas.lab.execute import Job, execute, limited
from attlas.store import encode


def stuck(point, seed):
    if point == "stuck":
        time.sleep(60)
    if point == "busy":
        while True:
            sum(range(100))
    return {"x": 1.0}


def in_a_step(point, seed):
    """One step of Python that takes seconds: no exception can end it."""
    return {"x": float(sum(range(10**9)))}


@pytest.mark.parametrize("executor", ["serial", "processes", "dask"])
def test_a_point_that_takes_too_long_is_broken_off_and_others_go_on(executor):
    points = ["busy", "quick", "quick"]
    jobs = iter([Job(f"{point}{i}", stuck, point, 0, 0.5) for i, point in enumerate(points)])
    if executor == "serial":
        from attlas.lab.executors import serial

        outcomes = list(serial(jobs))
    elif executor == "processes":
        outcomes = list(processes.processes(jobs, 2))
    else:
        with cluster.connect(None, 1) as client:
            outcomes = list(cluster.dask(jobs, client))
    told = {outcome.key: outcome for outcome in outcomes}
    assert told["quick1"].payload == told["quick2"].payload == encode({"x": 1.0})
    assert told["busy0"].payload is None
    assert "longer than 0.5 s" in told["busy0"].error


def test_a_worker_process_is_ended_even_within_one_step():
    start = time.monotonic()
    (outcome,) = processes.processes(iter([Job("k", in_a_step, None, 0, 0.3)]), 1)
    assert "longer than 0.3 s" in outcome.error
    assert time.monotonic() - start < 20  # the step alone would take longer than its limit; what counts is that it ends


def test_what_ends_in_time_is_not_interrupted():
    for _ in range(200):
        with limited(0.5):
            pass
    assert execute(Job("k", stuck, "quick", 0, 5.0)).error is None
    time.sleep(0.01)


def test_the_limit_of_a_run(fast, tmp_path, attlas_here):
    grid = {"i": [1, 2], "pause": [0.0, 30.0]}
    summary = lab.run(["test.fast"], "full", store=tmp_path / "a.db", workers=2, grid=grid, point_timeout=0.5)
    assert summary.computed == 2
    assert len(summary.failed) == 2
    with pytest.raises(InputError, match="point_timeout"):
        lab.run(["test.fast"], "full", store=tmp_path / "a.db", point_timeout=0.0)


def test_a_point_is_not_blamed_for_workers_that_die_while_they_import():
    """Killed five times before it begins: it is computed all the same."""
    pool = processes._Worker()
    job = Job("k", stuck, "quick", 0)
    pool.begin(job)
    for _ in range(5):
        os.kill(pool._process.pid, signal.SIGKILL)  # within milliseconds of its start, long before numpy is imported
        assert pool.connection.poll(30)
        assert pool.finish() is None
    while (outcome := pool.finish()) is None:
        pass
    pool.stop()
    assert outcome.payload == encode({"x": 1.0})


def test_workers_that_never_begin_end_the_run():
    pool = processes._Worker()
    pool.begin(Job("k", stuck, "quick", 0))
    with pytest.raises(AttlasError, match="died before they could begin"):  # noqa: PT012
        for _ in range(30):
            os.kill(pool._process.pid, signal.SIGKILL)
            pool.connection.poll(30)
            pool.finish()
