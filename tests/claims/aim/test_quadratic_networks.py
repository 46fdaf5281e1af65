import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import quadratic_networks

from ..broken import verdict_of

POINTS = quadratic_networks.CLAIM.tiers["quick"].points
PUBLISHED = (0.61748698, 0.31484979, 0.16969945)


def test_the_published_values():
    verdict = verdict_of(quadratic_networks.CLAIM, seeds=1)
    assert verdict.outcome is Outcome.SUPPORTED
    assert "3 published errors agree with the theory here to 2e-07" in quadratic_networks.finding(verdict.numbers)


def test_a_wrong_noise_refutes_it(monkeypatch):
    exact = aim.Linear
    monkeypatch.setattr(aim, "Linear", lambda tokens, noise: exact(tokens, noise + 1e-4))
    assert verdict_of(quadratic_networks.CLAIM, seeds=1).outcome is Outcome.REFUTED


def test_nothing_is_published_elsewhere_and_a_nan_is_no_agreement():
    points = [point.model_copy(update={"noise": 1.0}) for point in POINTS]
    assert verdict_of(quadratic_networks.CLAIM, points, seeds=1).outcome is Outcome.INCONCLUSIVE
    values = (PUBLISHED[0], np.nan, PUBLISHED[2])
    rows = [Measurement(point, 0, {"V": V}) for point, V in zip(POINTS, values, strict=True)]
    assert quadratic_networks.judge(rows).outcome is Outcome.REFUTED


def test_series():
    """Published values are the points, ours the theory; nothing is random."""
    rows = [Measurement(point, 0, {"V": 0.1 * i}) for i, point in enumerate(POINTS)]
    (series,) = quadratic_networks.series(rows)
    assert series.mean == pytest.approx(PUBLISHED)
    assert series.theory == pytest.approx((0.0, 0.1, 0.2))
    assert series.standard_error == (0, 0, 0)
    assert quadratic_networks.series([Measurement(POINTS[0].model_copy(update={"rho": 1.0}), 0, {"V": 1.0})]) == []
