"""recovery.multi-head: every learner on the same data, successes counted; a layer that is not found is a measurement."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.kit.tasks import LEARNERS
from attlas.claims.recovery.multi_head import CLAIM, Point

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


def test_a_run_that_ended_without_the_layer_counts_as_a_failure_and_not_as_unfinished():
    results = runs([0.5] * 12)
    for run in results:
        run.result["converged"] = False
    assert CLAIM.verdict(results).outcome is Outcome.REFUTED
    assert CLAIM.verdict(results).numbers["runs that did not converge"] == 12


def test_every_learner_gets_the_same_data():
    result = CLAIM.measure(Point(heads=1, d=4, k=3, n=200, adam_steps=1500), 0)
    assert set(result) == {*LEARNERS, "converged"}
    assert 0 < result["varpro"] < 1e-9
    assert 0 < result["lbfgs"] < 1e-4
    assert 0 < result["adam"] < 0.5
    assert result["converged"] is True
