"""features.bias-misaligned: only an aligned correlation may gain."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import bias_misaligned as claim

from .worlds import SIZES, reaching


def world(aligned=1.3, rotated=0.97, late=0.7, keys=0.7, seeds=6, scatter=0.03):
    """Results as if the bias divided costs by these: aligned and rotated at a half, rotated and keys at a tenth."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (8, 10):
        costs = np.array([100, 180, 250.0]) * (d / 8) ** 1.8
        for seed in range(seeds):
            plain = np.stack([reaching(costs, rng, scatter=scatter) for _ in range(3)], axis=1)
            gains = ((aligned, 1.0, 0.6), (rotated, 0.8, late), (0.95, 0.8, keys))
            biased = np.stack([reaching(costs / gain, rng, scatter=scatter) for gain in gains], axis=1)
            result = {"plain": plain, "biased": biased, "permuted": 1 + 0.01 * seed, "sizes": SIZES}
            rows.append(Measurement(claim.Point(d=d, keys=6), seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_only_an_aligned_correlation_may_gain():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(rotated=1.3)) is Outcome.REFUTED
    assert outcome(world(rotated=0.6)) is Outcome.REFUTED  # nor may it lose much at a half
    assert outcome(world(aligned=0.7)) is Outcome.REFUTED
    assert outcome(world(keys=1.2)) is Outcome.REFUTED
    assert outcome(world(late=1.1)) is Outcome.REFUTED
    assert outcome(world(scatter=0.3)) is Outcome.INCONCLUSIVE
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_a_level_that_one_run_does_not_reach_leaves_the_others_their_say():
    def stopped(rows):
        biased = rows[0].result["biased"]
        biased[:, 2] = np.maximum(biased[:, 2], 0.101)
        return rows

    assert outcome(stopped(world())) is Outcome.INCONCLUSIVE
    assert outcome(stopped(world(rotated=1.3))) is Outcome.REFUTED


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "helps only what it is aligned with" in words
    found = claim.series(world())
    assert len(found) == 2 * 3 * 2  # learners, targets, dimensions
    (one,) = [s for s in found if (s.name, *s.settings.values()) == ("biased", "keys 2", 10, 6, 1.0)]
    assert one.x == tuple(SIZES)
    assert len(claim.draw(world()).axes) == 3
