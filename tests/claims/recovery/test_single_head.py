"""recovery.single-head holds at small size; a leaked truth refutes it."""

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.kit import tasks
from attlas.claims.recovery.single_head import CLAIM, Point
from attlas.numerics import Status
from attlas.recovery.fit import Fit

from .small import turned, worded

POINTS = [Point(d=4, k=3, n=200), Point(d=4, n=1)]


def heads(enough=1e-14, few=0.8, seeds=1.0):
    return [
        Measurement(p, seed, {"error": few if p.n * p.k <= 2 * p.d else enough, "converged": True})
        for p, count in CLAIM.tiers["quick"]
        for seed in range(int(count * seeds))
    ]


def test_heads_are_counted():
    turned(CLAIM, heads())
    assert CLAIM.verdict(heads(enough=1e-3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(heads(few=1e-14)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(heads(seeds=0.1)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(heads()[:50]).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.draw(heads()).axes
    worded(CLAIM, heads(), "216 of 216 heads, 100% (98% to 100%), are recovered")


def test_heads_are_recovered_where_data_are_enough():
    assert 0 < CLAIM.measure(POINTS[0], 0)["error"] < 1e-10
    assert CLAIM.measure(POINTS[1], 0)["error"] > 1e-3
    assert all(CLAIM.cost(p).seconds > 0 for p in POINTS)


def test_a_leaked_truth_is_a_failure(monkeypatch):
    """An error of exactly zero means that the learner has seen the answer."""

    def leaked(data, heads, seed, budget):
        point = POINTS[0] if len(data.X) == 200 else POINTS[1]
        truth, _, _ = tasks.planted("boolean", heads, point.d, point.k, 3.0, point.n, seed)
        return Fit(truth, Status.CONVERGED, 0.0, 0)

    monkeypatch.setitem(tasks.LEARNERS, "varpro", leaked)
    results = [Measurement(p, seed, CLAIM.measure(p, seed)) for p in POINTS for seed in range(2)]
    assert CLAIM.verdict(results).outcome is Outcome.REFUTED
