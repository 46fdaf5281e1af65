"""Judging and drawing claims in several processes: one claim has nothing to do with another."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from attlas.inputs import integer

Item = TypeVar("Item")
Found = TypeVar("Found")


def side_by_side(work: Callable[[Item], Found], items: Sequence[Item], workers: int = 1) -> list[Found]:
    """Return what a function makes of each item, in their order, computed in `workers` processes.

    Functions, items and results travel between processes, so that functions must be importable or made by `partial` of one
    that is. With one worker nothing travels.
    """
    if integer(workers, "workers") == 1 or len(items) < 2:
        return [work(item) for item in items]
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    try:
        # one at a time: some claims take a hundred times as long as others
        calls = (delayed(_watched)(work, item, os.getpid()) for item in items)
        found: Any = Parallel(n_jobs=min(workers, len(items)), batch_size=1)(calls)
    finally:  # the next ones start in the folder and with the environment that there are then
        get_reusable_executor().shutdown(wait=True, kill_workers=True)
    return list(found)


def _watched(work: Callable[[Item], Found], item: Item, parent: int) -> Found:
    """Do the work in a process that ends with the one that asked for it, however that ends."""
    _watch(parent)
    return work(item)


@cache
def _watch(parent: int) -> None:
    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
