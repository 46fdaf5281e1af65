"""From tests to a verdict: every test must hold, and one that fails refutes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from attlas.claims.estimate import LEVEL, Estimate, Exact

MANY = 1_000_000  # standard errors; more are those of numbers that did not scatter


class Outcome(StrEnum):
    """What the numbers say."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    ILLUSTRATION = "illustration"  # shown, not judged
    DAMAGED = "damaged"  # the judge could not work with what is stored


@dataclass(frozen=True)
class Region:
    """Where a number must lie for a statement to be true for practical purposes; the ends do not belong to it."""

    low: float = -np.inf
    high: float = np.inf

    def holds(self, interval: tuple[float, float]) -> bool:
        """Return whether the interval lies inside."""
        low, high = interval
        return (low > self.low or self.low == -np.inf) and (high < self.high or self.high == np.inf)

    def excludes(self, interval: tuple[float, float]) -> bool:
        """Return whether the interval lies outside."""
        low, high = interval
        return high <= self.low or (low >= self.high and self.high < np.inf)

    def __str__(self) -> str:
        if self.high == np.inf:
            return f"above {self.low:.4g}"
        if self.low == -np.inf:
            return f"below {self.high:.4g}"
        return f"between {self.low:.4g} and {self.high:.4g}"


def about(value: float, eps: float) -> Region:
    """Return the numbers within a share `eps` of a value: equal for practical purposes."""
    return between(value - eps * abs(value), value + eps * abs(value))


def between(low: float, high: float) -> Region:
    """Return the numbers between two."""
    return Region(low, high)


def above(low: float) -> Region:
    """Return the numbers above one."""
    return Region(low=low)


def below(high: float) -> Region:
    """Return the numbers below one."""
    return Region(high=high)


@dataclass(frozen=True)
class Test:
    """One number that a claim stands on.

    Attributes
    ----------
    name : str
        What the number is, as people read it in a table.
    estimate : Estimate
    region : Region
        Where it must lie.
    expected : float, optional
        What theory says it is. The power of a design is computed there; without it, where the runs found it.
    """

    name: str
    estimate: Estimate
    region: Region
    expected: float | None = None

    __test__ = False  # not one of pytest's

    @property
    def exact(self) -> bool:
        """Whether the number has no scatter."""
        return isinstance(self.estimate, Exact)

    def side(self, level: float = LEVEL) -> int:
        """Return 1 if the interval lies inside the region, -1 if outside, else 0."""
        interval = self.estimate.interval(1.0 if self.exact else level)
        if np.isnan(interval).any():
            return 0
        if np.isinf(self.estimate.value) and self.region.holds(interval):
            return 0  # what is infinite is evidence against a bound, not for one
        return 1 if self.region.holds(interval) else -1 if self.region.excludes(interval) else 0

    @property
    def strength(self) -> float:
        """How far inside its region the number is: in standard errors, or in orders of magnitude if it has none."""
        value, (low, high) = self.estimate.value, (self.region.low, self.region.high)
        if not self.exact:
            return min(self.estimate.distance(low), -self.estimate.distance(high))
        if np.isfinite([low, high]).all():
            off, allowed = abs(value - (low + high) / 2), (high - low) / 2
        elif low == -np.inf and high > 0 and value >= 0:
            off, allowed = value, high
        else:
            return float(np.inf) if self.side() > 0 else float(-np.inf)
        if off == np.inf:
            return float(-np.inf)
        return float(np.log10(allowed / off)) if off > 0 else float(np.inf)

    @property
    def unit(self) -> str:
        """What `strength` counts."""
        return "orders of magnitude" if self.exact else "standard errors"

    @property
    def width(self) -> float:
        """Width of the interval over that of the region; 0 if the region has one end or the number no scatter."""
        low, high = self.estimate.interval(LEVEL)
        return (high - low) / (self.region.high - self.region.low) if not self.exact else 0.0

    def __str__(self) -> str:
        low, high = self.estimate.interval(LEVEL)
        found = f"{self.estimate.value:.4g}" + ("" if self.exact else f" ({low:.4g} to {high:.4g})")
        return f"{self.name} is {found} and must be {self.region}"


@dataclass(frozen=True)
class Verdict:
    """A decision and the numbers that made it.

    Attributes
    ----------
    outcome : Outcome
    reason : str
        One sentence with the deciding numbers.
    strength : float
        How far the deciding test is inside its region, in `unit`; negative when it is outside.
    unit : str
    numbers : dict
        Every number that entered the decision.
    tests : tuple of Test
    """

    outcome: Outcome
    reason: str
    strength: float = 0.0
    unit: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    tests: tuple[Test, ...] = ()

    @property
    def strength_text(self) -> str:
        """The strength with its unit, as people read it; nothing where nothing was tested."""
        if not self.unit:
            return ""
        if not np.isfinite(self.strength):
            return "exact" if self.strength > 0 else "fails outright"
        if abs(self.strength) >= MANY:  # of numbers that did not scatter in any seed
            return f"{'-' if self.strength < 0 else ''}over {MANY:,} {self.unit}"
        return f"{self.strength:.2g} {self.unit}"


def decide(tests: Sequence[Test], reason: str = "", numbers: Mapping[str, float] | None = None) -> Verdict:
    """Return the verdict of tests that must all hold.

    Supported if the 99 % interval of every test lies inside its region (an intersection-union test: no correction for their
    number). Refuted if the interval of some test lies outside, at 99 % for all tests with scatter together (Bonferroni).
    Otherwise inconclusive.

    Parameters
    ----------
    tests : sequence of Test
        Every condition that can turn the verdict.
    reason : str, optional
        What was found, for people; the deciding test is told after it.
    numbers : mapping, optional
        What is reported beside the tests and decides nothing.
    """
    if not tests:
        return Verdict(Outcome.INCONCLUSIVE, "there is nothing to test")
    scattered = sum(not test.exact for test in tests)
    family = 1 - (1 - LEVEL) / max(scattered, 1)
    failed = [test for test in tests if test.side(family) < 0]
    open_ = [test for test in tests if test.side() <= 0]
    if failed:
        outcome, decisive = Outcome.REFUTED, failed
    elif open_:
        outcome, decisive = Outcome.INCONCLUSIVE, open_
    else:
        outcome, decisive = Outcome.SUPPORTED, [test for test in tests if not test.exact] or list(tests)
    deciding = min(decisive, key=lambda test: test.strength)
    told = {key: value for test in tests for key, value in test.estimate.numbers(test.name).items()}
    which = {
        Outcome.SUPPORTED: "nearest to failing" if len(tests) > 1 else "tested",
        Outcome.REFUTED: "fails",
        Outcome.INCONCLUSIVE: "undecided",
    }[outcome]
    said = f"{which}: {deciding}"
    if outcome is Outcome.INCONCLUSIVE and 0 < deciding.width < np.inf:
        said += f", its interval {deciding.width:.2g} times as wide as that"
    return Verdict(
        outcome,
        f"{reason}; {said}" if reason else said,
        deciding.strength,
        deciding.unit,
        told | dict(numbers or {}),
        tuple(tests),
    )
