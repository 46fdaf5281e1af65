import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import gradient_descent
from attlas.numerics import Status

from ..broken import verdict_of

POINTS = [gradient_descent.Point(d=d, inits=6) for d in (16, 24, 32)]


def made(limit, loss=1e-9):
    """Results as if they had been measured, the error of infinitely many starts being `limit` times V."""
    rng = np.random.default_rng(0)
    result = {"theory": 0.39, "loss": loss, "single": 0.8, "averaged": 0.5, "converged": True}
    return [
        Measurement(gradient_descent.Point(d=d), s, result | {"limit": 0.39 * (limit + 2 / d + rng.normal(0, 0.03))})
        for d in (30, 60, 90) for s in range(12)
    ]  # fmt: skip


def test_the_gap_decides():
    assert gradient_descent.judge(made(1.0)).outcome is Outcome.SUPPORTED
    assert gradient_descent.judge(made(1.2)).outcome is Outcome.REFUTED


def test_runs_that_did_not_fit_their_data_decide_nothing():
    verdict = gradient_descent.judge(made(1.0, loss=1e-3))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason == "only 0 of 36 descents fitted their data"


def test_one_run_that_did_not_converge_leaves_it_undecided():
    rows = made(1.0)
    rows[7] = Measurement(rows[7].point, rows[7].seed, rows[7].result | {"converged": False})
    assert gradient_descent.judge(rows).outcome is Outcome.SUPPORTED
    verdict = gradient_descent.CLAIM.verdict(rows)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "1 of 36 runs did not converge" in verdict.reason


def test_a_learner_that_ignores_the_data_refutes_it(monkeypatch):
    """Students that stay at their start and claim to have fitted."""

    def idle(X, y, channel, rank, inits, seed, throw):
        W = np.random.default_rng(seed).standard_normal((inits, X.shape[2], rank))
        S = np.array([w @ w.T / np.sqrt(rank * X.shape[2]) for w in W])
        return aim.Descent(S.mean(0), Status.CONVERGED, 0.0, 1, singles=S, losses=np.zeros(inits))

    monkeypatch.setattr(gradient_descent.aim, "descend", idle)
    assert verdict_of(gradient_descent.CLAIM, POINTS, seeds=6).outcome is Outcome.REFUTED


def test_measure_and_draw():
    results = [Measurement(p, s, gradient_descent.measure(p, s)) for p in POINTS[:2] for s in range(2)]
    assert all(0 < m.result["limit"] < m.result["averaged"] < m.result["single"] for m in results)
    assert all(isinstance(m.result["converged"], bool) for m in results)
    assert gradient_descent.draw(results).axes


def test_words():
    numbers = gradient_descent.judge(made(1.0)).numbers
    limit, half, last = (numbers[f"alpha=0.1 rho=0.5 at d = {d}"] for d in ("infinity", "infinity ±", "90"))
    single = f"{0.8 / 0.39:.1f}"
    said = gradient_descent.finding(numbers)
    assert f"extrapolates to {limit:.2f} times the Bayes error, and one run has {single} times" in said
    ours = gradient_descent.CLAIM.differs[0].ours(numbers)
    assert ours.startswith(f"One run has {single} times the Bayes error.")
    assert f"it has {last:.2f} times at d = 90; extrapolated to infinite d that is {limit:.2f} ± {half:.2f}" in ours


def test_series():
    rows = [
        Measurement(gradient_descent.Point(d=30), seed, {"single": a, "averaged": a / 2, "limit": a / 4, "theory": 0.5})
        for seed, a in enumerate((0.6, 1.0))
    ]
    single, averaged, *ratios = gradient_descent.series(rows)
    assert (single.name, single.theory, averaged.name, averaged.theory) == ("single", None, "averaged", (0.5,))
    assert single.settings == {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "decay": None, "d": 30}
    assert single.mean == pytest.approx((0.8,))
    assert single.standard_error == pytest.approx((0.2,))
    assert averaged.mean == pytest.approx((0.4,))
    assert [s.name for s in ratios] == ["single", "averaged", gradient_descent.INFINITE]
    assert [s.mean[0] for s in ratios] == pytest.approx([1.6, 0.8, 0.4])
    assert ratios[0].x == (1 / 30,)
