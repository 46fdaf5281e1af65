"""features.key-averages: attention must be ahead at every size."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import key_averages as claim

from .worlds import curve

PLACES = np.array([8.0, 128, 256, 512, 1024])


def world(ahead=4.0, network=40.0, seeds=6):
    """Results as if attention needed `ahead` times fewer samples than the network, which learns degree one at `network`."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        result = {
            "attention": np.stack([curve(c, rng, PLACES) for c in (network / ahead, 400 / ahead)], axis=1),
            "network": np.stack([curve(c, rng, PLACES) for c in (network, 1e6)], axis=1),
        }
        rows.append(Measurement(claim.Point(), seed, result | {"permuted": 1 + 0.01 * seed, "sizes": PLACES}))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_the_ratio_of_errors_decides():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(ahead=1.0)) is Outcome.REFUTED
    assert outcome(world(network=1e6, ahead=1e5)) is Outcome.REFUTED  # a network that learns nothing is no rival
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_points_too_small_for_their_curve_are_refused():
    with pytest.raises(ValueError, match="4 d"):
        claim.Point(d=16, n=64)


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "times attention's in 8 comparisons" in words
    point = claim.Point(heads=20, d=4, keys=3, n=128)
    measured = [Measurement(point, seed, claim.measure(point, seed)) for seed in range(2)]
    found = {(s.name, s.settings["target"]): s for s in claim.series(measured)}
    assert set(found) == {(name, target) for name in ("heads", "neurons") for target in ("keys 1", "keys 2")}
    one = found["neurons", "keys 2"]
    assert one.settings == {"target": "keys 2", "d": 4, "keys": 3, "bias": 0.0, "heads": 20}
    assert one.mean[0] == pytest.approx(np.mean([m.result["network"][0, 1] for m in measured]))
    assert len(claim.draw(measured).axes) == 2
