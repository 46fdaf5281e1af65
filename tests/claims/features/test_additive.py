"""features.additive: one layer must not learn a function of two keys, two layers must."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import additive as claim
from attlas.tokens import sphere

POINT = claim.Point()


def world(one=1.001, two=0.2, single=0.01, seeds=6):
    """Results as if these were the last errors of one and two layers on two keys, and of one layer on one."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        result = {"sizes": np.array(POINT.sizes, dtype=float), "theory": 1.0}
        for learner in claim.LEARNERS:
            last = two if learner == "stacked" else one
            curve = np.array([[last, single, 1.0]]) * np.exp(rng.normal(0, 0.003, (4, 3)))
            result |= {learner: curve, f"{learner}_hindsight": curve[:, 0]}
        rows.append(Measurement(POINT, seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_errors_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(one=0.96)) is Outcome.REFUTED
    assert outcome(world(two=0.55)) is Outcome.REFUTED
    assert outcome(world(single=0.3)) is Outcome.REFUTED  # a layer that learns nothing at all proves nothing
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_the_target_is_that_of_pairs_and_orthogonal_to_single_keys():
    X = sphere(20_000, 7, 6, 0)
    y = claim._pairs(X)
    assert y == pytest.approx((np.sum(X[:, 1:].sum(1) ** 2, axis=1) - 6) / 30)
    for g in (X[:, 1:, 0] ** 2, X[:, 1:, 1] ** 3, np.einsum("nd,nkd->nk", X[:, 0], X[:, 1:]) ** 2):
        assert abs(np.corrcoef(y, g.mean(1))[0, 1]) < 4 / np.sqrt(len(X))


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_measures_all_on_the_same_data():
    result = claim.measure(claim.Point(d=3, keys=3, n=64, few=4, many=8, stacked=8), 0)
    for learner in claim.LEARNERS:
        assert result[learner].shape == (4, 3)
        assert np.all(result[f"{learner}_hindsight"] <= result[learner][:, 0] + 1e-12)


def test_its_words_and_points():
    assert "Two stacked random layers reach 0.20" in claim.CLAIM.found(claim.CLAIM.verdict(world()))
    found = claim.series(world())
    assert len(found) == len(claim.LEARNERS) * len(claim.TARGETS)
    assert sum(s.theory is not None for s in found) == 3
    assert len(claim.draw(world()).axes) == 2
