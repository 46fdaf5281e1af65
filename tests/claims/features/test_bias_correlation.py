"""features.bias-correlation: the difference of exponents decides."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import bias_correlation as claim


def costs(plain, biased):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            claim.Point(d=d),
            seed,
            {
                "plain": d**plain * np.exp(rng.normal(0, 0.05)),
                "biased": d**biased * np.exp(rng.normal(0, 0.05)),
                "plain_curve": np.ones(2),
                "biased_curve": np.ones(2),
                "sizes": np.array([16.0, 32.0]),
            },
        )
        for d in (6, 8, 12, 16)
        for seed in range(3)
    ]


def test_the_difference_of_exponents_decides():
    judge = claim.judge
    assert judge(costs(1.7, 1.0)).outcome is Outcome.SUPPORTED
    assert judge(costs(1.0, 1.7)).outcome is Outcome.REFUTED
    assert judge(costs(1.5, 1.5)).outcome is Outcome.INCONCLUSIVE
    censored = costs(1.7, 1.0)
    for m in censored[3:]:
        m.result["plain"] = np.inf
    assert judge(censored).outcome is Outcome.INCONCLUSIVE


def test_a_bias_lowers_the_cost_of_a_correlation():
    point = claim.Point(d=8, keys=8, n=200)
    result = claim.measure(point, 0)
    assert 16 < result["biased"] < result["plain"] < 200
    assert len(claim.draw([Measurement(point, 0, result)]).axes) == 2


def test_costs_that_never_meet_decide_nothing():
    apart = costs(1.7, 1.0)
    for m in apart:
        m.result["plain" if m.seed else "biased"] = np.inf
    assert claim.judge(apart).outcome is Outcome.INCONCLUSIVE
    unknown = costs(1.7, 1.0)
    unknown[0].result["plain"] = np.nan
    assert claim.judge(unknown).outcome is Outcome.INCONCLUSIVE


def test_its_words_and_points():
    numbers = {"degree 1 exponent, no bias": 1.754, "degree 1 exponent, bias": 1.036}
    assert all(part in claim.finding(numbers) for part in ("d^1.75", "d^1.04"))
    with pytest.raises(LookupError):
        claim.finding({"degree 1 exponent, no bias": 1.754})
    measured = costs(1.7, 1.0)
    measured[0].result["plain"] = np.inf  # censored: it is no point
    curves, halving = ([s for s in claim.series(measured) if s.x_name == x] for x in ("n", "d"))
    assert {s.name: s.settings for s in curves if s.settings["d"] == 6} == {
        "kernel": {"target": "correlation 1", "d": 6, "keys": 16, "bias": 0.0},
        "biased": {"target": "correlation 1", "d": 6, "keys": 16, "bias": 1.0},
    }
    assert {(s.x, s.mean, s.seeds, s.y_name) for s in curves} == {((16, 32), (1, 1), (3, 3), "mse over variance")}
    assert {s.name: s.seeds for s in halving} == {"kernel": (2, 3, 3, 3), "biased": (3, 3, 3, 3)}
