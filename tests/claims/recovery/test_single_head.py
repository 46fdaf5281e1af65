"""recovery.single-head holds at small size; a leaked truth refutes it."""

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.kit import tasks
from attlas.claims.recovery.single_head import CLAIM, Point
from attlas.numerics import Status
from attlas.recovery.fit import Fit

from .small import holds, worded

POINTS = [Point(d=d, k=3, n=200) for d in (3, 4)]


def test_it_holds_at_small_size():
    results = holds(CLAIM, POINTS, 3)
    (series,) = CLAIM.series(results)
    assert series.x == (3, 4)
    assert all(mean < -10 for mean in series.mean)
    worded(CLAIM, results, "in all 6 runs")


def test_a_leaked_truth_is_a_failure(monkeypatch):
    """An error of exactly zero means that the learner has seen the answer."""

    def leaked(data, heads, seed, budget):
        truth, _, _ = tasks.planted("boolean", heads, data.X.shape[2], 3, 3.0, 200, seed)
        return Fit(truth, Status.CONVERGED, 0.0, 0)

    monkeypatch.setitem(tasks.LEARNERS, "varpro", leaked)
    results = [Measurement(POINTS[0], seed, CLAIM.measure(POINTS[0], seed)) for seed in range(2)]
    assert CLAIM.verdict(results).outcome is Outcome.REFUTED


def test_a_search_that_did_not_end_leaves_it_undecided():
    runs = [Measurement(POINTS[0], seed, {"error": 1e-14, "converged": seed > 0}) for seed in range(3)]
    assert CLAIM.verdict(runs).outcome is Outcome.INCONCLUSIVE
