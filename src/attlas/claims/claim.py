"""What a claim is: one sentence that can turn out false, the functions that decide it, and its words."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from attlas.claims.estimate import Undecided
from attlas.claims.mutation import Mutation
from attlas.claims.series import Series
from attlas.claims.verdict import Outcome, Verdict
from attlas.errors import InputError
from attlas.inputs import described

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tier = Literal["quick", "full"]
Result = dict[str, Any]
Numbers = Mapping[str, float]
SHARED = 3  # versions of a claim up to this one draw the same data


class Settings(BaseModel):
    """The settings of one point of a sweep. A claim says what they are and which values make sense."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


P = TypeVar("P", bound=Settings)


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
    """Which points, and how many seeds at each.

    Attributes
    ----------
    points : sequence of Settings
    seeds : int, or sequence of int
        At every point, or at each: many where runs are cheap and scatter, few at large sizes.
    decides : bool
        False if the tier is too small to judge the claim: its figure is an illustration.
    """

    points: Sequence[P]
    seeds: int | Sequence[int]
    decides: bool = True

    def __iter__(self) -> Iterator[tuple[P, int]]:
        """Yield every point with its number of seeds."""
        counts = [self.seeds] * len(self.points) if isinstance(self.seeds, int) else self.seeds
        return zip(self.points, counts, strict=True)


@dataclass(frozen=True)
class Difference:
    """Where the literature says otherwise.

    Attributes
    ----------
    title : str
        Two or three words.
    statement : str
        What was published, in a sentence.
    ours : callable
        ``ours(numbers) -> str``: what is found here, a sentence made of the verdict's numbers. Raises `LookupError`
        where they are not there.
    theirs : str
        The published number, if it is one.
    """

    title: str
    statement: str
    ours: Callable[[Numbers], str]
    theirs: str = ""


class Unfinished(StrEnum):
    """What a verdict does with runs that did not converge, said before there are any."""

    UNDECIDED = "undecided"  # one such run, and the claim is neither supported nor refuted
    USED = "used"  # the judge has what they reached, and may leave some out; they are counted and reported


@dataclass(frozen=True)
class Claim(Generic[P]):
    """One sentence of a paper (or of ours) that can turn out false.

    Attributes
    ----------
    id : str
        Never changes.
    version : int
        Raise it when the design changes, or `measure` its numbers; results of other versions are then not used, and the
        new one draws data of its own.
    statement : str
        One sentence, its formulas TeX between dollar signs; `attlas.claims.tex.plain` types them as people do.
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
    caption : str
        What the figure shows: axes, points, lines, in one or two sentences.
    finding : callable, optional
        ``finding(numbers) -> str``: what was found, a sentence for people in passing, made of the numbers of a verdict that
        supports the claim.
    differs : sequence of Difference
        Where the literature says otherwise.
    series : callable, optional
        ``series(measurements) -> list of Series``: the points of the figure with their errors, and the theory beside them.
    absent : sequence of str
        Names of what a result may leave out, as NaN. A claim is not supported by results with any other NaN.
    unfinished : Unfinished
        What the verdict does with runs whose result says ``converged: False``.
    mutations : sequence of Mutation
        What the claim must refute.
    unseen : str
        What the claim would not see, in a sentence.
    design : str
        How sizes, seeds and tolerances were chosen, in a sentence: the pilot and what followed from it.
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
    caption: str = ""
    finding: Callable[[Numbers], str] | None = None
    differs: Sequence[Difference] = ()
    series: Callable[[Sequence[Measurement[P]]], Sequence[Series]] | None = None
    absent: Sequence[str] = ()
    unfinished: Unfinished = Unfinished.UNDECIDED
    mutations: Sequence[Mutation] = ()
    unseen: str = ""
    design: str = ""

    @property
    def door(self) -> str:
        """The part of the id before the dot."""
        return self.id.split(".")[0]

    def own_seed(self, seed: int) -> int:
        """Return the seed that `measure` is given: no two claims draw the same data, nor two versions of one.

        A redesigned claim is judged on data that nobody saw while redesigning it. Versions up to 3 share their data.
        """
        name = self.id if self.version <= SHARED else f"{self.id} {self.version}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") // 2 + seed

    def verdict(self, measurements: Sequence[Measurement[P]]) -> Verdict:
        """Return what `judge` says, and what follows from runs that did not converge (`unfinished`).

        A judge that raises `Undecided` leaves the claim open; one that raises anything else says that what is stored is
        damaged.
        """
        try:
            stopped = sum(not _ended(m.result) for m in measurements)
            gaps = sum(_has_gap(m.result, self.absent) for m in measurements)
            with np.errstate(
                divide="ignore", invalid="ignore", over="ignore"
            ):  # infinities are judged for what they are
                found = self.judge(measurements)
        except Undecided as why:
            return Verdict(Outcome.INCONCLUSIVE, str(why))
        except Exception as error:
            return Verdict(Outcome.DAMAGED, f"the numbers cannot be judged: {type(error).__name__}: {error}")
        if gaps and found.outcome is Outcome.SUPPORTED:  # comparisons with NaN are silent: no judge need notice them
            reason = f"{gaps} of {len(measurements)} results hold values that are not numbers; {found.reason}"
            found = replace(found, outcome=Outcome.INCONCLUSIVE, reason=reason)
        if not stopped:
            return found
        note = f"{stopped} of {len(measurements)} runs did not converge"
        if self.unfinished is Unfinished.USED:
            note += "; the judge uses what they reached"
        undecided = self.unfinished is Unfinished.UNDECIDED
        return replace(
            found,
            outcome=Outcome.INCONCLUSIVE if undecided else found.outcome,
            reason=f"{found.reason}; {note}",
            numbers=found.numbers | {"runs that did not converge": float(stopped)},
        )

    def found(self, verdict: Verdict) -> str:
        """Return what was found, in a sentence: `finding` where the claim is supported and has one, else the reason."""
        if self.finding is None or verdict.outcome is not Outcome.SUPPORTED:
            return verdict.reason
        try:
            return self.finding(verdict.numbers)
        except LookupError:
            return verdict.reason


def _has_gap(result: Result, absent: Sequence[str]) -> bool:
    """Return whether a result holds NaN where none may be."""
    values = (np.asarray(value) for name, value in result.items() if name not in absent)
    return any(value.dtype.kind in "fc" and bool(np.isnan(value).any()) for value in values)


def _ended(result: Result) -> bool:
    """Return whether every iteration behind a result converged; a result that says nothing had none, or is older."""
    said = np.asarray(result.get("converged", True))
    if said.dtype != bool:
        raise InputError(f"converged must be true or false, or an array of them; got {described(result['converged'])}")
    return bool(said.all())
