import numpy as np
import pytest

from attlas import context
from attlas.claims import Measurement, Outcome
from attlas.claims.context import learning_curve

from .made import made

POINTS = [learning_curve.Point(**s, d=d) for s in learning_curve.SETTINGS[::3] for d in (24, 32, 44, 60)]
THEORY = {"icl": 0.9, "idg": 0.5, "training": 0.1}


def result(key="icl", moved=1.0, scatter=0.01):
    def of(point, seed, rng):
        found = {f"theory_{kind}": value for kind, value in THEORY.items()} | {"bayes": 0.3, "converged": True}
        for kind, value in THEORY.items():
            ratio = (moved if kind == key else 1.0) + 2 / point.d + scatter * rng.standard_normal()
            found[kind] = value * ratio
        return found

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"moved": 1.12}, Outcome.REFUTED), ({"key": "idg", "moved": 0.85}, Outcome.REFUTED),
     ({"key": "training", "moved": 1.25}, Outcome.REFUTED), ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert learning_curve.judge(made(POINTS, 12, result(**options))).outcome is outcome


def test_an_error_below_bayes_is_a_leak():
    rows = made(POINTS, 12, lambda p, s, rng: result()(p, s, rng) | {"icl": 0.2})
    verdict = learning_curve.judge(rows)
    assert verdict.outcome is Outcome.REFUTED
    assert "floor" in verdict.reason


def test_measure():
    point = learning_curve.Point(**learning_curve.SETTINGS[2], d=20)
    found = learning_curve.measure(point, 0)
    assert found["converged"]
    assert found["training"] < found["idg"] < found["icl"]
    assert found["icl"] == pytest.approx(found["theory_icl"], rel=0.3)
    assert found["theory_icl"] == context.theory(8, 0.5, 2, 0.05, 0.2).icl
    endless = learning_curve.measure(learning_curve.Point(**learning_curve.SETTINGS[3], d=12), 0)
    assert endless["theory_icl"] == pytest.approx(endless["theory_idg"], rel=1e-12)


def test_finding_series_and_figure():
    rows = made(POINTS, 12, result())
    assert "times the predicted" in learning_curve.finding(learning_curve.judge(rows).numbers)
    found = learning_curve.series(rows)
    assert {s.name for s in found} == set(learning_curve.KINDS.values())
    assert {s.settings["kappa"] for s in found} == {0.5, np.inf}
    one = learning_curve.series(
        [Measurement(POINTS[0], s, result(scatter=0.0)(POINTS[0], s, np.random.default_rng(0))) for s in (0, 1)]
    )[0]
    assert one.x == (1 / 24,)
    assert one.mean == pytest.approx((0.9 * (1 + 2 / 24),))
    assert one.theory == (0.9,)
    assert len(learning_curve.draw(rows).axes) == 3
