"""What a design can decide: how often a true claim is supported, and which wrong theories are refuted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attlas.claims.claim import Claim, Measurement
from attlas.claims.estimate import Undecided
from attlas.claims.mutation import Mutation
from attlas.claims.verdict import Outcome, Test, Verdict, decide
from attlas.numerics import Event, Progress, stream

DRAWS = 200
DESIGNS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Design:
    """What a design with so many times the seeds would do.

    Attributes
    ----------
    seeds : float
        Times the number of seeds that was run.
    supported : float
        Share of resampled runs that support the claim if theory is true: estimates scatter about what it expects.
    refuted : float
        Share of those that refute it: false alarms.
    as_measured : float
        Share that support it if the truth is where the runs found it.
    """

    seeds: float
    supported: float
    refuted: float
    as_measured: float


@dataclass(frozen=True)
class Detected:
    """What becomes of a mutation.

    Attributes
    ----------
    name : str
        With `size`.
    size : float
    outcome : Outcome
        Of the measurements as they are, mutated.
    strength : float
    required : bool
        Whether the claim must refute it.
    """

    name: str
    size: float
    outcome: Outcome
    strength: float
    required: bool


@dataclass(frozen=True)
class Power:
    """The power of a claim's design, from measurements that were made.

    Attributes
    ----------
    verdict : Verdict
        Of the measurements as they are.
    tests : tuple of Test
    designs : tuple of Design
        With half, once, twice and four times the seeds.
    detected : tuple of Detected
    """

    verdict: Verdict
    tests: tuple[Test, ...]
    designs: tuple[Design, ...]
    detected: tuple[Detected, ...]


def power(
    claim: Claim[Any],
    measurements: Sequence[Measurement[Any]],
    *,
    designs: Sequence[float] = DESIGNS,
    draws: int = DRAWS,
    remeasure: bool = False,
    progress: Progress | None = None,
) -> Power:
    """Resample the seeds of measurements that were made, and judge them again.

    Seeds are drawn with replacement, the same ones at all points that have them, so that what is paired stays paired.
    Estimates of resampled runs are moved to where theory expects them; their scatter stays. A handful of seeds resampled
    scatters a little less than fresh ones.

    Parameters
    ----------
    claim : Claim
    measurements : sequence of Measurement
    designs : sequence of float
        Times the number of seeds that was run.
    draws : int, default 200
    remeasure : bool, default False
        Also make the measurements of broken learners (mutations with a `measure`), which takes as long as a run.
    progress : callable, optional
        Called with an `Event` after every design.
    """
    verdict = claim.verdict(measurements)
    offsets = {test.name: test.expected - test.estimate.value for test in verdict.tests if test.expected is not None}
    found = []
    for step, factor in enumerate(designs, 1):
        rng = stream(0, "power", claim.id, f"{factor:g}")
        outcomes, plain = [], []
        for _ in range(draws if verdict.tests else 0):
            drawn = claim.verdict(_resampled(measurements, factor, rng))
            plain.append(drawn.outcome)
            outcomes.append(
                decide([_moved(test, offsets) for test in drawn.tests]).outcome if drawn.tests else drawn.outcome
            )
        shares = [
            float(np.mean([outcome is wanted for outcome in them])) if them else np.nan
            for them, wanted in ((outcomes, Outcome.SUPPORTED), (outcomes, Outcome.REFUTED), (plain, Outcome.SUPPORTED))
        ]
        found.append(Design(factor, *shares))
        if progress is not None:
            progress(Event(step, len(designs), f"{factor:g} times the seeds: supported in {shares[0]:.0%}", shares[0]))
    return Power(verdict, verdict.tests, tuple(found), tuple(detect(claim, measurements, remeasure=remeasure)))


def detect(claim: Claim[Any], measurements: Sequence[Measurement[Any]], *, remeasure: bool = False) -> list[Detected]:
    """Return what becomes of every mutation of a claim at every size."""
    found = []
    for mutation in claim.mutations:
        if mutation.measure is not None and not remeasure:
            continue
        for size in mutation.sizes:
            verdict = claim.verdict(mutation.applied(measurements, size, claim.own_seed))
            found.append(
                Detected(mutation.label(size), size, verdict.outcome, verdict.strength, _required(mutation, size))
            )
    return found


def _required(mutation: Mutation, size: float) -> bool:
    return list(mutation.sizes).index(size) >= list(mutation.sizes).index(mutation.refuted_at)


def _moved(test: Test, offsets: dict[str, float]) -> Test:
    return replace(test, estimate=test.estimate.shifted(offsets[test.name])) if test.name in offsets else test


def _resampled(
    measurements: Sequence[Measurement[Any]], factor: float, rng: np.random.Generator
) -> list[Measurement[Any]]:
    """Return measurements with their seeds drawn anew, `factor` times as many, numbered from 0."""
    groups: dict[Any, dict[int, Measurement[Any]]] = {}
    for m in measurements:
        groups.setdefault(m.point, {})[m.seed] = m
    if max(map(len, groups.values())) < 2:
        raise Undecided("one seed at every point: there is nothing to resample")
    drawn: list[Measurement[Any]] = []
    chosen: list[int] = []
    for own in sorted(
        groups.values(), key=len
    ):  # points with more seeds take those of points with fewer, and further ones
        if len(own) == 1:
            drawn += [replace(m, seed=0) for m in own.values()]
            continue
        count = max(2, round(len(own) * factor))
        shared = chosen[:count] if own.keys() >= set(chosen[:count]) else []
        seeds = list(own)
        chosen = shared + [seeds[i] for i in rng.integers(len(seeds), size=count - len(shared))]
        drawn += [replace(own[seed], seed=i) for i, seed in enumerate(chosen)]
    return drawn
