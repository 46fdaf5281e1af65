import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.context import double_descent
from attlas.claims.context.kit import predicted

from .made import made

POINTS = [double_descent.Point(d=d) for d in (16, 24)]


def result(peak=4.0, place=0, exponent=0.0, scatter=0.3, tuned=(0.9, 0.78, 0.65), height=0.0):
    theory = np.array([predicted(3.0, 2.0, 1.0, r, 0.1).idg for r in double_descent.RIDGES])

    def of(point, seed, rng):
        logs = 1 + scatter * rng.standard_normal(5)
        logs[2 + place] += peak
        without = 1 + scatter * rng.standard_normal(3)
        without[1] += peak
        tilt = (np.array(double_descent.RIDGES) / np.sqrt(np.prod(double_descent.RIDGES))) ** exponent
        return {
            "with_column": np.exp(logs),
            "without_column": np.exp(without),
            "ridged": theory * tilt * np.exp(height + 0.1 * scatter * rng.standard_normal(2)),
            "tuned": np.array(tuned) * np.exp(0.1 * scatter * rng.standard_normal(3)),
            "theory_ridged": theory,
            "theory_tuned": np.array([0.9, 0.78, 0.65]),
            "bayes": 0.15,
            "converged": True,
        }

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"place": 1}, Outcome.REFUTED), ({"exponent": 0.2}, Outcome.REFUTED),
     ({"height": 0.4}, Outcome.REFUTED), ({"tuned": (0.9, 0.95, 0.65)}, Outcome.REFUTED),
     ({"peak": 1.0, "scatter": 1.0}, Outcome.INCONCLUSIVE), ({"tuned": (0.1, 0.08, 0.06)}, Outcome.REFUTED)],
)  # fmt: skip
def test_judge(options, outcome):
    assert double_descent.judge(made(POINTS, 12, result(**options))).outcome is outcome


def test_measure_has_its_peaks_at_the_numbers_of_parameters():
    runs = [double_descent.measure(double_descent.Point(d=10), seed) for seed in range(4)]
    assert np.argmax(np.mean(np.log([r["with_column"] for r in runs]), axis=0)) == double_descent.PEAK
    assert np.argmax(np.mean(np.log([r["without_column"] for r in runs]), axis=0)) == 1
    assert runs[0]["converged"]
    assert np.all(np.diff(runs[0]["theory_tuned"]) < 0)
    assert runs[0]["ridged"][1] > runs[0]["ridged"][0]


def test_finding_series_and_figure():
    rows = made(POINTS, 12, result())
    said = double_descent.finding(double_descent.judge(rows).numbers)
    assert "peaks at n = d(d+1)" in said
    found = double_descent.series(rows)
    assert {s.x_name for s in found} == {"tau", "ridge"}
    assert len(double_descent.draw(rows).axes) == 2
