"""A cache with a limit, in which what several visitors ask for at once is computed once."""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


def memoised(size: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Remember the last `size` answers of a function of hashable arguments."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        cached = lru_cache(maxsize=size)(function)
        running: dict[Hashable, Lock] = {}
        guard = Lock()

        @wraps(function)
        def call(*args: Hashable) -> T:
            with guard:
                mine = running.setdefault(args, Lock())
            try:
                with mine:  # whoever waits here finds the answer in the cache
                    return cached(*args)
            finally:
                with guard:
                    running.pop(args, None)

        return call

    return decorate
