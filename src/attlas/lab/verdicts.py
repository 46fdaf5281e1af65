"""From results to verdicts. A verdict is a function of the store: it is never stored, so it is never stale."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from attlas.claims import Claim, Measurement, Outcome, Tier, Verdict, find
from attlas.claims.verdict import MANY
from attlas.errors import DamagedStore
from attlas.lab.plan import SEEDS_PER_RUN, plan
from attlas.lab.shipped import PILOTS
from attlas.lab.shipped import shipped as shipped_records
from attlas.lab.side_by_side import side_by_side
from attlas.store import Record, present, read

CLOSE = 0.01  # of an interval: what other rounding may do


@dataclass(frozen=True)
class Judged:
    """A claim and what the store says of it.

    Attributes
    ----------
    claim : Claim
    planned : int
        Points the tier asks for.
    records : sequence of Record
        Those that are in the store.
    verdict : Verdict or None
        None until every planned point is there.
    shipped : bool
        Whether the results came with attlas: the store holds none of them.
    runs : mapping
        The verdict of every finished run by its number, where they were asked for.
    """

    claim: Claim[Any]
    planned: int
    records: Sequence[Record]
    verdict: Verdict | None
    shipped: bool = False
    runs: Mapping[int, Verdict] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """The outcome, or "not run" or "unfinished"."""
        if self.verdict is not None:
            return self.verdict.outcome.value
        return "unfinished" if self.records else "not run"

    @property
    def holds(self) -> bool:
        """Whether the claim is supported."""
        return self.verdict is not None and self.verdict.outcome is Outcome.SUPPORTED

    @property
    def margin(self) -> str:
        """How far inside or outside its region the deciding number is, in words; nothing where nothing is decided."""
        if self.verdict is None or self.verdict.outcome not in (Outcome.SUPPORTED, Outcome.REFUTED):
            return ""
        far = 100 <= abs(self.verdict.strength) < MANY
        return f"{self.verdict.strength:.0f} {self.verdict.unit}" if far else self.verdict.strength_text

    @property
    def repeated(self) -> str:
        """How often the runs agree with the verdict, such as "supported in 5 of 5 runs"; nothing of a single run."""
        if self.verdict is None or len(self.runs) < 2:
            return ""
        same = sum(verdict.outcome is self.verdict.outcome for verdict in self.runs.values())
        return f"{self.status} in {same} of {len(self.runs)} runs"

    @property
    def versions(self) -> dict[str, int]:
        """How many results were computed with which versions of attlas, numpy and scipy; one entry if all agree."""
        told = [
            {name: r.versions[name] for name in ("attlas", "numpy", "scipy") if name in r.versions}
            for r in self.records
        ]
        return dict(Counter(", ".join(f"{name} {number}" for name, number in each.items()) for each in told))

    @property
    def mixture(self) -> str:
        """A sentence if the results were computed with several versions, whose bits need not agree; else nothing."""
        if len(self.versions) < 2:
            return ""
        return "computed with several versions: " + "; ".join(
            f"{count} with {text}" for text, count in self.versions.items()
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes without the claim, which is found again by its id."""
        return _found_again, (self.claim.id, self.planned, self.records, self.verdict, self.shipped, dict(self.runs))

    def measurements(self) -> list[Measurement[Any]]:
        """Return the results with their validated settings, as `judge` and `draw` take them."""
        return measurements(self.claim, self.records)


def _found_again(claim: str, *others: Any) -> Judged:
    return Judged(find([claim])[0], *others)


def verdicts(
    claims: Sequence[str] | None = None,
    tier: Tier = "quick",
    *,
    store: Path | str = "attlas.db",
    seed: int = 0,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
    shipped: bool = False,
    repeats: bool = False,
    workers: int = 1,
) -> list[Judged]:
    """Judge claims on what the store holds of their plan; a store that does not exist holds nothing.

    Parameters
    ----------
    claims, tier, store, seed, grid, seeds
        As for `attlas.lab.run`.
    shipped : bool, default False
        Judge a claim of which the store holds nothing by the results that came with attlas.
    repeats : bool, default False
        Judge also every other finished run of the tier.
    workers : int, default 1
        Processes that share the claims.

    Examples
    --------
    >>> from attlas import lab
    >>> (found,) = lab.verdicts(["features.invariance"], store="none.db", shipped=True)
    >>> print(found.status)
    supported
    """
    found = find(list(claims) if claims else None)
    path = Path(store)
    own: dict[str, list[Record]] = {claim.id: [] for claim in found}
    for record in read(path, list(own)) if present(path) else ():
        own[record.claim].append(record)
    judged = partial(_judged, tier=tier, seed=seed, grid=grid, seeds=seeds, shipped=shipped, repeats=repeats)
    return side_by_side(judged, list(own.items()), workers)


def _judged(
    asked: tuple[str, Sequence[Record]],
    tier: Tier,
    seed: int,
    grid: Mapping[str, Sequence[Any]] | None,
    seeds: int | None,
    shipped: bool,
    repeats: bool,
) -> Judged:
    """Judge a claim on what the store holds of it."""
    (claim,) = find([asked[0]])
    own_design = bool(grid) or seeds is not None
    cells = plan([claim], tier, seed, grid, seeds)
    stored = {r.key: r for r in asked[1] if r.version == claim.version}
    records = [stored[cell.key] for cell in cells if cell.key in stored]
    lent = shipped and not records and not own_design
    if lent:
        stored = {r.key: r for r in shipped_records([claim])}
        records = [stored[cell.key] for cell in cells if cell.key in stored]
    verdict = _judge(claim, tier, records) if len(records) == len(cells) else None
    known = {seed: verdict} if verdict is not None else {}
    runs = _runs(claim, tier, stored, known) if repeats and not own_design else {}
    return Judged(claim, len(cells), records, verdict, lent and bool(records), runs)


def agreement(entry: Judged, tier: Tier, seed: int = 0) -> str:
    """Say in a few words whether a verdict agrees with the one that came with attlas; nothing where one is missing.

    The same outcome agrees. How far the numbers of the tests are apart is told in their standard errors: rounding is far
    below one, another version of a library may not be.

    Examples
    --------
    >>> from attlas import lab
    >>> (entry,) = lab.verdicts(["features.invariance"], store="none.db", shipped=True)
    >>> lab.agreement(entry, "quick")  # results that came with attlas are not compared with themselves
    ''
    """
    if entry.verdict is None or entry.shipped:
        return ""
    stored = {r.key: r for r in shipped_records([entry.claim])}
    if not stored:
        return ""
    keys = [cell.key for cell in plan([entry.claim], tier, seed)]
    if not all(key in stored for key in keys) or {r.key for r in entry.records} != set(keys):
        return ""
    theirs = _judge(entry.claim, tier, [stored[key] for key in keys])
    if theirs.outcome is not entry.verdict.outcome:
        return f"differs: {theirs.outcome.value}"
    before = {test.name: test.estimate for test in theirs.tests}
    apart = [
        abs(test.estimate.value - before[test.name].value) / error
        for test in entry.verdict.tests
        if test.name in before and (error := np.ptp(before[test.name].interval()) / 2) > 0
    ]
    return "agrees" if max(apart, default=0.0) < CLOSE else f"agrees, numbers {max(apart):.1g} intervals apart"


def _runs(
    claim: Claim[Any], tier: Tier, stored: Mapping[str, Record], known: Mapping[int, Verdict]
) -> dict[int, Verdict]:
    """Return the verdicts of all finished runs of a tier, pilots left out; those known already are not judged again."""
    runs = {}
    for number in sorted({record.seed // SEEDS_PER_RUN for record in stored.values()}):
        keys = [cell.key for cell in plan([claim], tier, number)] if number < PILOTS else []
        if keys and all(key in stored for key in keys):
            runs[number] = known.get(number) or _judge(claim, tier, [stored[key] for key in keys])
    return runs


def _judge(claim: Claim[Any], tier: Tier, records: Sequence[Record]) -> Verdict:
    found = claim.verdict(measurements(claim, records))
    if claim.tiers[tier].decides or found.outcome is Outcome.DAMAGED:
        return found
    reason = f"too small to decide, shown for what it is: {found.reason}"
    return replace(found, outcome=Outcome.ILLUSTRATION, reason=reason)


def measurements(claim: Claim[Any], records: Sequence[Record]) -> list[Measurement[Any]]:
    """Return records as measurements of their claim; a record whose settings the claim does not accept is damage."""
    # decoded anew and not kept with the record, so that a hundred thousand results fit in memory
    return [Measurement(stored_point(claim, r), r.seed, r.decoded()) for r in records]


def stored_point(claim: Claim[Any], record: Record) -> Any:
    """Return the validated settings of a stored result, which anybody may have written."""
    try:
        return claim.settings(**record.point)
    except ValidationError as error:
        raise DamagedStore(f"{record.point} are no settings of {claim.id} ({error.errors()[0]['msg']})") from error
