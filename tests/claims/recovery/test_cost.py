"""recovery.cost: work that is a power supports it; an exponential, other exponents and runs that fail refute it."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.cost import CLAIM, Counting, Point, operations
from attlas.claims.recovery.kit.tasks import planted
from attlas.recovery.variable_projection import eliminate, work_of_a_step

from .small import turned, worded


def worked(factor=lambda p: 1.0, residual=1e-12, seeds=16):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            p,
            seed,
            {
                "steps": 10.0,
                "trials": 12.0,
                "operations": operations(p, 10.0, 12.0) * factor(p) * np.exp(rng.normal(0, 0.1)),
                "residual": residual,
            },
        )
        for p, _ in CLAIM.tiers["quick"]
        for seed in range(seeds)
    ]


def test_the_work_must_be_that_of_the_algebra():
    turned(CLAIM, worked())
    assert CLAIM.verdict(worked(lambda p: np.exp(p.heads))).outcome is Outcome.REFUTED
    assert CLAIM.verdict(worked(lambda p: p.d**2)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(worked(residual=0.3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(worked(seeds=2)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(worked()[:48]).outcome is Outcome.INCONCLUSIVE
    worded(CLAIM, worked(), "the work of variable projection grows as m^1.", "is polynomial")


def test_every_panel_shows_a_series():
    assert [series.x_name for series in CLAIM.series(worked())] == ["d", "k", "heads"]
    assert len(CLAIM.draw(worked()).axes) == 3


def test_steps_and_trials_are_counted():
    point = Point(heads=2, d=3, k=2, n=100)
    result = CLAIM.measure(point, 0)
    assert 0 < result["residual"] < 1e-10
    assert result["trials"] > result["steps"]  # every start eliminates once before its first step
    assert operations(point, 1.0, 1.0) == pytest.approx(work_of_a_step(2, 3, 3, 2, 200))
    _, plain, _ = planted("boolean", 2, 3, 2, 3.0, 100, 0)
    data = Counting(plain.X, plain.queries, plain.Y)
    eliminate(data, np.zeros((2, 3, 3)))
    assert len(data.calls) == 2


def test_the_finding_names_all_three_exponents():
    numbers = {f"exponent in {name}{end}": value for name in "dkm" for end, value in (("", 2.0), (" ±", 0.25))}
    assert CLAIM.finding(numbers).count("2.00 ± 0.25") == 3
