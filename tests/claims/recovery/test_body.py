"""recovery.body: true heads must satisfy most of a body's constraints, random ones few, and hardly any head all."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.body import CLAIM, Point, violations
from attlas.claims.recovery.kit.tasks import planted
from attlas.recovery.body import Body
from attlas.recovery.examples import Examples

from .small import turned, worded


def bodies(inside=0.95, random=0.2, whole=None, third=0.6, close=0.97, seeds=12):
    rng = np.random.default_rng(0)
    found = []
    for p, _ in CLAIM.tiers["quick"]:
        for seed in range(seeds):
            share = (inside if p.heads == 2 else third) + rng.normal(0, 0.01)
            found.append(
                Measurement(
                    p,
                    seed,
                    {
                        "inside": [share / 3, share / 2, share, share],
                        "random": [random / 3, random / 2, random + rng.normal(0, 0.01), 3 * random],
                        "whole": [p.n > 4000 if whole is None else whole] * p.heads,
                        "needed": [8.0] * p.heads,
                        "close": close + rng.normal(0, 0.01),
                        "far": 0.9,
                        "constraints": 384.0,
                    },
                )
            )
    return found


def test_true_heads_must_be_inside_and_random_ones_outside():
    turned(CLAIM, bodies())
    assert CLAIM.verdict(bodies(inside=0.7)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(bodies(random=0.6)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(bodies(whole=True)).outcome is Outcome.REFUTED  # few examples do not suffice
    assert CLAIM.verdict(bodies(whole=False)).outcome is Outcome.REFUTED  # many do
    assert CLAIM.verdict(bodies(third=0.95)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(bodies(close=0.86)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(bodies(seeds=1)).outcome is Outcome.INCONCLUSIVE
    assert len(CLAIM.draw(bodies()).axes) == 1
    worded(CLAIM, bodies(), "the median head needs a slack of about 8")


def test_a_slab_is_missed_on_both_sides_and_a_half_space_on_one():
    unit = np.eye(2)[None]
    rows = Examples(np.zeros((1, 2, 2)), np.zeros((1, 1, 2)), np.zeros((1, 1, 2)))
    body = Body(unit, np.array([1.0]), np.ones(1), unit, np.array([1.0]), rows, np.ones((1, 2)), np.zeros(1))
    Theta = np.stack([np.zeros((2, 2)), np.eye(2)])  # traces 0 and 2
    assert violations(body, Theta) == pytest.approx(np.array([[1.0, -1.0], [1.0, 1.0]]))


def test_bodies_are_measured():
    for point in (Point(d=5, n=1500), Point(d=5, k=3, n=1500)):
        result = CLAIM.measure(point, 0)
        truth, _, _ = planted("boolean", 2, 5, point.k, 3.0, 1500, 0)
        assert len(result["whole"]) == truth.heads
        assert result["inside"] == sorted(result["inside"])
        assert result["inside"][2] > result["random"][2]
        assert CLAIM.cost(point).seconds > 0
