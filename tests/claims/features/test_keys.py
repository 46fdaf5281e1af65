"""features.keys: exponents in the number of keys decide."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import keys as claim

from .worlds import curve

PLACES = np.array([3.0, 6, 12, 24, 48, 96, 192, 384, 768, 1536])


def world(attention=0.1, network=0.93, seeds=5):
    rng = np.random.default_rng(0)
    rows = []
    for N in (4, 8, 16, 32, 64):
        for seed in range(seeds):
            few, many = (13 * (N / 4) ** attention, 20 * (N / 4) ** network)
            result = {
                "attention": np.stack([curve(c, rng, PLACES) for c in (few, 5 * few)], axis=1),
                "network": np.stack([curve(c, rng, PLACES) for c in (many, 1e5)], axis=1),
                "permuted": 1 + 0.01 * seed,
                "sizes": PLACES,
                "network_sizes": PLACES,
            }
            rows.append(Measurement(claim.Point(keys=N), seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_exponents_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(attention=0.7)) is Outcome.REFUTED
    assert outcome(world(attention=-0.4)) is Outcome.REFUTED  # more keys do not make it cheaper
    assert outcome(world(network=0.5)) is Outcome.REFUTED
    assert outcome(world(seeds=1)[:2]) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_both_learners_see_the_same_data():
    result = claim.measure(claim.Point(keys=3, d=3, n=32, network=64), 0)
    assert result["attention"].shape == (len(result["sizes"]), 2)
    assert result["network"].shape == (len(result["network_sizes"]), 2)
    again = claim.measure(claim.Point(keys=3, d=3, n=32, network=32), 0)
    assert again["attention"] == pytest.approx(result["attention"])


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "exponent 0." in words
    assert "grow with exponent 0.9" in words
    found = claim.series(world())
    assert {s.y_name for s in found} == {*claim.SAMPLES.values(), "mse over variance"}
    (one,) = [
        s for s in found if s.y_name == claim.SAMPLES[0.5] and (s.name, s.settings["target"]) == ("kernel", "keys 1")
    ]
    assert one.mean[0] == pytest.approx(13, rel=0.1)
    assert len(claim.draw(world()).axes) == 2
