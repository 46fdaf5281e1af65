"""Finds doors and claims by where their files are: ``<door>/__init__.py`` holds a `Door`, every other file of it a `Claim`.

The claim ``aim.state-evolution`` is in ``aim/state_evolution.py``. What several claims of a door share is in its ``kit``.
Claims of a user's own are in the modules named in ``ATTLAS_CLAIMS``.
"""

import difflib
import importlib
import os
import pkgutil
import re
import sys
from functools import cache
from typing import Any

from attlas.claims.claim import Claim
from attlas.claims.door import Door
from attlas.errors import InputError

EXTRA = "ATTLAS_CLAIMS"
KIT = "kit"
CLOSE = 0.7  # likeness, from 0 to 1, from which on a name is suggested for another
ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)+")  # ids become names of files


@cache
def doors() -> dict[str, Door]:
    """Return all doors by their keys, in order. No claim is imported.

    Examples
    --------
    >>> from attlas.claims import doors
    >>> [door.title for door in doors().values()][:2]
    ['Random features', 'Recovery']
    """
    import attlas.claims as room

    packages = [module.name for module in pkgutil.iter_modules(room.__path__) if module.ispkg]
    found = []
    for name in packages:
        try:
            found.append(importlib.import_module(f"{room.__name__}.{name}").DOOR)
        except (AttributeError, TypeError) as error:
            raise InputError(f"claims/{name}/__init__.py must hold DOOR = Door(...): {error}") from error
    return {door.key: door for door in sorted(found, key=lambda door: (door.order, door.key))}


def door(key: str) -> Door:
    """Return the door with this key. A user's own claims may name a door without files, which then has no texts.

    Examples
    --------
    >>> from attlas.claims import door
    >>> door("aim").title
    'Bayes limits'
    """
    return doors().get(key) or Door(key, len(doors()) + 100, key, "")


def names() -> list[str]:
    """Return the ids of all claims, door by door and sorted by name. attlas's own claims are not imported.

    Examples
    --------
    >>> from attlas.claims import names
    >>> "aim.width" in names()
    True
    """
    rank = {key: place for place, key in enumerate(doors())}
    known = {**_modules(), **_extra(os.environ.get(EXTRA, ""))}
    return sorted(known, key=lambda name: (rank.get(name.split(".")[0], len(rank)), name))


def find(wanted: list[str] | None = None) -> list[Claim[Any]]:
    """Return the claims with these ids, or all of them. Only the claims asked for are imported.

    Raises
    ------
    InputError
        If there is no such claim; the nearest id is suggested.

    Examples
    --------
    >>> from attlas.claims import find
    >>> [claim.id for claim in find(["aim.width", "features.invariance"])]
    ['aim.width', 'features.invariance']
    """
    extra = _extra(os.environ.get(EXTRA, ""))
    known = names()
    for name in wanted or ():
        if name not in known:
            inside = [claim for claim in known if claim.startswith(f"{name}.")]
            near = _near(name, known)
            hint = f"did you mean {near}?" if near else "`attlas list` shows them all."
            hint = f"the claims of that door are {', '.join(inside)}" if inside else hint
            raise InputError(f"No claim {name!r}; {hint}")
    return [extra.get(name) or _load(name) for name in (dict.fromkeys(wanted) if wanted else known)]


def _near(name: str, known: list[str]) -> str:
    """Return the id that a person may have meant; nothing if none is near, in whole and after the door's name."""

    def likeness(a: str, b: str) -> float:
        return difflib.SequenceMatcher(None, a, b).ratio()

    own = name.partition(".")[2] or name
    found = [(likeness(name, claim), claim) for claim in known if likeness(own, claim.partition(".")[2]) >= CLOSE]
    best, claim = max(found, default=(0.0, ""))
    return claim if best >= CLOSE else ""


@cache
def _modules() -> dict[str, str]:
    """Return the module of every claim of attlas by its id, read off the names of files."""
    found = {}
    for key in doors():
        package = importlib.import_module(f"attlas.claims.{key}")
        for module in pkgutil.iter_modules(package.__path__):
            if module.name != KIT:
                found[f"{key}.{module.name.replace('_', '-')}"] = f"{package.__name__}.{module.name}"
    return found


@cache
def _load(name: str) -> Claim[Any]:
    claim: Claim[Any] = importlib.import_module(_modules()[name]).CLAIM
    return claim


@cache
def _extra(extra: str) -> dict[str, Claim[Any]]:
    """Return the claims of a user's own modules by their ids."""
    claims: dict[str, Claim[Any]] = {}
    for name in (part.strip() for part in extra.split(",") if part.strip()):
        try:
            claim = getattr(_import_here(name), "CLAIM", None)
        except ImportError as error:
            raise InputError(f"{EXTRA} names {name!r}, which cannot be imported ({error})") from error
        if not isinstance(claim, Claim):
            raise InputError(f"{EXTRA} names {name!r}, which has no claim called CLAIM")
        if not ID.fullmatch(claim.id) or len(claim.id) > 100:
            raise InputError(
                f"{EXTRA} names {name!r}, whose claim is called {claim.id!r}; write door.name, without / or spaces"
            )
        if claim.id in claims or claim.id in _modules():
            raise InputError(f"two claims are called {claim.id!r}")
        claims[claim.id] = claim
    return claims


def _import_here(name: str) -> Any:
    """Import a module of a user's own, which may lie in the folder that attlas is run in."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: nothing there can stand in for a module that is installed
    return importlib.import_module(name)
