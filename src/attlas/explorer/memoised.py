"""A cache with a limit, in which what several visitors ask for at once is computed once."""

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


def memoised(size: int, *names: str) -> Callable[[Callable[[dict[str, Any]], T]], Callable[[Mapping[str, Any]], T]]:
    """Remember the last `size` answers of a function of a state; it is handed the settings of these names, and no others."""

    def decorate(function: Callable[[dict[str, Any]], T]) -> Callable[[Mapping[str, Any]], T]:
        cached = lru_cache(maxsize=size)(lambda *values: function(dict(zip(names, values, strict=True))))
        running: dict[tuple[Any, ...], Lock] = {}
        guard = Lock()

        @wraps(function)
        def call(state: Mapping[str, Any]) -> T:
            key = tuple(state[name] for name in names)
            with guard:
                mine = running.setdefault(key, Lock())
            try:
                with mine:  # whoever waits here finds the answer in the cache
                    return cached(*key)
            finally:
                with guard:
                    running.pop(key, None)

        return call

    return decorate
