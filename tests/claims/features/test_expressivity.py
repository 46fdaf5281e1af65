"""features.expressivity: the slope of the error decides."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.features import expressivity as claim


def expressed(slope, scatter=0.1):
    rng = np.random.default_rng(1)
    return [
        Measurement(claim.Point(heads=M), seed, {"errors": M**slope * np.exp(rng.normal(0, scatter, 5))})
        for M in (32, 64, 128, 256)
        for seed in range(4)
    ]


def test_more_heads_express_more():
    points = [claim.Point(heads=M, d=2, keys=3) for M in (10, 20, 40)]
    results = [Measurement(p, s, claim.measure(p, s)) for p in points for s in range(4)]
    assert claim.judge(results).outcome is not Outcome.REFUTED
    assert len(claim.draw(results).axes) == 1
    judge = claim.judge
    assert judge(expressed(-1.0)).outcome is Outcome.SUPPORTED
    assert judge(expressed(-2.0, 0.5)).outcome is Outcome.SUPPORTED
    assert judge(expressed(-0.7)).outcome is Outcome.REFUTED
    assert judge(expressed(-1.0, 1.0)).outcome is Outcome.INCONCLUSIVE
    assert (
        judge(expressed(-9.0)).outcome is Outcome.INCONCLUSIVE
    )  # at the floor of the arithmetic there is nothing to fit


def test_errors_that_are_not_finite_decide_nothing():
    lost = expressed(-2.0)
    lost[0].result["errors"][1] = np.nan
    assert claim.judge(lost).outcome is Outcome.INCONCLUSIVE


def test_its_words_and_points():
    assert "M^-1.30 for the slowest" in claim.finding({"a slope": -1.3, "b slope": -2.0, "b slope ±": 0.1})
    found = claim.series(expressed(-1.0))
    assert [s.settings["target"] for s in found] == list(claim.TARGETS)
    assert {(s.x, s.seeds) for s in found} == {((32, 64, 128, 256), (4, 4, 4, 4))}
