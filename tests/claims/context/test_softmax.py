import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.context import softmax

from .made import made

POINTS = [softmax.Point(kappa=None), softmax.Point(kappa=1.0)]


def result(two=1.06, one=1.45, new=1.4, old=0.96, scatter=0.02):
    def of(point, seed, rng):
        linear = 0.5 if point.kappa is None else 0.7
        noise = 1 + scatter * rng.standard_normal(4)
        return {
            "linear_new": linear,
            "linear_old": 0.4,
            "softmax_1_new": linear * one * noise[0],
            "softmax_1_old": 0.6 * noise[1],
            "softmax_2_new": linear * (two if point.kappa is None else new) * noise[2],
            "softmax_2_old": 0.4 * old * noise[3],
            "bayes": 0.184,
            "converged": np.array([True, seed > 0]),
        }

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"two": 1.25}, Outcome.REFUTED), ({"one": 1.05}, Outcome.REFUTED),
     ({"new": 1.0}, Outcome.REFUTED), ({"old": 1.1}, Outcome.REFUTED), ({"two": 0.2}, Outcome.REFUTED),
     ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert softmax.judge(made(POINTS, 16, result(**options))).outcome is outcome


def test_runs_that_did_not_converge_are_used_and_counted():
    verdict = softmax.CLAIM.verdict(made(POINTS, 16, result()))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == 2


def test_measure():
    found = softmax.measure(softmax.Point(kappa=None, d=4, n=1500), 0)
    assert found["linear_new"] < found["softmax_1_new"] < 1.1
    assert found["softmax_2_new"] < found["softmax_1_new"]
    assert found["linear_new"] == found["linear_old"]
    few = softmax.measure(softmax.Point(kappa=0.5, d=4, n=500), 0)
    assert few["linear_old"] < few["linear_new"]


def test_finding_series_and_figure():
    rows = made(POINTS, 16, result())
    assert "two softmax heads are nearly a linear layer" in softmax.finding(softmax.judge(rows).numbers)
    assert len(softmax.series(rows)) == 6
    assert len(softmax.draw(rows).axes) == 2
