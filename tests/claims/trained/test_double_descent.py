import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.trained import double_descent

from .made import made

POINTS = tuple(double_descent.Point(d=d) for d in (24, 44))
PREDICTED = double_descent._theory(4.0, 0.5, 0.03)


def result(place=1.0, height=1.0, cure=1.0, scatter=0.05, converged=True):
    """Errors of the theory with its peak moved, higher, and with another error at the best decay."""
    _, moved, *_ = double_descent._curve(4.0, 0.5, 0.03, place)

    def of(point, seed, rng):
        small = height * moved * np.exp(scatter * (rng.standard_normal() + 0.5 * rng.standard_normal(len(moved))))
        best = cure * PREDICTED["theory_best"] * np.exp(scatter * rng.standard_normal())
        return PREDICTED | {"small": small, "best": best, "converged": converged}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"place": 0.75}, Outcome.REFUTED), ({"place": 1.35}, Outcome.REFUTED),
     ({"place": 2.2}, Outcome.REFUTED), ({"height": 10.0}, Outcome.REFUTED), ({"height": 0.5}, Outcome.REFUTED),
     ({"cure": 3.0}, Outcome.REFUTED), ({"height": 0.0}, Outcome.REFUTED), ({"scatter": 0.8}, Outcome.INCONCLUSIVE),
     ({"converged": False}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    verdict = double_descent.CLAIM.verdict(made(POINTS, 8, result(**options)))
    assert verdict.outcome is outcome


def test_no_peak_is_refuted_and_one_run_decides_nothing():
    (flat,) = (m for m in double_descent.CLAIM.mutations if "no peak" in m.name)
    rows = made(POINTS, 8, result())
    assert double_descent.judge(flat.applied(rows, 1.0, int)).outcome is Outcome.REFUTED
    assert double_descent.CLAIM.verdict(rows[:1]).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("place", "height"), [(1.05, 1.0), (0.96, 1.3)])
def test_place_and_height_are_found(place, height):
    (row,) = made(POINTS[:1], 1, result(place=place, height=height, scatter=0.0))
    assert double_descent.fitted(row.result) == pytest.approx((place, height), rel=0.02)


def test_the_theory_peaks_at_the_threshold_as_decay_vanishes():
    alphas, curve, *_ = double_descent._curve(4.0, 0.5, 1e-6)
    assert double_descent.PLACES[int(np.argmax(curve))] == 1
    assert alphas[3] == pytest.approx(0.26677, abs=1e-4)


def test_measure():
    found = double_descent.measure(double_descent.Point(d=14), 0)
    assert found["small"].shape == (7,)
    assert 0 < found["best"] < found["small"][double_descent.TOP]
    assert isinstance(found["converged"], bool)


def test_finding():
    said = double_descent.finding(double_descent.judge(made(POINTS, 8, result())).numbers)
    assert "More data can hurt" in said
    assert "the best decay leaves" in said


def test_series_and_figure():
    rows = made(POINTS, 3, result())
    *small, best = double_descent.series(rows)[:3]
    assert [s.settings["d"] for s in small] == [24, 44]
    assert (small[0].name, small[0].y_name, len(small[0].x)) == ("trained", "mse", 7)
    assert small[0].settings == {"channel": "linear", "tokens": 1, "noise": 4.0, "rho": 0.5, "decay": 0.03, "d": 24}
    assert (best.settings["decay"], best.y_name, best.x) == (None, "mse at the best decay", (small[0].x[4],))
    assert len(double_descent.draw(rows).axes) == 1
