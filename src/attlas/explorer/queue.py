"""Long computations that a visitor starts: one at a time, a short queue, each in a process that can be stopped."""

import atexit
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Literal

from attlas.errors import AttlasError

Stage = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")


class QueueFull(AttlasError):
    """Too many computations wait already."""


@dataclass
class Job:
    """One computation and how it stands; `share` of it is done."""

    work: str
    settings: dict[str, Any]
    stage: Stage = "waiting"
    share: float = 0.0
    text: str = ""
    result: Any = None
    process: "subprocess.Popen[str] | None" = None
    seen: float = field(default_factory=time.monotonic)  # when somebody last asked about it


class Queue:
    """Runs one job at a time.

    Parameters
    ----------
    waiting : int
        So many may wait; one more is refused.
    kept : int
        So many ended jobs are remembered for their visitors to fetch.
    seconds : float
        A job that takes longer is stopped.
    patience : float
        So is one that nobody has asked about for so many seconds: its visitor has left.
    """

    def __init__(self, waiting: int = 8, kept: int = 64, seconds: float = 120.0, patience: float = 15.0) -> None:
        self._waiting, self._kept, self._seconds, self._patience = waiting, kept, seconds, patience
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._changed = threading.Condition()
        for work in (self._run_all, self._forget):
            threading.Thread(target=work, daemon=True, name=f"explorer{work.__name__}").start()
        atexit.register(self.close)

    def submit(self, work: str, **settings: Any) -> str:
        """Return the name of a new job, which only its visitor knows; raise `QueueFull` if too many wait."""
        with self._changed:
            waiting = sum(job.stage == "waiting" for job in self._jobs.values())
            if waiting >= self._waiting:
                raise QueueFull(f"{waiting} computations are waiting already; try again in a minute")
            name = secrets.token_urlsafe(12)
            self._jobs[name] = Job(work, settings)
            ended = [key for key, job in self._jobs.items() if job.stage in ENDED]
            for key in ended[: max(0, len(ended) - self._kept)]:
                del self._jobs[key]
            self._changed.notify_all()
        return name

    def look(self, name: Any) -> Job | None:
        """Return the job of this name, or None if there is none (any more)."""
        with self._changed:
            job = self._jobs.get(name) if isinstance(name, str) else None
            if job is not None:
                job.seen = time.monotonic()
            return job

    def ahead(self, name: str) -> int:
        """Return how many jobs that have not ended were submitted before this one."""
        with self._changed:
            names = [key for key, job in self._jobs.items() if job.stage not in ENDED]
            return names.index(name) if name in names else 0

    def cancel(self, name: Any) -> None:
        """Stop a job, or take it out of the queue."""
        with self._changed:
            job = self._jobs.get(name) if isinstance(name, str) else None
            if job is not None and job.stage not in ENDED:
                job.stage, job.text = "cancelled", "cancelled"
                if job.process is not None:
                    job.process.kill()

    def close(self) -> None:
        """Stop everything."""
        for name in list(self._jobs):
            self.cancel(name)

    def _run_all(self) -> None:
        while True:
            with self._changed:
                while not (waiting := [job for job in self._jobs.values() if job.stage == "waiting"]):
                    self._changed.wait()
                job = waiting[0]
                try:
                    job.process, job.stage = _start(job), "running"
                except Exception as error:  # whatever became of one job, the next one is run
                    job.stage, job.text = "failed", f"could not be started: {error}"
                    continue
            self._follow(job, job.process)

    def _forget(self) -> None:
        while True:
            time.sleep(min(1.0, self._patience / 4))
            with self._changed:
                left = [name for name, job in self._jobs.items() if time.monotonic() - job.seen > self._patience]
            for name in left:
                self.cancel(name)

    def _follow(self, job: Job, process: "subprocess.Popen[str]") -> None:
        """Read what the process tells, a line of JSON each, until it ends."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(self._seconds, stop)
        clock.start()
        told: dict[str, Any] = {}
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            try:
                told = json.loads(line)
            except ValueError:  # cut short by a kill
                break
            if "share" in told:
                job.share, job.text = told["share"], told["text"]
        process.stdout.close()
        process.wait()
        clock.cancel()
        with self._changed:
            job.process = None
            if job.stage == "cancelled":
                return
            if "result" in told:
                job.result, job.text, job.stage = told["result"], "", "done"
                return
            stopped = f"stopped after {self._seconds:.0f} s; choose a smaller size"
            job.text = stopped if late.is_set() else told.get("error", "the computation ended unexpectedly")
            job.stage = "failed"


def _start(job: Job) -> "subprocess.Popen[str]":
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return subprocess.Popen(  # noqa: S603 - our own module, arguments as a list
        [sys.executable, "-m", "attlas.explorer.work", job.work, json.dumps(job.settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | threads,
    )
