import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.trained import spectrum

from .made import made

POINTS = tuple(spectrum.Point(d=d) for d in (20, 32, 48, 72))
LAW = aim.trained(aim.Softmax(2), 0.1, 0.5, 0.1)


def result(theta=1.0, scatter=0.2, converged=True):
    """Eigenvalues at the quantiles of a law, each run moved a little, by 1/d."""

    def of(point, seed, rng):
        values, _ = spectrum.law(LAW.delta, theta * LAW.theta, 0.5, point.d)
        moved = values * (1 + scatter / point.d * (1 + rng.standard_normal()))
        return {"eigenvalues": moved, "delta": LAW.delta, "theta": LAW.theta, "converged": converged}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"theta": 1.05}, Outcome.REFUTED), ({"theta": 0.95}, Outcome.REFUTED),
     ({"scatter": 10.0}, Outcome.INCONCLUSIVE), ({"converged": False}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert spectrum.CLAIM.verdict(made(POINTS, 6, result(**options))).outcome is outcome


def test_nothing_learned_is_refuted():
    (nothing,) = (m for m in spectrum.CLAIM.mutations if m.name.startswith("eigenvalues"))
    rows = made(POINTS, 6, result())
    assert spectrum.judge(nothing.applied(rows, 0.0, int)).outcome is Outcome.REFUTED
    assert spectrum.CLAIM.verdict(rows[:3]).outcome is Outcome.INCONCLUSIVE


def test_quantiles_are_those_of_the_density():
    values, zeros = spectrum.law(LAW.delta, LAW.theta, 0.5, 2000)
    assert zeros == pytest.approx(LAW.zero_mass, abs=1e-3)
    assert np.mean(values == 0) == pytest.approx(LAW.zero_mass, abs=1e-3)
    assert values.mean() == pytest.approx(LAW.trace, abs=1e-3)


def test_a_law_compared_with_itself():
    (row,) = made([spectrum.Point(d=400)], 1, result(scatter=0.0))
    found = spectrum.compared(row)
    assert (found["shift"], found["zeros"], found["spread"]) == pytest.approx((1, 1, 1), abs=5e-3)
    assert found["apart"] == pytest.approx(0, abs=1e-9)


def test_measure():
    found = spectrum.measure(spectrum.Point(d=40), 0)
    assert len(found["eigenvalues"]) == 40
    assert (np.diff(found["eigenvalues"]) >= 0).all()
    assert found["converged"] is True
    assert spectrum.compared(Measurement(spectrum.Point(d=40), 0, found))["apart"] < 0.3


def test_finding():
    said = spectrum.finding(spectrum.judge(made(POINTS, 6, result())).numbers)
    assert "its shift is 1.00 (± 0.0" in said
    assert "at the largest d their distance from the law is at most " in said


def test_series_and_figure():
    rows = made([spectrum.Point(d=d) for d in (20, 40)], 2, result())
    distance, *zeros = spectrum.series(rows)
    assert distance.x == (20, 40)
    assert [s.settings["d"] for s in zeros] == [20, 40]
    assert all(s.x == (0.0,) and s.theory[0] == pytest.approx(LAW.zero_mass, abs=1e-3) for s in zeros)
    assert len(spectrum.draw(rows).axes) == 2
