import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.context import longer_context

from .made import made

POINTS = [longer_context.Point(d=d) for d in (28, 36, 48, 64)]
THEORY = {"plain": (1.26, 1.176, 1.325), "tuned": (0.95, 0.852, 0.793), "later": (1.3, 1.176, 1.117)}


def result(key="plain", change=0.0, scatter=0.003):
    def of(point, seed, rng):
        found = {"idg": np.full(6, 0.5), "bayes": 0.15, "converged": True}
        for kind, values in THEORY.items():
            moved = np.array([1.0, 1.0, np.exp(change if kind == key else 0.0)])
            noise = np.exp(scatter * rng.standard_normal(3) + np.array([0, 0, 1]) / point.d)
            found |= {kind: np.array(values) * moved * noise, f"theory_{kind}": np.array(values)}
        return found

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"change": -0.12}, Outcome.REFUTED), ({"change": 0.2}, Outcome.REFUTED),
     ({"key": "tuned", "change": 0.1}, Outcome.REFUTED), ({"key": "later", "change": 0.1}, Outcome.REFUTED),
     ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert longer_context.judge(made(POINTS, 14, result(**options))).outcome is outcome


def test_measure():
    found = longer_context.measure(longer_context.Point(d=16), 0)
    assert found["converged"]
    assert found["theory_plain"][2] > found["theory_plain"][1]
    assert np.all(np.diff(found["theory_tuned"]) < 0)
    assert np.all(np.diff(found["later"]) < 0)
    assert found["later"][longer_context.SHORT] == pytest.approx(found["plain"][longer_context.SHORT])
    assert np.all(found["tuned"] < found["plain"])


def test_finding_series_and_figure():
    rows = made(POINTS, 14, result())
    assert "longer contexts in training raise the error" in longer_context.finding(longer_context.judge(rows).numbers)
    found = longer_context.series(rows)
    assert {s.name for s in found} == set(longer_context.KEYS.values())
    assert len(longer_context.draw(rows).axes) == 1
