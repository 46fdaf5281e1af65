"""aim.denoiser: the error over F(Delta) decides."""

import re

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import denoiser
from attlas.claims.aim.kit import LIMIT

from ..broken import verdict_of
from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = denoiser.CLAIM
POINTS = [denoiser.Point(delta=1.5, rho=0.5, d=d) for d in (12, 20, 36, 60)]


def attained(share=1.0, scatter=0.3):
    """Errors that tend to this share of F."""
    return world(CLAIM, lambda point, rng: {"error": denoiser._theory(point) * share * near(1, point.d, rng, scatter)})


def test_the_limit_decides():
    assert outcome(CLAIM, attained()) is Outcome.SUPPORTED
    assert outcome(CLAIM, attained(1 + 2 * denoiser.EPS)) is Outcome.REFUTED
    assert outcome(CLAIM, attained(1 - 2 * denoiser.EPS)) is Outcome.REFUTED


def test_what_it_must_refute():
    assert missed(CLAIM, attained()) == {}


@pytest.mark.parametrize("few", [with_seeds(attained(), 1), with_sizes(attained(), 3), attained(scatter=200)])
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_the_denoiser_attains_its_error():
    """Small sizes leave the limit known to a few percent: it is near 1, and 1 is not excluded."""
    verdict = verdict_of(CLAIM, POINTS, seeds=30)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.tests[0].estimate.value == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    "broken",
    [
        lambda R, delta, rho: R,  # no shrinkage
        lambda R, delta, rho: (R + delta * np.sqrt(rho) * np.eye(len(R))) / (1 + delta),  # linear shrinkage
        lambda R, delta, rho: aim.denoise(R, 4 * delta, rho),  # wrong noise
    ],
    ids=["identity", "linear", "noise"],
)
def test_a_worse_denoiser_refutes_it(monkeypatch, broken):
    monkeypatch.setattr(denoiser, "denoise", broken)
    assert verdict_of(CLAIM, POINTS, seeds=30).outcome is Outcome.REFUTED


def test_a_wrong_formula_refutes_it(monkeypatch):
    rows = attained()
    monkeypatch.setattr(denoiser, "_theory", lambda point: point.delta / (1 + point.delta))
    assert outcome(CLAIM, rows) is Outcome.REFUTED


def test_finding():
    verdict = CLAIM.verdict(attained(scatter=0.001))
    assert re.search(r"1.000 \(± \S+\) times F\(Delta\)", CLAIM.found(verdict))
    assert sum(name.endswith(LIMIT) for name in verdict.numbers) == len(
        {(point.delta, point.rho) for point in CLAIM.tiers["quick"].points}
    )


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
