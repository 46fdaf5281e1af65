"""features.activations: relu and softmax on the same heads and data."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import activations as claim

PLACES = np.array([12.0, 64, 128, 256, 512])
SOFTMAX = dict.fromkeys(claim.RELU, 1.0) | {"query 1": 0.02, "keys 1": 0.004, "keys 2": 0.3, "weighted 1": 0.18}


def world(relu=0.05, softmax=SOFTMAX, seeds=8, bias=0.0, predicted=1.0):
    """Results as if these were the last errors, and theory predicted so many times those of relu."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        last = {"relu": np.full(7, relu), "softmax": np.array([softmax[name] for name in claim.TARGETS])}
        result = {
            name: np.exp(np.linspace(np.zeros(7), np.log(errors * np.exp(rng.normal(0, 0.02, 7))), 5))
            for name, errors in last.items()
        }
        point = claim.Point(heads=100, d=6, keys=6, n=512, bias=bias)
        theory = {"relu_theory": predicted * np.exp(np.linspace(np.zeros(7), np.log(np.full(7, relu)), 5))}
        rows.append(Measurement(point, seed, theory | result | {"permuted": 1 + 0.01 * seed, "sizes": PLACES}))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_last_errors_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(bias=1.0)) is Outcome.SUPPORTED
    assert outcome(world(relu=0.3)) is Outcome.REFUTED
    assert outcome(world(softmax=SOFTMAX | {"correlation 1": 0.5})) is Outcome.REFUTED
    assert outcome(world(softmax=SOFTMAX | {"weighted 1": 0.9})) is Outcome.REFUTED  # two-sided
    assert outcome(world(predicted=1.4)) is Outcome.REFUTED
    assert outcome(world(predicted=0.7)) is Outcome.REFUTED
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("name", claim.ACTIVATIONS)
def test_an_infinite_error_is_not_above_a_bound(name):
    """Once it was: a mean that is infinite lay above the error at which nothing was learned."""
    rows = world()
    for m in rows:
        m.result[name] = np.full_like(m.result[name], np.inf)
    assert outcome(rows) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_activations_are_compared_on_the_same_data():
    point = claim.Point(heads=40, d=4, keys=4, n=128)
    results = [Measurement(point, s, claim.measure(point, s)) for s in range(3)]
    place = claim.TARGETS.index("correlation 1")
    assert np.mean([m.result["softmax"][-1, place] for m in results]) > 0.9  # softmax does not learn it
    assert np.mean([m.result["relu"][-1, place] for m in results]) < 0.5
    assert np.mean([m.result["relu"][-1, place] / m.result["relu_theory"][-1, place] for m in results]) < 2
    assert len(claim.draw(results).axes) == 4


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "softmax learns nothing, with an error of 0.99 to 1.01 (± " in words
    found = claim.series(world())
    assert len(found) == 2 * len(claim.TARGETS)
    assert all((s.theory is not None) == (s.name == "relu") for s in found)
    assert found[-1].settings == {"target": "weighted 1", "heads": 100, "d": 6, "keys": 6, "bias": 0.0}
