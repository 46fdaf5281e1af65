import numpy as np

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import gradient_descent as claim
from attlas.numerics import Status

from .broken import verdict_of

POINTS = [claim.Point(d=d, inits=6) for d in (16, 24, 32)]


def made(limit, loss=1e-9):
    """Results as if they had been measured, the error of infinitely many starts being `limit` times V."""
    rng = np.random.default_rng(0)
    result = {"theory": 0.39, "loss": loss, "single": 0.8, "averaged": 0.5, "converged": True}
    return [
        Measurement(claim.Point(d=d), s, result | {"limit": 0.39 * (limit + 2 / d + rng.normal(0, 0.03))})
        for d in (30, 60, 90) for s in range(12)
    ]  # fmt: skip


def test_the_gap_decides():
    assert claim.judge(made(1.0)).outcome is Outcome.SUPPORTED
    assert claim.judge(made(1.2)).outcome is Outcome.REFUTED


def test_runs_that_had_not_ended_decide_nothing():
    assert claim.judge(made(1.0, loss=1e-3)).outcome is Outcome.INCONCLUSIVE


def test_a_learner_that_ignores_the_data_refutes_it(monkeypatch):
    """Students that stay at their start and claim to have fitted."""

    def idle(X, y, channel, rank, inits, seed, throw):
        W = np.random.default_rng(seed).standard_normal((inits, X.shape[2], rank))
        S = np.array([w @ w.T / np.sqrt(rank * X.shape[2]) for w in W])
        return aim.Descent(S.mean(0), Status.CONVERGED, 0.0, 1, singles=S, losses=np.zeros(inits))

    monkeypatch.setattr(claim.aim, "descend", idle)
    assert verdict_of(claim.CLAIM, POINTS, seeds=6).outcome is Outcome.REFUTED


def test_measure_and_draw():
    results = [Measurement(p, s, claim.measure(p, s)) for p in POINTS[:2] for s in range(2)]
    assert all(0 < m.result["limit"] < m.result["averaged"] < m.result["single"] for m in results)
    assert claim.draw(results).axes
