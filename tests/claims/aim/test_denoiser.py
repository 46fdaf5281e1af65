import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import denoiser

from ..broken import verdict_of

POINTS = [denoiser.Point(delta=0.3, rho=0.5, d=d) for d in (40, 80, 160)]


def test_the_denoiser_attains_its_error():
    verdict = verdict_of(denoiser.CLAIM, POINTS, seeds=20)
    assert verdict.outcome is Outcome.SUPPORTED
    limit = verdict.numbers["(0.3, 0.5) at d = infinity"]
    assert f"{limit:.2f} times F(Delta)" in denoiser.finding(verdict.numbers)


@pytest.mark.parametrize(
    "broken",
    [
        lambda R, delta, rho: R,  # no shrinkage
        lambda R, delta, rho: (R + delta * np.sqrt(rho) * np.eye(len(R))) / (1 + delta),  # linear shrinkage
        lambda R, delta, rho: aim.denoise(R, 2 * delta, rho),  # wrong noise
    ],
    ids=["identity", "linear", "noise"],
)
def test_a_worse_denoiser_refutes_it(monkeypatch, broken):
    monkeypatch.setattr(denoiser, "denoise", broken)
    assert verdict_of(denoiser.CLAIM, POINTS, seeds=20).outcome is Outcome.REFUTED


def test_a_wrong_formula_refutes_it(monkeypatch):
    monkeypatch.setattr(denoiser, "mmse", lambda delta, rho: delta / (1 + delta))
    assert verdict_of(denoiser.CLAIM, POINTS, seeds=20).outcome is Outcome.REFUTED


def test_series():
    """The theory is F at the width that the teacher has: 0.5 of d = 25 is 12."""
    rows = [
        Measurement(denoiser.Point(delta=1.5, rho=0.5, d=25), seed, {"error": x}) for seed, x in enumerate((1, 2, 6))
    ]
    (series,) = denoiser.series(rows)
    assert (series.x_name, series.settings, series.x) == ("Delta", {"rho": 0.5, "d": 25}, (1.5,))
    assert series.mean == pytest.approx((3,))
    assert series.standard_error == pytest.approx((np.sqrt(7 / 3),))
    assert series.theory == pytest.approx((aim.mmse(1.5, 12 / 25),))
