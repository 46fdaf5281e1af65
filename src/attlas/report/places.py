"""The doors as the site shows them: each with its claims, what was found, and the doors that share its model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from attlas.claims import Difference, Door, door
from attlas.lab import Judged


@dataclass(frozen=True)
class Place:
    """A door, its claims, and as its parts the doors whose parent it is."""

    door: Door
    entries: Sequence[Judged]
    parts: list["Place"] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """How many claims have which status."""
        return Counter(entry.status for entry in self.entries)

    @property
    def finding(self) -> str:
        """What the claim that speaks for the door found; nothing before it has a verdict."""
        spoken = [entry for entry in self.entries if entry.claim.id == self.door.headline]
        return found(spoken[0]) if spoken else ""

    @property
    def differences(self) -> list[tuple[Judged, Difference, str]]:
        """Where its claims find other numbers than the literature: the claim, what was published, what is found here."""
        return [(entry, one, _ours(entry, one)) for entry in self.entries for one in entry.claim.differs]


def places(judged: Sequence[Judged]) -> list[Place]:
    """Return the doors of these claims in their order, parts also on their own."""
    owners = sorted({entry.claim.door for entry in judged}, key=lambda key: (door(key).order, key))
    found = {key: Place(door(key), [entry for entry in judged if entry.claim.door == key]) for key in owners}
    for place in found.values():
        if place.door.parent in found:
            found[place.door.parent].parts.append(place)
    return list(found.values())


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
        return entry.verdict.reason
