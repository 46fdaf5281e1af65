"""aim.gradient-descent: the error of the average over that of message passing on the same data decides."""

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import gradient_descent
from attlas.numerics import Status

from ..broken import verdict_of
from .worlds import missed, outcome, with_seeds, world

CLAIM = gradient_descent.CLAIM
POINTS = [gradient_descent.Point(d=d, inits=4) for d in (10, 14)]


def made(limit=1.0, scatter=0.02, single=2.0, **changes):
    """The error of infinitely many starts is `limit` times that of message passing, which scatters on its own."""

    def result(point, rng):
        amp = 0.4 * (1 + rng.normal(0, 0.1))
        errors = {"amp": amp, "single": single * amp, "limit": amp * (limit + rng.normal(0, scatter))}
        errors["averaged"] = errors["limit"] + (errors["single"] - errors["limit"]) / point.inits
        return errors | {"theory": 0.4, "loss": gradient_descent.FITTED / 10, "converged": True} | changes

    return world(CLAIM, result)


def test_the_ratio_decides():
    assert outcome(CLAIM, made()) is Outcome.SUPPORTED
    assert outcome(CLAIM, made(1 + 2 * gradient_descent.EPS)) is Outcome.REFUTED
    assert outcome(CLAIM, made(1 - 2 * gradient_descent.EPS)) is Outcome.REFUTED  # better than the best is a leak


def test_what_it_must_refute():
    assert missed(CLAIM, made()) == {}


@pytest.mark.parametrize("few", [with_seeds(made(), 1), made(scatter=2), made(theory=0.0)])
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_runs_that_did_not_fit_their_data_decide_nothing():
    rows = made(loss=10 * gradient_descent.FITTED)
    verdict = CLAIM.verdict(rows)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason == f"only 0 of {len(rows)} descents fitted their data"


def test_one_run_that_did_not_converge_leaves_it_undecided():
    rows = made()
    rows[-1] = Measurement(rows[-1].point, rows[-1].seed, rows[-1].result | {"converged": False})
    assert gradient_descent.judge(rows).outcome is Outcome.SUPPORTED
    verdict = CLAIM.verdict(rows)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert f"1 of {len(rows)} runs did not converge" in verdict.reason


def test_a_learner_that_ignores_the_data_refutes_it(monkeypatch):
    """Students that stay at their start and claim to have fitted."""

    def idle(X, y, channel, rank, inits, seed, throw):
        W = np.random.default_rng(seed).standard_normal((inits, X.shape[2], rank))
        S = np.array([w @ w.T / np.sqrt(rank * X.shape[2]) for w in W])
        return aim.Descent(S.mean(0), Status.CONVERGED, 0.0, 1, singles=S, losses=np.zeros(inits))

    monkeypatch.setattr(gradient_descent.aim, "descend", idle)
    assert verdict_of(CLAIM, POINTS, seeds=8).outcome is Outcome.REFUTED


def test_measure_and_draw():
    results = [Measurement(p, s, gradient_descent.measure(p, s)) for p in POINTS for s in range(2)]
    assert all(0 < m.result["limit"] < m.result["averaged"] < m.result["single"] for m in results)
    assert all(0 < m.result["amp"] < m.result["single"] for m in results)
    assert all(isinstance(m.result["converged"], bool) for m in results)
    assert gradient_descent.draw(results).axes


def test_words():
    numbers = gradient_descent.judge(made(scatter=0.001, single=1.7)).numbers
    d = max(point.d for point in CLAIM.tiers["quick"].points)
    said, ours = gradient_descent.finding(numbers), CLAIM.differs[0].ours(numbers)
    assert f"its error at d = {d} is 1.00 ± 0.00 times that of message passing" in said
    assert "one run has 1.70 ± 2e-16 times" in said
    assert ours.startswith("One run has 1.70 ± 2e-16 times the error of message passing")
    assert f"1.00 ± 0.00 times at d = {d}" in ours


def test_series():
    point = gradient_descent.Point(d=30)
    rows = [
        Measurement(point, seed, {"single": a, "averaged": a / 2, "limit": a / 4, "amp": a / 3, "theory": 0.5})
        for seed, a in enumerate((0.6, 1.0))
    ]
    single, averaged, *ratios = gradient_descent.series(rows)
    assert (single.name, single.theory, averaged.name, averaged.theory) == ("single", None, "averaged", (0.5,))
    settings = {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": point.rho, "decay": None, "d": 30}
    assert single.settings == settings
    assert single.mean == pytest.approx((0.8,))
    assert single.standard_error == pytest.approx((0.2,))
    assert averaged.mean == pytest.approx((0.4,))
    assert [s.name for s in ratios] == ["single", "averaged", gradient_descent.INFINITE]
    assert [s.mean[0] for s in ratios] == pytest.approx([3, 1.5, 0.75])
    assert ratios[0].x == (1 / 30,)
