import json
import subprocess
import sys
import time

import numpy as np
import pytest

from attlas import aim
from attlas.explorer.queue import ENDED, Job, Queue, QueueFull

SMALL = {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "alpha": 0.1, "d": 20, "seed": 3}
LONG = SMALL | {"d": 160, "alpha": 0.3}


def finished(queue: Queue, name: str, seconds: float = 60) -> Job:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job = queue.look(name)
        assert job is not None
        if job.stage in ENDED:
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job did not end in {seconds} s: {job.stage}, {job.text}")


@pytest.fixture
def queue():
    made = Queue(waiting=2, kept=2)
    yield made
    made.close()


def test_message_passing_in_a_job_is_that_of_the_library(queue) -> None:
    job = finished(queue, queue.submit("amp", **SMALL))
    channel = aim.Softmax(2)
    task = aim.sample(channel, 20, 0.1, 0.5, 3)
    found = aim.message_passing(task.X, task.y, channel, 0.5, S=task.S, max_steps=100, tol=1e-5, throw=False)
    assert job.stage == "done"
    assert job.result["error"] == pytest.approx(found.mse[-1], rel=1e-9)
    assert job.result["steps"] == found.steps


def test_the_queue_has_an_end_a_running_job_is_stopped_and_a_waiting_one_never_starts(queue) -> None:
    names = [queue.submit("amp", **LONG)]
    while queue.look(names[0]).stage == "waiting":
        time.sleep(0.02)
    names += [queue.submit("amp", **LONG) for _ in range(2)]
    assert queue.ahead(names[2]) == 2
    with pytest.raises(QueueFull, match="2 computations are waiting already"):
        queue.submit("amp", **LONG)
    process = queue.look(names[0]).process
    for name in reversed(names):
        queue.cancel(name)
    assert finished(queue, names[0], 10).stage == "cancelled"
    assert process.wait(10) != 0
    assert finished(queue, names[1], 10).stage == "cancelled"
    assert finished(queue, queue.submit("amp", **SMALL)).stage == "done"


def test_ended_jobs_are_forgotten_but_for_a_few(queue) -> None:
    names = []
    for _ in range(5):
        names.append(queue.submit("amp", **SMALL))
        queue.cancel(names[-1])
    assert [queue.look(name) is not None for name in names] == [False, False, True, True, True]
    assert queue.look("nobody's") is None
    assert queue.look(["x"]) is None


def test_a_job_that_takes_too_long_is_stopped_with_a_reason() -> None:
    queue = Queue(seconds=1.0)
    job = finished(queue, queue.submit("amp", **LONG))
    assert (job.stage, job.text) == ("failed", "stopped after 1 s; choose a smaller size")


def test_a_job_whose_visitor_has_left_is_stopped() -> None:
    queue = Queue(patience=0.4)
    job = queue.look(queue.submit("amp", **LONG))
    end = time.monotonic() + 60
    while job.stage not in ENDED and time.monotonic() < end:  # nobody asks the queue about it
        time.sleep(0.05)
    assert job.stage == "cancelled"


def test_a_job_that_cannot_be_started_takes_nobody_with_it(queue) -> None:
    bad = queue.submit("amp", **SMALL | {"seed": 10**4300})
    assert finished(queue, bad).stage == "failed"
    assert finished(queue, queue.submit("amp", **SMALL)).stage == "done"


def test_a_job_cancelled_while_it_starts_has_no_process_left(queue) -> None:
    for _ in range(5):
        name = queue.submit("amp", **LONG)
        queue.cancel(name)
        job = finished(queue, name)
        assert job.stage == "cancelled"
    assert finished(queue, queue.submit("amp", **SMALL), 30).stage == "done"  # nothing is still being followed


def test_what_the_library_refuses_is_told(queue) -> None:
    job = finished(queue, queue.submit("amp", **SMALL | {"tokens": 1}))
    assert job.stage == "failed"
    assert "tokens" in job.text


def test_a_body_is_sculpted_and_both_heads_are_found() -> None:
    settings = json.dumps({"d": 6, "scale": 3.0, "n": 2000, "seed": 1})
    command = [sys.executable, "-m", "attlas.explorer.work", "sculpt", settings]
    lines = [
        json.loads(x) for x in subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    ]
    shares = [x["share"] for x in lines if "share" in x]
    assert shares == sorted(shares)
    result = lines[-1]["result"]
    titles = [frame["title"] for frame in result["frames"]]
    assert titles[0] == "Carving, round 1"
    assert titles[-1] == "After polishing"
    last = result["frames"][-1]
    assert last["residual"] < 1e-9  # variable projection finishes what sculpting began
    assert np.sort(last["heads"], axis=0) == pytest.approx(np.sort(result["true"], axis=0), abs=1e-6)
