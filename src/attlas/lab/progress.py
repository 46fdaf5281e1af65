"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from attlas.text import printable


class Display(Protocol):
    """What the driver tells: how much is done, and things worth a line."""

    def update(self, done: int, left: float | None) -> None:
        """`done` points are finished, about `left` seconds remain (None: not known yet)."""

    def note(self, text: str) -> None:
        """Say something worth a line of its own."""


@contextmanager
def progress(total: int, done: int, stream: TextIO | None = None) -> Iterator[Display]:
    """Show progress on `stream` (standard error): a bar if it is a terminal, a line now and then if not."""
    stream = stream or sys.stderr
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        yield _Lines(total, done, stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(file=stream)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}")
    with Progress(*columns, console=console) as bar:
        yield _Bar(bar, bar.add_task("points", total=total, completed=done, left=""))


class _Bar:
    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def update(self, done: int, left: float | None) -> None:
        self._bar.update(self._task, completed=done, left="" if left is None else f"about {duration(left)} left")

    def note(self, text: str) -> None:
        self._bar.console.print(printable(text), markup=False, highlight=False)


class _Lines:
    """A line at every tenth of the work, and every ten seconds."""

    def __init__(self, total: int, done: int, stream: TextIO) -> None:
        self._total, self._stream = total, stream
        self._said, self._when = done, time.monotonic()

    def update(self, done: int, left: float | None) -> None:
        now = time.monotonic()
        if done == self._total or done - self._said >= self._total / 10 or now - self._when > 10:
            rest = "" if left is None or done == self._total else f", about {duration(left)} left"
            self.note(f"{done} of {self._total} points{rest}")
            self._said, self._when = done, now

    def note(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)


def duration(seconds: float) -> str:
    """Return a duration as a person would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
