"""Finds the claims: one per module of this package, and one per module named in ``ATTLAS_CLAIMS``."""

import difflib
import importlib
import os
import pkgutil
import sys
from functools import cache
from typing import Any

from attlas.claims.claim import Claim
from attlas.errors import InputError

EXTRA = "ATTLAS_CLAIMS"


def find(names: list[str] | None = None) -> list[Claim[Any]]:
    """Return the claims of these ids, or all of them, in the order of their ids.

    Raises
    ------
    InputError
        If there is no such claim; the nearest id is suggested.
    """
    claims = _all(os.environ.get(EXTRA, ""))
    for name in names or ():
        if name not in claims:
            near = difflib.get_close_matches(name, claims, n=1, cutoff=0.3)
            hint = f"did you mean {near[0]}?" if near else "`attlas list` shows them all."
            raise InputError(f"there is no claim {name!r}; {hint}")
    return [claims[name] for name in (dict.fromkeys(names) if names else sorted(claims))]


@cache
def _all(extra: str) -> dict[str, Claim[Any]]:
    import attlas.claims as room

    modules = [f"{room.__name__}.{module.name}" for module in pkgutil.iter_modules(room.__path__)]
    claims: dict[str, Claim[Any]] = {}
    for name in modules + [part.strip() for part in extra.split(",") if part.strip()]:
        try:
            module = importlib.import_module(name) if name in modules else _import_here(name)
        except ImportError as error:
            raise InputError(f"{EXTRA} names {name!r}, which cannot be imported ({error})") from error
        claim = getattr(module, "CLAIM", None)
        if claim is None and name in modules:
            continue  # this file, or one that claims share
        if not isinstance(claim, Claim):
            raise InputError(f"{EXTRA} names {name!r}, which has no claim called CLAIM")
        if claim.id in claims:
            raise InputError(f"two claims are called {claim.id!r}")
        claims[claim.id] = claim
    return claims


def _import_here(name: str) -> Any:
    """Import a module of a user's own, which may lie in the folder that attlas is run in."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: nothing there can stand in for a module that is installed
    return importlib.import_module(name)
