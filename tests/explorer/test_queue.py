import time

import numpy as np
import pytest

from attlas import aim
from attlas.explorer.queue import ENDED, Computation, Queue, QueueFull

SMALL = {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "alpha": 0.1, "d": 20, "seed": 3}
LONG = SMALL | {"d": 160, "alpha": 0.3}


def finished(queue: Queue, name: str, seconds: float = 60) -> Computation:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job = queue.get(name)
        assert job is not None
        if job.stage in ENDED:
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job did not end in {seconds} s: {job.stage}, {job.text}")


@pytest.fixture
def queue():
    made = Queue(waiting=2, remembered=2)
    yield made
    made.close()


def test_message_passing_in_a_job_is_that_of_the_library(queue) -> None:
    job = finished(queue, queue.submit("aim", "amp", SMALL))
    channel = aim.Softmax(2)
    task = aim.sample(channel, 20, 0.1, 0.5, 3)
    found = aim.message_passing(task.X, task.y, channel, 0.5, S=task.S, max_steps=100, tol=1e-5, throw=False)
    assert job.stage == "done"
    assert job.result["mse"] == pytest.approx(found.mse[-1], rel=1e-9)
    assert job.result["steps"] == found.steps
    assert job.course[0] == [None, None]  # the data are drawn, nothing is known
    assert np.array(job.course[1:]) == pytest.approx(np.array([found.history, found.mse]).T)


def test_the_queue_has_an_end_a_running_job_is_stopped_and_a_waiting_one_never_starts(queue) -> None:
    names = [queue.submit("aim", "amp", LONG)]
    while queue.get(names[0]).stage == "waiting":
        time.sleep(0.02)
    names += [queue.submit("aim", "amp", LONG) for _ in range(2)]
    assert queue.ahead(names[2]) == 2
    with pytest.raises(QueueFull, match="2 computations are waiting already"):
        queue.submit("aim", "amp", LONG)
    process = queue.get(names[0]).process
    for name in reversed(names):
        queue.cancel(name)
    assert finished(queue, names[0], 10).stage == "cancelled"
    assert process.wait(10) != 0
    assert finished(queue, names[1], 10).stage == "cancelled"
    assert finished(queue, queue.submit("aim", "amp", SMALL)).stage == "done"


def test_ended_jobs_are_forgotten_but_for_a_few(queue) -> None:
    names = []
    for _ in range(5):
        names.append(queue.submit("aim", "amp", SMALL))
        queue.cancel(names[-1])
    assert [queue.get(name) is not None for name in names] == [False, False, True, True, True]
    assert queue.get("nobody's") is None
    assert queue.get(["x"]) is None


def test_a_job_that_takes_too_long_is_stopped_with_a_reason() -> None:
    queue = Queue(seconds=1.0)
    job = finished(queue, queue.submit("aim", "amp", LONG))
    assert (job.stage, job.text) == ("failed", "Stopped after 1 s; choose a smaller size")


def test_a_job_whose_visitor_has_left_is_stopped() -> None:
    queue = Queue(patience=0.4)
    job = queue.get(queue.submit("aim", "amp", LONG))
    end = time.monotonic() + 60
    while job.stage not in ENDED and time.monotonic() < end:  # nobody asks the queue about it
        time.sleep(0.05)
    assert job.stage == "cancelled"


def test_a_job_that_cannot_be_started_takes_nobody_with_it(queue) -> None:
    bad = queue.submit("aim", "amp", SMALL | {"seed": 10**4300})
    assert finished(queue, bad).stage == "failed"
    assert finished(queue, queue.submit("aim", "amp", SMALL)).stage == "done"


def test_a_job_cancelled_while_it_starts_has_no_process_left(queue) -> None:
    for _ in range(5):
        name = queue.submit("aim", "amp", LONG)
        queue.cancel(name)
        job = finished(queue, name)
        assert job.stage == "cancelled"
    assert finished(queue, queue.submit("aim", "amp", SMALL), 30).stage == "done"  # nothing is still being followed


def test_the_visitor_reads_why_a_job_was_refused(queue) -> None:
    job = finished(queue, queue.submit("aim", "amp", SMALL | {"tokens": 1}))
    assert job.stage == "failed"
    assert "tokens" in job.text
