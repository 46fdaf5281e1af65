"""The simulations of a store that belong on a plot of the explorer: claims say which points they have (`Claim.series`)."""

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

from attlas.claims import Series, doors, find, names
from attlas.explorer.store_view import StoreView

_FIRST = 5.0  # seconds to wait for a first reading: a store may be locked or large, and the theory is neither


class Stored(NamedTuple):
    """A series, and the id of the claim that it belongs to."""

    claim: str
    series: Series


def stored(store: Path, door: str, x_name: str, y_name: str, settings: Collection[str]) -> list[Stored]:
    """Return the series of a door, and of doors whose parent it is, that a plot of `y_name` against `x_name` can show.

    Parameters
    ----------
    settings : collection of str
        The settings that the plot knows. A series with any other is left out.
    """
    axes = (x_name, y_name)
    return [
        found
        for found in _view(store, door).current(_FIRST)
        if (found.series.x_name, found.series.y_name) == axes and set(found.series.settings) <= set(settings)
    ]


def trouble(store: Path, door: str) -> str:
    """Return why the simulations of a door could not be read when they were last asked for; nothing if they could."""
    return _view(store, door).error


@cache
def _view(store: Path, door: str) -> StoreView[tuple[Stored, ...]]:
    return StoreView(store, lambda path: _load(path, door), ())


def _load(store: Path, door: str) -> tuple[Stored, ...]:
    from attlas.lab.verdicts import measurements
    from attlas.store import present, read

    if not present(store):
        return ()
    family = {key for key, other in doors().items() if door in (key, other.parent)}
    ids = [name for name in names() if name.split(".")[0] in family]
    claims = [claim for claim in (find(ids) if ids else ()) if claim.series]
    records = list(read(store, [claim.id for claim in claims]))
    found = []
    for claim in claims:
        mine = [record for record in records if (record.claim, record.version) == (claim.id, claim.version)]
        if mine and claim.series:
            found += [Stored(claim.id, series) for series in claim.series(measurements(claim, mine))]
    return tuple(found)
