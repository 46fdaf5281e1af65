import dataclasses

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.trained import weight_decay

from .made import made

POINTS = tuple(weight_decay.Point(d=d, descent=descent) for d in (24, 36, 54, 80) for descent in (False, True))


def result(excess=1.0, apart=1e-3, converged=True, scatter=0.01):
    def of(point, seed, rng):
        ratio = excess * (1 + 3 / point.d) + scatter * rng.standard_normal()
        theory = {f"theory_{name}": 0.5 for name in weight_decay.WITHIN}
        mine = dict.fromkeys(weight_decay.WITHIN, 0.5 * ratio)
        also = {"apart": apart * (1 + 0.1 * rng.standard_normal()), "descended_error": 0.5, "plain_error": 0.5}
        return theory | mine | (also if point.descent else {}) | {"converged": converged}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"excess": 1.2}, Outcome.REFUTED), ({"excess": 0.0, "scatter": 0.0}, Outcome.REFUTED),
     ({"apart": 0.1}, Outcome.REFUTED), ({"converged": False}, Outcome.INCONCLUSIVE),
     ({"scatter": 0.3}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert weight_decay.CLAIM.verdict(made(POINTS, 8, result(**options))).outcome is outcome


@pytest.mark.parametrize("name", ["error", "training", "rank", "trace"])
def test_every_quantity_counts(name):
    right = made(POINTS, 8, result())
    wrong = [dataclasses.replace(m, result=m.result | {name: 1.3 * m.result[name]}) for m in right]
    assert weight_decay.judge(wrong).outcome is Outcome.REFUTED


def test_too_few_decide_nothing():
    rows = made(POINTS, 8, result())
    assert weight_decay.CLAIM.verdict([m for m in rows if not m.point.descent]).outcome is Outcome.INCONCLUSIVE
    assert weight_decay.CLAIM.verdict([m for m in rows if m.seed == 0]).outcome is Outcome.INCONCLUSIVE


def test_measure():
    found = weight_decay.measure(weight_decay.Point(d=24, descent=True), 0)
    assert 0 < found["apart"] < 0.02
    assert found["converged"] is True
    assert found["descended_error"] == pytest.approx(found["plain_error"], rel=0.02)
    assert found["error"] == pytest.approx(found["theory_error"], rel=0.5)
    assert found["trace"] == pytest.approx(found["theory_trace"], rel=0.3)
    assert "apart" not in weight_decay.measure(weight_decay.Point(d=12), 0)


def test_an_unsolved_problem_is_no_measurement(monkeypatch):
    """Ten steps solve no convex problem, and the run says so."""
    minimise = weight_decay.aim.minimise
    monkeypatch.setattr(
        weight_decay.aim, "minimise", lambda *given, **options: minimise(*given, **(options | {"max_steps": 10}))
    )
    assert weight_decay.measure(weight_decay.Point(d=12), 0)["converged"] is False


def test_finding():
    said = weight_decay.finding(weight_decay.judge(made(POINTS, 8, result(apart=3.48e-3))).numbers)
    assert "descent ends within 0.3" in said
    assert "(± 0.01) times the predicted ones" in said


def test_series_and_figure():
    rows = [
        Measurement(weight_decay.Point(d=20), seed, {"error": x, "theory_error": 0.5} | dict.fromkeys(
            ("training", "rank", "trace", "theory_training", "theory_rank", "theory_trace"), 1.0))
        for seed, x in enumerate((0.4, 0.5, 0.9))
    ]  # fmt: skip
    beside = Measurement(weight_decay.Point(d=20, descent=True), 0, {"plain_error": 0.4, "descended_error": 0.4})
    errors, *ratios = weight_decay.series([*rows, beside])
    assert (errors.name, errors.x, errors.y_name, errors.theory) == ("trained", (0.15,), "mse", (0.5,))
    assert errors.settings == {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "decay": 0.1, "d": 20}
    assert errors.mean == pytest.approx((0.6,))
    assert errors.standard_error == pytest.approx((np.sqrt(0.14 / 2 / 3),))  # deviations -0.2, -0.1, 0.3
    assert [s.name for s in ratios] == list(weight_decay.WITHIN)
    assert [s.mean[0] for s in ratios] == pytest.approx([1.2, 1, 1, 1])
    assert len(weight_decay.draw([*rows, beside]).axes) == 2
