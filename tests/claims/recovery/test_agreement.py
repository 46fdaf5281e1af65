"""recovery.agreement: independent heads support it; a power law, another rate and agreement that stays refute it."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.agreement import CLAIM, WINDOWS, Point, independent

from .small import turned, worded


def shares(law, seeds=12, scatter=0.03):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            Point(heads=m, k=k),
            seed,
            {"agree": [law(m, w) ** (k - 1) * np.exp(rng.normal(0, scatter)) for w in WINDOWS], "rows": 1e8},
        )
        for k in (2, 3)
        for m in (2, 3, 4, 5, 6)
        for seed in range(seeds)
    ]


def test_independent_heads_support_it_and_others_refute_it():
    true = shares(lambda m, w: independent(m, 8, 3.0, w))
    turned(CLAIM, true)
    worded(CLAIM, true, "independent heads would by 3.46")
    assert CLAIM.verdict(shares(lambda m, w: w * m**-3.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(shares(lambda m, w: w)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(shares(lambda m, w: independent(m, 8, 3.0, w), seeds=2)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(shares(lambda m, w: 0.0)).outcome is Outcome.INCONCLUSIVE  # too rare to be counted
    assert len(CLAIM.draw(true).axes) == 1
    assert [one.theory is None for one in CLAIM.series(true)] == [False, False, True, True]


def test_the_share_of_independent_heads_is_that_of_random_logits():
    """Against a simulation of the logits alone."""
    rng = np.random.default_rng(1)
    apart = rng.binomial(8, 0.5, 400_000)
    apart = apart[apart > 0]
    p = 1 / (1 + np.exp(-3.0 * np.sqrt(apart / 2) * rng.standard_normal((3, len(apart)))))
    agree = np.ptp(p, axis=0) < 0.1
    assert independent(3, 8, 3.0, 0.1) == pytest.approx(agree.mean(), abs=4 * agree.std() / np.sqrt(len(agree)))


def test_equal_tokens_are_left_out():
    point = Point(heads=2, d=2, layers=3, examples=200)
    result = CLAIM.measure(point, 0)
    assert result["rows"] < 0.9 * 3 * 200 * 2
    assert 0 < result["agree"][0] <= result["agree"][1] < 1
    assert CLAIM.cost(point).seconds > 0
