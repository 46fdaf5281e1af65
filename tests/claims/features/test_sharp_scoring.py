"""features.sharp-scoring: ratios of samples and of errors decide, with and without label noise."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import kit
from attlas.claims.features import sharp_scoring as claim

POINT = claim.Point()


def world(sigmoid=1.0, both=1.0, noisy=1.0, samples=1.0, seeds=8, scatter=0.04):
    """Results as if errors were so many times the theory, and sigmoid needed `samples` times as many."""
    rng = np.random.default_rng(0)
    sizes = np.array(POINT.sizes, dtype=float)
    rows = []
    for seed in range(seeds):
        result = {"sizes": sizes, "permuted": 1 + 0.01 * seed, "converged": True}
        for scoring in claim.SCORINGS:
            predicted = claim._theory(POINT, scoring)[0]
            for end, noise in claim.NOISES.items():
                theory = claim._noisy(predicted, noise).min(0)
                truth = both * theory * (sigmoid if scoring == "sigmoid" else 1.0) * (noisy if end else 1.0)
                if scoring == "sigmoid":
                    truth = kit.delayed(sizes, truth, samples)
                result[f"{scoring}_theory{end}"] = theory
                result[scoring + end] = truth * np.exp(rng.normal(0, scatter, theory.shape[1]))
        rows.append(Measurement(POINT, seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_ratios_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(sigmoid=1.5)) is Outcome.REFUTED
    assert outcome(world(both=1.4)) is Outcome.REFUTED  # the same ratios, other errors
    assert outcome(world(samples=1.3)) is Outcome.REFUTED
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_noise_turns_the_order_around_in_theory():
    """What the docs say of noiseless data is not true of noisy ones: relu is ahead in the end."""
    result, target = world()[0].result, claim.TARGETS.index("correlation 1")
    assert result["sigmoid_theory"][-1, target] < 0.1 * result["relu_theory"][-1, target]
    assert result["sigmoid_theory_noisy"][-1, target] > 1.3 * result["relu_theory_noisy"][-1, target]


def test_costs_that_were_not_reached():
    rows = [Measurement(m.point, m.seed, m.result | {"relu": np.maximum(m.result["relu"], 0.2)}) for m in world()]
    assert outcome(rows) is Outcome.REFUTED


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_measures_both_on_the_same_data():
    point = claim.Point(d=4, keys=3, n=64)
    result = claim.measure(point, 0)
    for scoring in claim.SCORINGS:
        for end in claim.NOISES:
            shape = (len(point.sizes), len(claim.TARGETS))
            assert result[scoring + end].shape == result[f"{scoring}_theory{end}"].shape == shape
    assert result["converged"]
    assert result["permuted"] > 0.8


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "sigmoid scores need 0.6" in words or "sigmoid scores need 0.7" in words
    assert "for squares of the query" in words
    found = claim.series(world())
    assert len(found) == 2 * 2 * len(claim.TARGETS)
    assert all(s.theory is not None for s in found)
    assert len(claim.draw(world()).axes) == len(claim.TARGETS)
