"""recovery.gaussian-tokens: successes are counted, on tokens of another law than those of recovery.multi-head."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery import multi_head
from attlas.claims.recovery.gaussian_tokens import CLAIM, Point

from .small import worded


def runs(errors):
    return [
        Measurement(Point(heads=2), seed, {"varpro": error, "lbfgs": 1e-8, "adam": 0.3})
        for seed, error in enumerate(errors)
    ]


def test_successes_are_counted():
    assert CLAIM.verdict(runs([1e-13] * 12)).outcome is Outcome.SUPPORTED
    assert CLAIM.verdict(runs([1e-13] * 3)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(runs([0.5] * 12)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs([0.0] + [1e-13] * 11)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs([np.nan] * 12)).outcome is Outcome.REFUTED
    assert len(CLAIM.draw(runs([1e-13] * 3)).axes) == 1
    assert [series.name for series in CLAIM.series(runs([1e-13] * 3))] == ["varpro", "lbfgs", "adam"]
    worded(CLAIM, runs([1e-13] * 12), "variable projection finds the layer in 12 of 12 runs", "Adam in 0 of 12 runs")


def test_the_tokens_are_gaussian():
    point = Point(heads=1, d=3, k=2, n=60, adam_steps=10)
    mine, boolean = CLAIM.measure(point, 0), multi_head.measure(point, 0)
    assert 0 < mine["varpro"] < 1e-9
    assert mine["adam"] != boolean["adam"]
