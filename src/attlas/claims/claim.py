"""What a claim is: one sentence that can turn out false, and the three functions that decide it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tier = Literal["quick", "full"]
Result = dict[str, Any]


class Settings(BaseModel):
    """The settings of one point of a sweep. A claim says what they are and which values make sense."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


P = TypeVar("P", bound=Settings)


class Outcome(StrEnum):
    """What the numbers say."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"

    @classmethod
    def of(cls, sides: "Sequence[int]") -> "Outcome":
        """Return the outcome of several tests that must all hold: 1 one that holds, -1 one that fails, 0 one undecided."""
        return cls.SUPPORTED if min(sides) > 0 else cls.REFUTED if min(sides) < 0 else cls.INCONCLUSIVE


@dataclass(frozen=True)
class Verdict:
    """A decision and the numbers that made it.

    Attributes
    ----------
    outcome : Outcome
    reason : str
        One sentence with the deciding numbers.
    margin : float
        How far the closest test is from turning, in `unit`; negative when it has turned.
    unit : str
    numbers : dict
        Every number that entered the decision.
    """

    outcome: Outcome
    reason: str
    margin: float
    unit: str
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement(Generic[P]):
    """One cell of a sweep: its settings, its seed, what was measured."""

    point: P
    seed: int
    result: Result


@dataclass(frozen=True)
class Cost:
    """What one point is expected to take on one core: seconds and peak bytes."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Sweep(Generic[P]):
    """Which points, and how many seeds at each."""

    points: Sequence[P]
    seeds: int


@dataclass(frozen=True)
class Claim(Generic[P]):
    """One sentence of a paper (or of ours) that can turn out false.

    Attributes
    ----------
    id : str
        Never changes.
    version : int
        Raise it when `measure` changes its numbers; results of other versions are then not used.
    statement : str
    source : str
        Key of ``references.bib``, and where in it.
    settings : type
        The `Settings` of a point.
    tiers : mapping
        ``quick`` takes under a minute on two cores, ``full`` is the scale of the paper.
    measure : callable
        ``measure(point, seed) -> result``: numbers and small arrays. No I/O, no globals, the same bits for a seed.
    judge : callable
        ``judge(measurements) -> Verdict``, by statistics.
    draw : callable
        ``draw(measurements) -> Figure``: what a person would rather look at than read.
    cost : callable
        ``cost(point) -> Cost``, for plans.
    formula : str
        The equation that is tested, in TeX, letters as in ``docs/notation.md``.
    """

    id: str
    version: int
    statement: str
    source: str
    settings: type[P]
    tiers: Mapping[Tier, Sweep[P]]
    measure: Callable[[P, int], Result]
    judge: Callable[[Sequence[Measurement[P]]], Verdict]
    draw: Callable[[Sequence[Measurement[P]]], "Figure"]
    cost: Callable[[P], Cost]
    formula: str = ""

    @property
    def door(self) -> str:
        """The part of the id before the dot."""
        return self.id.split(".")[0]
