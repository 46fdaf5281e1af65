"""recovery.multi-head: successes are counted; a layer that is not found is a measurement."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.kit.learners import determined
from attlas.claims.recovery.multi_head import CLAIM, Point

from .small import turned, worded


def runs(found=1e-13, adam=0.2, few=0.9, seeds=1.0):
    return [
        Measurement(
            p,
            seed,
            {"error": (adam if p.learner == "adam" else found) if determined(p) else few, "converged": False},
        )
        for p, count in CLAIM.tiers["quick"]
        for seed in range(int(count * seeds))
    ]


def test_successes_are_counted():
    turned(CLAIM, runs())
    assert CLAIM.verdict(runs(seeds=0.2)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(runs(found=0.5)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(found=0.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(few=1e-9)).outcome is Outcome.REFUTED  # the truth was known before there were data
    assert CLAIM.verdict(runs(adam=1e-9)).outcome is Outcome.REFUTED
    assert len(CLAIM.draw(runs()).axes) == 3
    assert {series.name for series in CLAIM.series(runs())} == {"varpro", "lbfgs", "adam"}
    worded(CLAIM, runs(), "variable projection finds 160 of 160 layers; where logits are sharp, Adam finds 0%")


def test_every_learner_gets_the_same_data():
    errors = {
        name: CLAIM.measure(Point(heads=1, d=4, k=3, n=200, learner=name, adam_steps=1500), 0)["error"]
        for name in ("varpro", "lbfgs", "adam")
    }
    assert 0 < errors["varpro"] < 1e-9
    assert 0 < errors["lbfgs"] < 1e-4
    assert 0 < errors["adam"] < 0.5


def test_too_few_examples_hide_the_layer():
    point = Point(heads=2, d=4, n=3)
    assert not determined(point)
    assert min(CLAIM.measure(point, seed)["error"] for seed in range(3)) > 1e-3
    assert np.isfinite(CLAIM.cost(point).seconds)
