"""Computations that visitors have started: one at a time, a short queue, each in a process that can be stopped."""

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
    """Too many computations are waiting."""


@dataclass
class Computation:
    """The job of a door with its settings, and how far it has come (`share`, from 0 to 1)."""

    door: str
    job: str
    settings: dict[str, Any]
    stage: Stage = "waiting"
    share: float = 0.0
    text: str = ""
    course: list[Any] = field(default_factory=list)  # the numbers of every event so far: its value and the true error
    result: Any = None
    process: "subprocess.Popen[str] | None" = None
    asked: float = field(default_factory=time.monotonic)  # when somebody last asked about it


class Queue:
    """Runs one computation at a time.

    Parameters
    ----------
    waiting : int
        How many may wait; one more is refused.
    remembered : int
        How many results are held for their visitors to fetch.
    seconds : float
        A computation that takes longer is stopped.
    patience : float
        So is one that nobody has asked about for this many seconds: its visitor has left.
    """

    def __init__(self, waiting: int = 8, remembered: int = 64, seconds: float = 120.0, patience: float = 15.0) -> None:
        self._waiting, self._remembered, self._seconds, self._patience = waiting, remembered, seconds, patience
        self._runs: OrderedDict[str, Computation] = OrderedDict()
        self._changed = threading.Condition()
        for work in (self._run_all, self._forget):
            threading.Thread(target=work, daemon=True, name=f"explorer{work.__name__}").start()
        atexit.register(self.close)

    def submit(self, door: str, job: str, settings: dict[str, Any]) -> str:
        """Return the key of a new computation, which only its visitor knows; raise `QueueFull` if too many wait."""
        with self._changed:
            waiting = sum(run.stage == "waiting" for run in self._runs.values())
            if waiting >= self._waiting:
                raise QueueFull(f"{waiting} computations are waiting already; try again in a minute")
            key = secrets.token_urlsafe(12)
            self._runs[key] = Computation(door, job, settings)
            ended = [key for key, run in self._runs.items() if run.stage in ENDED]
            for old in ended[: max(0, len(ended) - self._remembered)]:
                del self._runs[old]
            self._changed.notify_all()
        return key

    def get(self, key: Any) -> Computation | None:
        """Return the computation of this key, or None if there is none (any more)."""
        with self._changed:
            run = self._runs.get(key) if isinstance(key, str) else None
            if run is not None:
                run.asked = time.monotonic()
            return run

    def ahead(self, key: str) -> int:
        """Return how many computations that have not ended were submitted before this one."""
        with self._changed:
            keys = [key for key, run in self._runs.items() if run.stage not in ENDED]
            return keys.index(key) if key in keys else 0

    def cancel(self, key: Any) -> None:
        """Stop a computation, or take it out of the queue."""
        with self._changed:
            run = self._runs.get(key) if isinstance(key, str) else None
            if run is not None and run.stage not in ENDED:
                run.stage, run.text = "cancelled", "Cancelled"
                if run.process is not None:
                    run.process.kill()

    def close(self) -> None:
        """Stop everything."""
        for key in list(self._runs):
            self.cancel(key)

    def _run_all(self) -> None:
        while True:
            with self._changed:
                while not (waiting := [run for run in self._runs.values() if run.stage == "waiting"]):
                    self._changed.wait()
                run = waiting[0]
                try:
                    run.process, run.stage = _start(run), "running"
                except Exception as error:  # whatever became of one computation, the next one is run
                    run.stage, run.text = "failed", f"Could not be started: {error}"
                    continue
            self._follow(run, run.process)

    def _forget(self) -> None:
        while True:
            time.sleep(min(1.0, self._patience / 4))
            with self._changed:
                left = [key for key, run in self._runs.items() if time.monotonic() - run.asked > self._patience]
            for key in left:
                self.cancel(key)

    def _follow(self, run: Computation, process: "subprocess.Popen[str]") -> None:
        """Read the messages of the process, a line of JSON each, until it ends."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(self._seconds, stop)
        clock.start()
        message: dict[str, Any] = {}
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            try:
                message = json.loads(line)
            except ValueError:  # cut short by a kill
                break
            if "share" in message:
                run.share, run.text = message["share"], message["text"]
                run.course.append(message["numbers"])
        process.stdout.close()
        process.wait()
        clock.cancel()
        with self._changed:
            run.process = None
            if run.stage == "cancelled":
                return
            if "result" in message:
                run.result, run.text, run.stage = message["result"], "", "done"
                return
            stopped = f"Stopped after {self._seconds:.0f} s; choose a smaller size"
            run.text = stopped if late.is_set() else message.get("error", "The computation ended unexpectedly")
            run.stage = "failed"


def _start(run: Computation) -> "subprocess.Popen[str]":
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return subprocess.Popen(  # noqa: S603 - our own module, arguments as a list
        [sys.executable, "-m", "attlas.explorer.work", run.door, run.job, json.dumps(run.settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | threads,
    )
