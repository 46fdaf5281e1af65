"""recovery.cost: the work must stay below what the algebra of a step allows, and runs must end right."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.cost import CLAIM, Point

from .small import worded


def worked(power, residual=1e-12):
    rng = np.random.default_rng(0)
    points = [Point(d=d) for d in (4, 6, 8)]
    points += [Point(k=k) for k in (2, 8)] + [Point(heads=m) for m in (1, 3)]
    return [
        Measurement(
            p,
            seed,
            {
                "steps": 10.0 + rng.integers(3),
                "operations": p.d**power * p.k * p.heads**2 * np.exp(rng.normal(0, 0.1)),
                "residual": residual,
            },
        )
        for p in points
        for seed in range(3)
    ]


def test_work_must_stay_below_the_algebra():
    assert CLAIM.verdict(worked(4)).outcome is Outcome.SUPPORTED
    assert CLAIM.verdict(worked(9)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(worked(4, residual=0.3)).outcome is Outcome.REFUTED
    some = worked(4)
    some[0].result["residual"] = np.nan
    assert CLAIM.verdict(some).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(worked(4)[:6]).outcome is Outcome.INCONCLUSIVE
    worded(CLAIM, worked(4), "grows as d^4.")


def test_every_panel_shows_a_series():
    assert [series.x_name for series in CLAIM.series(worked(4))] == ["d", "k", "heads"]
    assert len(CLAIM.draw(worked(4)).axes) == 3


def test_operations_are_measured():
    result = CLAIM.measure(Point(heads=1, d=3, k=2, n=100), 0)
    assert 0 < result["residual"] < 1e-10
    assert result["operations"] > 1e5
    assert result["converged"] is True
