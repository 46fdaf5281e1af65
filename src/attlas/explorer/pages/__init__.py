"""The pages of the explorer, one file or folder per door: each holds a `Page` called ``PAGE``."""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from attlas.claims import doors

if TYPE_CHECKING:
    from attlas.explorer.page import Page


@cache
def names() -> tuple[str, ...]:
    """Return the keys of the doors that have a page, in the order of doors. No page is imported."""
    rank = {key: place for place, key in enumerate(doors())}
    found = [module.name for module in pkgutil.iter_modules(__path__)]
    return tuple(sorted(found, key=lambda key: (rank.get(key, len(rank)), key)))


def find(key: str) -> "Page":
    """Return the page of a door, and import no other."""
    page: Page = importlib.import_module(f"{__name__}.{key}").PAGE
    return page
