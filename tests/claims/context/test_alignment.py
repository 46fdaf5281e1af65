import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.context import alignment

from .made import made

POINTS = [alignment.Point(tasks=t, d=d) for t in ("few", "many") for d in (18, 26, 38)]
THEORY = {"few": (0.8, 0.7, 0.66), "many": (0.26, 0.275, 0.34)}


def result(matched=1.0, scatter=0.01):
    def of(point, seed, rng):
        theory = np.array(THEORY[point.tasks])
        icl = theory * np.exp(scatter * rng.standard_normal(3)) * np.array([1, matched, 1]) * (1 + 1 / point.d)
        return {"icl": icl, "idg": np.full(3, 0.2), "theory": theory, "bayes": 0.15, "converged": True}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"matched": 0.9}, Outcome.REFUTED), ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)
def test_judge(options, outcome):
    assert alignment.judge(made(POINTS, 20, result(**options))).outcome is outcome


def test_measure_and_theory():
    """Theory of the case with few tasks at d = 64: best at exponent 1.5 (0.5819), matched 0.6117, isotropic 0.9177."""
    values, _ = alignment._theory("few", 0.1, 64, (1.5, 1.0, 0.0))
    assert values == pytest.approx((0.5819, 0.6117, 0.9177), abs=5e-5)
    found = alignment.measure(alignment.Point(tasks="few", d=16), 0)
    assert found["icl"] == pytest.approx(found["theory"], rel=0.4)
    assert found["converged"]
    assert alignment.spectrum(1.0, 10).mean() == pytest.approx(1.0)


def test_finding_series_and_figure():
    rows = made(POINTS, 20, result())
    assert "not best" in alignment.finding(alignment.judge(rows).numbers)
    found = alignment.series(rows)
    assert len(found) == len(POINTS)
    assert found[0].mean[alignment.MATCHED] == 1.0
    assert len(alignment.draw(rows).axes) == 2
