"""features.key-averages: both learners and their ratio must be as predicted, and attention ahead at every size."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import key_averages as claim

from .worlds import curve

PLACES = np.array([8.0, 128, 256, 512])


def world(attention=1.0, network=1.0, ahead=4.0, seeds=12):
    """Results as if both errors were these factors off; attention is to need `ahead` times fewer samples."""
    rng = np.random.default_rng(0)
    costs = {"attention": (40 / ahead, 200 / ahead), "network": (40, 1e6)}
    sure = np.random.default_rng(1)
    theory = {
        f"{key}_theory": np.stack([curve(c, sure, PLACES, scatter=0) for c in own], axis=1)
        for key, own in costs.items()
    }
    rows = []
    for seed in range(seeds):
        found = {
            key: factor * np.stack([curve(c, rng, PLACES) for c in costs[key]], axis=1)
            for key, factor in (("attention", attention), ("network", network))
        }
        rows.append(
            Measurement(claim.Point(n=512), seed, theory | found | {"permuted": 1 + 0.01 * seed, "sizes": PLACES})
        )
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_errors_and_their_ratio_are_compared_with_the_predicted_ones():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(attention=1.4)) is Outcome.REFUTED
    assert outcome(world(network=0.75)) is Outcome.REFUTED
    assert outcome(world(attention=0.95, network=1.03)) is Outcome.SUPPORTED
    assert outcome(world(ahead=1.0)) is Outcome.REFUTED  # predicted, and no lead
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_an_infinite_error_supports_nothing():
    rows = world()
    rows[0].result["network"] = np.full_like(rows[0].result["network"], np.inf)
    assert outcome(rows) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_points_too_small_for_their_curve_are_refused():
    with pytest.raises(ValueError, match="4 d"):
        claim.Point(d=16, n=64)


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "times attention's in 6 comparisons" in words
    point = claim.Point(heads=20, d=4, keys=3, n=128)
    measured = [Measurement(point, seed, claim.measure(point, seed)) for seed in range(2)]
    found = {(s.name, s.settings["target"]): s for s in claim.series(measured)}
    assert set(found) == {(name, target) for name in ("heads", "neurons") for target in ("keys 1", "keys 2")}
    one = found["neurons", "keys 2"]
    assert one.settings == {"target": "keys 2", "d": 4, "keys": 3, "bias": 0.0, "heads": 20}
    assert one.mean[0] == pytest.approx(np.mean([m.result["network"][0, 1] for m in measured]))
    assert one.theory == pytest.approx(measured[0].result["network_theory"][:, 1])
    assert len(claim.draw(measured).axes) == 2
