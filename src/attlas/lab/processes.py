"""Jobs in worker processes of this host.

The standard pools are not used: they re-import the caller's script in every worker, hand out jobs before the last
outcome is consumed, and leave their workers behind when the driver is killed.
"""

import contextlib
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from attlas.errors import AttlasError
from attlas.lab.execute import Computed, Job, execute, pin_threads, too_long, versions
from attlas.lab.executors import IDLE, MOST_DEATHS, MOST_STARTS, Jobs, given_up


def processes(jobs: Jobs, workers: int) -> Iterator[Computed]:
    """Compute in `workers` fresh processes. One that dies is replaced and its job begun again."""
    pool = [_Worker() for _ in range(workers)]
    exhausted = False
    try:
        while not exhausted or any(worker.job for worker in pool):
            for worker in pool:
                if worker.job is not None or exhausted:
                    continue
                try:
                    job = next(jobs)
                except StopIteration:
                    exhausted = True
                    break
                if job is None:
                    break
                worker.begin(job)
            busy = {worker.connection: worker for worker in pool if worker.job is not None}
            if not busy:
                time.sleep(IDLE)
            for connection in wait(list(busy), timeout=IDLE):
                outcome = busy[connection].finish()  # type: ignore[index]
                if outcome is not None:
                    yield outcome
            for worker in busy.values():
                outcome = worker.break_off()
                if outcome is not None:
                    yield outcome
    finally:
        for worker in pool:
            worker.stop()


class _Worker:
    """One process that computes one job at a time. It says when it begins: what kills it before is not the job."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self._deaths = self._starts = 0
        self._begun: float | None = None
        self._spawn()

    def begin(self, job: Job) -> None:
        self.job, self._deaths = job, 0
        self._send()

    def finish(self) -> Computed | None:
        """Return the outcome of the job, or None if it has begun, or the process died over it and it is begun again."""
        if self.job is None:
            return None
        try:
            said: Computed | None = self.connection.recv()
        except (EOFError, OSError):
            return self._died(self.job)
        self._starts = 0
        if said is None:
            self._begun = time.monotonic()
            return None
        self.job = None
        return said

    def break_off(self) -> Computed | None:
        """Return the outcome of a job that has taken longer than it may, or None."""
        if self.job is None or self._begun is None or time.monotonic() - self._begun <= self.job.limit:
            return None
        seconds, job, self.job = time.monotonic() - self._begun, self.job, None
        self.stop()
        self._spawn()
        return Computed(job.key, None, seconds, versions(), too_long(job))

    def _died(self, job: Job) -> Computed | None:
        if self._begun is None:
            self._starts += 1
        else:
            self._deaths += 1
        self.stop()
        if self._starts >= MOST_STARTS:
            raise AttlasError(
                f"{MOST_STARTS} workers in a row died before they could begin (out of memory, or stopped from outside?);"
                " every result so far is safe; run the same command again to finish"
            )
        self._spawn()
        if self._deaths < MOST_DEATHS:
            self._send()
            return None
        self.job = None
        return given_up(job)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.connection.close()

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        # a group of its own: Ctrl-C on a terminal goes to the driver, which decides
        self._process = subprocess.Popen(  # noqa: S603  # nothing in it comes from outside
            [sys.executable, "-c", f"from attlas.lab.processes import serve; serve({theirs.fileno()})"],
            stdin=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            process_group=0,
        )
        theirs.close()
        self.connection: Connection = Connection(ours.detach())

    def _send(self) -> None:
        self._begun = None
        with contextlib.suppress(OSError):  # it died while idle; `finish` will see that
            self.connection.send(self.job)


def serve(handle: int) -> None:
    """Compute jobs that arrive on a socket until the driver goes away. What a worker process runs."""
    threading.Thread(target=_die_with_driver, daemon=True).start()
    pin_threads()
    connection: Connection = Connection(handle)
    with contextlib.suppress(EOFError, OSError):
        while True:
            job: Job = connection.recv()  # which imports what it needs
            connection.send(None)
            connection.send(
                execute(replace(job, limit=math.inf))
            )  # the driver has the clock, and ends what Python cannot


def _die_with_driver() -> None:
    """End this process, even in the middle of a long point, when the driver's end of standard input closes."""
    while os.read(0, 1024):  # not through sys.stdin, whose lock would trouble the interpreter at its end
        pass
    os._exit(1)
