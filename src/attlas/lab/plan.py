"""A plan: which points of which claims, at which seeds."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from attlas.claims import Claim, Cost, Tier
from attlas.errors import InputError
from attlas.inputs import integer
from attlas.store import canonical, key_of_text

SEEDS_PER_RUN = 1000
LARGEST_RUN = 10**12  # so that every seed fits the store's 64 bits


@dataclass(frozen=True)
class Cell:
    """One cell of a sweep: a claim at a point and a seed."""

    claim: Claim[Any]
    point: dict[str, Any]
    seed: int
    key: str
    cost: Cost


def plan(
    claims: Sequence[Claim[Any]],
    tier: Tier = "quick",
    seed: int = 0,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
    runs: int = 1,
) -> list[Cell]:
    """Return the tasks of a sweep, in an order that does not depend on who runs it.

    Parameters
    ----------
    claims : sequence of Claim
    tier : {"quick", "full"}
    seed : int, default 0
        Run number: seed s of the sweep is ``1000 * seed + s``, so that two runs share none.
    grid : mapping, optional
        Settings to sweep instead of the tier's: every combination, at every point of the tier, repeats removed.
    seeds : int, optional
        How many seeds at each point, instead of the tier's.
    runs : int, default 1
        How many runs, numbered from `seed` on, one after the other.

    Examples
    --------
    >>> from attlas import lab
    >>> from attlas.claims import find
    >>> tasks = lab.plan(find(["features.invariance"]), grid={"d": [8]}, seeds=2)
    >>> sorted({(task.point["d"], task.seed) for task in tasks})
    [(8, 0), (8, 1)]
    """
    if integer(seed, "seed", least=0) + integer(runs, "runs") - 1 > LARGEST_RUN:
        raise InputError(f"seed must be at most {LARGEST_RUN}; got {seed}")
    tasks: dict[str, Cell] = {}
    for number in range(seed, seed + runs):
        for claim in claims:
            for cell in _cells(claim, tier, number, grid or {}, seeds):
                tasks.setdefault(cell.key, cell)
    return list(tasks.values())


def _cells(
    claim: Claim[Any], tier: Tier, seed: int, grid: Mapping[str, Sequence[Any]], seeds: int | None
) -> Iterator[Cell]:
    for point, own in claim.tiers[tier]:
        count = own if seeds is None else integer(seeds, "seeds")
        if count > SEEDS_PER_RUN:
            raise InputError(f"at most {SEEDS_PER_RUN} seeds in one run; use --seed 1, 2, ... for more")
        for changes in _combinations(grid):
            settings = _validated(claim, point.model_dump() | changes)
            data, cost = settings.model_dump(mode="json"), claim.cost(settings)
            text = canonical(data)
            for s in range(SEEDS_PER_RUN * seed, SEEDS_PER_RUN * seed + count):
                yield Cell(claim, data, s, key_of_text(claim.id, claim.version, text, s), cost)


def _combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _validated(claim: Claim[Any], data: dict[str, Any]) -> Any:
    unknown = set(data) - set(claim.settings.model_fields)
    if unknown:
        raise InputError(
            f"{claim.id} has no setting {', '.join(sorted(unknown))}; it has {', '.join(claim.settings.model_fields)}"
        )
    try:
        return claim.settings(**data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"][0].lower() + first["msg"][1:]
        raise InputError(f"{claim.id}: {where}: {message}; got {canonical_or_repr(first['input'])}") from error


def canonical_or_repr(value: Any) -> str:
    """Return how a person would write the value."""
    try:
        return canonical(value)
    except InputError:
        return repr(value)
