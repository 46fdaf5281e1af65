"""features.expressivity: the slope of the error decides."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import expressivity as claim


def world(slope=-1.8, scatter=0.1, seeds=6):
    rng = np.random.default_rng(1)
    return [
        Measurement(claim.Point(heads=M), seed, {"errors": (M / 16) ** slope * np.exp(rng.normal(0, scatter, 5))})
        for M in (32, 64, 128, 256)
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_slopes_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(-0.7)) is Outcome.REFUTED
    assert outcome(world(-3.6)) is Outcome.REFUTED
    assert outcome(world(-1.1, 1.0)) is Outcome.INCONCLUSIVE
    assert outcome(world()[:2]) is Outcome.INCONCLUSIVE
    lost = world()
    lost[0].result["errors"][1] = np.nan
    assert outcome(lost) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_more_heads_express_more():
    points = [claim.Point(heads=M, d=2, keys=3) for M in (10, 40)]
    few, many = (np.mean([claim.measure(p, s)["errors"] for s in range(3)], axis=0) for p in points)
    assert (many < few).all()


def test_a_head_that_hardly_any_sequence_activates_does_not_spoil_the_fit(monkeypatch):
    """Without a ridge its values are those of rounding, and one fresh sequence makes the error tens of times as large."""
    point, unlucky = claim.Point(heads=128), 1914240755
    usual = np.median([claim.measure(point, s)["errors"] for s in range(5)], axis=0)
    assert (claim.measure(point, unlucky)["errors"] < 2 * usual).all()
    monkeypatch.setattr(claim, "RIDGE", 1e-13)
    assert claim.measure(point, unlucky)["errors"][3] > 20 * usual[3]


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "for the slowest of the targets" in words
    found = claim.series(world())
    assert [s.settings["target"] for s in found] == list(claim.TARGETS)
    assert {(s.x, s.seeds) for s in found} == {((32, 64, 128, 256), (6, 6, 6, 6))}
    assert len(claim.draw(world()).axes) == 1
