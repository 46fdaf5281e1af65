"""features.bias-misaligned: costs and gains of three targets must be the predicted ones."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import bias_misaligned as claim

from .worlds import reaching

SIZES = np.geomspace(8, 4096, 80)
GAINS = np.array([[1.4, 1.1, 0.6], [0.95, 0.85, 0.75], [0.93, 0.85, 0.75]])  # predicted: targets by levels


def world(plain=1.0, gains=(1.0, 1.0, 1.0), predicted=GAINS, seeds=10, scatter=0.03):
    """Results as if costs without bias, and the gains of the three targets, were these factors off."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (8, 10):
        expected = np.tile(np.array([100, 180, 250.0]) * (d / 8) ** 1.8, (3, 1))
        found = plain * expected, plain * expected / (predicted * np.array(gains)[:, None])
        for seed in range(seeds):
            curves = [np.stack([reaching(c, rng, SIZES, scatter) for c in own], axis=1) for own in found]
            result = {"plain": curves[0], "biased": curves[1], "plain_theory": curves[0], "biased_theory": curves[1]}
            result |= {
                "permuted": 1 + 0.01 * seed,
                "sizes": SIZES,
                "costs": np.stack([expected.T, (expected / predicted).T]),
            }
            rows.append(Measurement(claim.Point(d=d, keys=6), seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_costs_and_gains_are_compared_with_the_predicted_ones():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(plain=1.3)) is Outcome.REFUTED
    assert outcome(world(gains=(1.4, 1, 1))) is Outcome.REFUTED
    assert outcome(world(gains=(1, 1.25, 1))) is Outcome.REFUTED
    assert outcome(world(gains=(1, 1, 0.8))) is Outcome.REFUTED
    assert outcome(world(scatter=0.3)) is Outcome.INCONCLUSIVE
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_only_an_aligned_correlation_may_gain_even_where_theory_says_otherwise():
    assert outcome(world(predicted=GAINS[[1, 0, 2]])) is Outcome.REFUTED
    assert outcome(world(predicted=np.maximum(GAINS, 1.0))) is Outcome.REFUTED


def test_a_level_that_is_not_reached_leaves_the_others_their_say():
    def stopped(rows):
        for m in rows:
            m.result["biased"][:, 2] = np.maximum(m.result["biased"][:, 2], 0.101)
        return rows

    assert outcome(stopped(world())) is not Outcome.SUPPORTED
    assert outcome(stopped(world(gains=(1, 1.25, 1)))) is Outcome.REFUTED


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_has_the_theory_of_its_settings():
    from attlas import features

    result = claim.measure(claim.Point(d=5, keys=2, n=64), 0)
    assert result["costs"].shape == (2, 3, 3)
    assert result["costs"][1, 0, 1] == features.theory(5, 2, 1.0).sample_cost("rotated 1", 0.5).value
    assert result["plain_theory"].shape == result["plain"].shape


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "helps only what it is aligned with" in words
    assert "(1.40) for an aligned correlation" in words
    found = claim.series(world())
    assert len(found) == 2 * 3 * 2  # learners, targets, dimensions
    (one,) = [s for s in found if (s.name, *s.settings.values()) == ("biased", "keys 2", 10, 6, 1.0)]
    assert one.x == tuple(SIZES)
    assert len(one.theory) == len(SIZES)
    assert len(claim.draw(world()).axes) == 3
