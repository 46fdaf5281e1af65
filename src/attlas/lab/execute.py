"""Computing one task, wherever it runs, so that the same seed gives the same bits."""

import ctypes
import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from attlas.store import encode

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """What a worker is sent: a function, a validated point, a seed, and the seconds that it may take."""

    key: str
    measure: Callable[[Any, int], dict[str, Any]]
    point: Any
    seed: int
    limit: float = math.inf


@dataclass(frozen=True)
class Computed:
    """What a worker sends back: the bytes of a result, or why there is none."""

    key: str
    payload: bytes | None
    seconds: float
    versions: dict[str, str]
    error: str | None = None


def execute(job: Job) -> Computed:
    """Measure one point. A failure is an outcome too, so that one bad point does not stop a sweep."""
    start = time.perf_counter()
    payload, error = None, None
    try:
        with limited(job.limit):
            payload = encode(job.measure(job.point, job.seed))
    except TooLong:
        error = too_long(job)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return Computed(job.key, payload, time.perf_counter() - start, versions(), error)


class TooLong(Exception):
    """A point has taken longer than it may."""


def too_long(job: Job) -> str:
    """Return why a point was broken off."""
    return f"it took longer than {job.limit:g} s and was broken off; --point-timeout allows more"


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in this thread if what is inside takes longer: between two steps of Python, not within one."""
    if not math.isfinite(seconds):
        yield
        return
    thread, guard, over = threading.get_ident(), threading.Lock(), threading.Event()

    def interrupt() -> None:
        with guard:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooLong))

    clock = threading.Timer(min(seconds, threading.TIMEOUT_MAX), interrupt)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        with guard:
            over.set()
        clock.cancel()


@cache
def versions() -> dict[str, str]:
    """Return the versions that a result depends on. Nothing about the host."""
    found = {name: metadata.version(name) for name in ("attlas", "numpy", "scipy")}
    return found | {"python": platform.python_version()}


def differing(theirs: Mapping[str, str]) -> dict[str, str]:
    """Return those of a result's versions that are others here and may change its bits: attlas, numpy and scipy."""
    return {name: found for name, found in theirs.items() if name != "python" and found != versions().get(name, found)}


def pin_threads() -> None:
    """Limit BLAS to one thread in this process, for good: how many cores a host has must not change the bits.

    The environment covers libraries that are loaded later, the limit those that are loaded already.
    """
    os.environ.update(dict.fromkeys(THREADS, "1"))
    _limit()


@contextmanager
def pinned_threads() -> Iterator[None]:
    """Limit BLAS to one thread inside, and restore what was before."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    limit = _limit()
    try:
        yield
    finally:
        limit.restore_original_limits()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _limit() -> Any:
    import numpy  # noqa: F401  # its BLAS must be loaded to be limited
    import scipy.linalg  # noqa: F401  # and so must SciPy's own
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
