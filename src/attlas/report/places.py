"""The doors as the site shows them: each with its claims, what was found, and where it differs from the literature."""

from collections.abc import Sequence
from dataclasses import dataclass

from attlas.claims import Difference, Door, door
from attlas.claims.wording import worded
from attlas.lab import Judged


@dataclass(frozen=True)
class Place:
    """A door and its claims."""

    door: Door
    entries: Sequence[Judged]

    @property
    def ordered(self) -> list[Judged]:
        """Its claims, the one that speaks for the door first."""
        return sorted(self.entries, key=lambda entry: entry.claim.id != self.door.headline)

    @property
    def differences(self) -> list[tuple[Judged, Difference, str]]:
        """Where its claims find other numbers than the literature: the claim, what was published, what is found here."""
        return [(entry, one, _ours(entry, one)) for entry in self.entries for one in entry.claim.differs]


def places(judged: Sequence[Judged]) -> list[Place]:
    """Return the doors of these claims in their order."""
    owners = sorted({entry.claim.door for entry in judged}, key=lambda key: (door(key).order, key))
    return [Place(door(key), [entry for entry in judged if entry.claim.door == key]) for key in owners]


def found(entry: Judged) -> str:
    """Return what was found, in the claim's own words; nothing before there is a verdict."""
    return entry.claim.found(entry.verdict) if entry.verdict else ""


def _ours(entry: Judged, difference: Difference) -> str:
    if entry.verdict is None:
        return (
            f"the claim has not been run to its end ({len(entry.records)} of {entry.planned} points are in the store)"
        )
    try:
        return difference.ours(entry.verdict.numbers)
    except LookupError:
        return worded(entry.verdict.reason)
