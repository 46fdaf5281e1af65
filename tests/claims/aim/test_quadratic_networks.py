"""aim.quadratic-networks: three published values, and nothing random."""

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import quadratic_networks

from ..broken import verdict_of
from .worlds import missed, outcome, world

CLAIM = quadratic_networks.CLAIM
POINTS = CLAIM.tiers["quick"].points
PUBLISHED = (0.61748698, 0.31484979, 0.16969945)


def found(off=0.0):
    """Published values, and as far from them."""
    return world(CLAIM, lambda point, rng: {"V": quadratic_networks.PUBLISHED[point.alpha] + off})


def test_the_distance_decides():
    assert outcome(CLAIM, found()) is Outcome.SUPPORTED
    assert outcome(CLAIM, found(2 * quadratic_networks.CLOSE)) is Outcome.REFUTED
    assert outcome(CLAIM, found(-2 * quadratic_networks.CLOSE)) is Outcome.REFUTED


def test_the_published_values():
    verdict = verdict_of(CLAIM, seeds=1)
    assert verdict.outcome is Outcome.SUPPORTED
    assert "3 published errors agree with the theory here to 2e-07" in CLAIM.found(verdict)


def test_what_it_must_refute():
    rows = [Measurement(point, 0, quadratic_networks.measure(point, 0)) for point in POINTS]
    assert missed(CLAIM, rows) == {}
    for mutation in CLAIM.mutations:
        assert outcome(CLAIM, mutation.applied(rows, mutation.refuted_at, CLAIM.own_seed)) is Outcome.REFUTED


def test_a_wrong_noise_refutes_it(monkeypatch):
    exact = aim.Linear
    monkeypatch.setattr(aim, "Linear", lambda tokens, noise: exact(tokens, noise + 1e-4))
    assert verdict_of(CLAIM, seeds=1).outcome is Outcome.REFUTED


def test_nothing_is_published_elsewhere_and_a_nan_is_no_agreement():
    points = [point.model_copy(update={"noise": 1.0}) for point in POINTS]
    assert outcome(CLAIM, [Measurement(point, 0, {"V": 0.5}) for point in points]) is Outcome.INCONCLUSIVE
    values = (PUBLISHED[0], np.nan, PUBLISHED[2])
    rows = [Measurement(point, 0, {"V": V}) for point, V in zip(POINTS, values, strict=True)]
    assert outcome(CLAIM, rows) is Outcome.INCONCLUSIVE


def test_a_root_that_was_not_found_leaves_it_undecided():
    rows = [Measurement(m.point, m.seed, m.result | {"converged": False}) for m in found()]
    assert outcome(CLAIM, rows) is Outcome.INCONCLUSIVE


def test_series():
    """Published values are the points, ours the theory; nothing is random."""
    rows = [Measurement(point, 0, {"V": 0.1 * i}) for i, point in enumerate(POINTS)]
    (series,) = quadratic_networks.series(rows)
    assert series.mean == pytest.approx(PUBLISHED)
    assert series.theory == pytest.approx((0.0, 0.1, 0.2))
    assert series.standard_error == (0, 0, 0)
    assert quadratic_networks.series([Measurement(POINTS[0].model_copy(update={"rho": 1.0}), 0, {"V": 1.0})]) == []
