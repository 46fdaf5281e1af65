"""Work on pieces, shared by threads."""

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from attlas.errors import InputError
from attlas.inputs import described

Piece = TypeVar("Piece")


def each(work: Callable[[Piece], Any], pieces: Iterable[Piece], n_jobs: int | None = None) -> None:
    """Do the work on every piece, one after the other or in threads, each of which has one thread of BLAS.

    What a piece is does not depend on the number of threads, and so neither do the numbers. BLAS has one thread even where
    pieces are made one at a time: their products are so small that several threads mostly wait for each other.

    Parameters
    ----------
    work : callable
        Puts its result where it belongs.
    pieces : iterable
    n_jobs : int, optional
        Threads, counted as joblib counts workers: None is 1, -1 is one for every core, -2 leaves one core free.
    """
    count = threads(n_jobs)
    with _blas().limit(limits=1, user_api="blas"):
        if count == 1:
            for piece in pieces:
                work(piece)
            return
        with ThreadPoolExecutor(count) as pool:
            for _ in pool.map(work, pieces):
                pass  # an exception of a piece is raised here


@functools.cache
def _blas() -> Any:
    """Return what sets the threads of BLAS; finding its libraries takes a millisecond."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def threads(n_jobs: Any) -> int:
    """Return the number of threads that is meant by `n_jobs`."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise InputError(f"n_jobs must be an integer other than 0, -1 for all cores, or None; got {described(n_jobs)}")
    return int(n_jobs) if n_jobs > 0 else max(1, cores() + 1 + int(n_jobs))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
