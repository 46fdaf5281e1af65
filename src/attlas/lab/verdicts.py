"""From results to verdicts. A verdict is a function of the store: it is never stored, so it is never stale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attlas.claims import Claim, Measurement, Outcome, Tier, Verdict, find
from attlas.lab.plan import plan
from attlas.store import Record, read


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
    """

    claim: Claim[Any]
    planned: int
    records: Sequence[Record]
    verdict: Verdict | None

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

    def measurements(self) -> list[Measurement[Any]]:
        """Return the results with their validated settings, as `judge` and `draw` take them."""
        return measurements(self.claim, self.records)


def verdicts(
    claims: Sequence[str] | None = None,
    tier: Tier = "quick",
    *,
    store: Path | str = "attlas.db",
    seed: int = 0,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
) -> list[Judged]:
    """Judge claims on what the store holds of their plan; a store that does not exist holds nothing.

    Parameters
    ----------
    claims, tier, store, seed, grid, seeds
        As for `attlas.lab.run`.
    """
    found = find(list(claims) if claims else None)
    tasks = plan(found, tier, seed, grid, seeds)
    path = Path(store)
    stored = {r.key: r for r in read(path, [c.id for c in found])} if path.exists() and path.stat().st_size else {}
    judged = []
    for claim in found:
        keys = [task.key for task in tasks if task.claim is claim]
        records = [stored[key] for key in keys if key in stored]
        verdict = _judge(claim, records, claim.tiers[tier].decides) if len(records) == len(keys) else None
        judged.append(Judged(claim, len(keys), records, verdict))
    return judged


def _judge(claim: Claim[Any], records: Sequence[Record], decides: bool) -> Verdict:
    found = claim.verdict(measurements(claim, records))
    if decides or found.outcome is Outcome.DAMAGED:
        return found
    reason = f"too small to decide, shown for what it is: {found.reason}"
    return replace(found, outcome=Outcome.ILLUSTRATION, reason=reason)


def measurements(claim: Claim[Any], records: Sequence[Record]) -> list[Measurement[Any]]:
    """Return records as measurements of their claim."""
    return [Measurement(claim.settings(**r.point), r.seed, r.result) for r in records]
