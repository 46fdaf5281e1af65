"""Jobs in worker processes of this host.

The standard pools are not used: they re-import the caller's script in every worker, hand out jobs before the last
outcome is consumed, and leave their workers behind when the driver is killed.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait

from attlas.lab.execute import Computed, Job, execute, pin_threads
from attlas.lab.executors import IDLE, MOST_DEATHS, Jobs, given_up


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
    finally:
        for worker in pool:
            worker.stop()


class _Worker:
    """One process that computes one job at a time."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self._deaths = 0
        self._spawn()

    def begin(self, job: Job) -> None:
        self.job, self._deaths = job, 0
        self._send()

    def finish(self) -> Computed | None:
        """Return the outcome of the job, or None if the process died over it and the job was begun again."""
        if self.job is None:
            return None
        try:
            outcome: Computed = self.connection.recv()
        except (EOFError, OSError):
            self.stop()
            self._spawn()
            self._deaths += 1
            if self._deaths < MOST_DEATHS:
                self._send()
                return None
            outcome = given_up(self.job)
        self.job = None
        return outcome

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
        with contextlib.suppress(OSError):  # it died while idle; `finish` will see that
            self.connection.send(self.job)


def serve(handle: int) -> None:
    """Compute jobs that arrive on a socket until the driver goes away. What a worker process runs."""
    threading.Thread(target=_die_with_driver, daemon=True).start()
    pin_threads()
    connection: Connection = Connection(handle)
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(execute(connection.recv()))


def _die_with_driver() -> None:
    """End this process, even in the middle of a long point, when the driver's end of standard input closes."""
    while os.read(0, 1024):  # not through sys.stdin, whose lock would trouble the interpreter at its end
        pass
    os._exit(1)
