"""Judging and drawing claims in several processes: one claim has nothing to do with another."""

from collections.abc import Callable, Sequence
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

    # one at a time: some claims take a hundred times as long as others
    found: Any = Parallel(n_jobs=min(workers, len(items)), batch_size=1)(delayed(work)(item) for item in items)
    return list(found)
