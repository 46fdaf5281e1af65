"""features.target-degree: the order of costs decides."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import target_degree as claim


def ranked(order):
    B = 10.0 ** np.arange(12)
    return [
        Measurement(
            claim.Point(),
            seed,
            {
                "tenth": order(B) * (1 + 0.01 * seed),
                "half": order(B),
                "B": B,
                "rkhs": B[::-1].copy(),
                "variance": np.ones(12),
            },
        )
        for seed in range(3)
    ]


def test_the_order_of_costs_decides():
    judge = claim.judge
    found = judge(ranked(lambda B: B**0.3))
    assert found.outcome is Outcome.SUPPORTED
    assert found.numbers["d=4 rank correlation with RKHS norm"] == pytest.approx(-1)
    assert judge(ranked(lambda B: B**-0.3)).outcome is Outcome.REFUTED
    shuffled = np.random.default_rng(0).permutation(12)
    assert judge(ranked(lambda B: B[shuffled])).outcome is Outcome.INCONCLUSIVE
    assert judge(ranked(lambda B: np.full_like(B, np.inf))).outcome is Outcome.INCONCLUSIVE
    assert len(claim.draw(ranked(lambda B: B**0.3)).axes) == 2


def test_costs_are_those_of_the_targets():
    point = claim.Point(d=2, keys=3, n=200)
    result = claim.measure(point, 0)
    cost = dict(zip(claim.TARGETS, result["tenth"], strict=True))
    assert 0 < cost["query 1"] < cost["query 2"] < cost["query 4"]
    assert (result["half"] <= result["tenth"]).all()


def test_its_words_and_points():
    numbers = {"d=4 rank correlation with B": 0.85, "d=4 rank correlation with RKHS norm over variance": 0.94}
    assert "does better (0.94)" in claim.finding(numbers)
    assert "does no better (0.94)" in claim.finding(numbers | {"d=4 rank correlation with B": 0.95})
    measured = ranked(lambda B: np.where(B == 10, np.inf, B))  # the second target is never learned
    names = [s.name for s in claim.series(measured) if s.x_name == "B(f)"]
    assert names == [name for name in claim.TARGETS if name != "query 2"]
    assert [text.get_text() for text in claim.draw(measured).axes[0].texts[:3]] == ["1", "3", "4"]  # powers
