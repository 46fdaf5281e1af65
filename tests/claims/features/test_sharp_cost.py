"""features.sharp-cost: sample costs and exponents against the predicted ones decide."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import sharp_cost as claim

from .worlds import SIZES, curve


def world(factor=1.0, power=0.0, seeds=6):
    """Results as if costs were factor (d/8)^power of the predicted ones."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (5, 8, 12):
        predicted = {name: np.array([300.0, 250, 200, 220]) * (d / 8) ** 1.7 for name in claim.LEARNERS}
        predicted["biased"] = predicted["biased"] * (d / 8) ** -0.6
        for seed in range(seeds):
            result = {"permuted": 1 + 0.01 * seed, "sizes": SIZES}
            for name, costs in predicted.items():
                true = factor * (d / 8) ** power * costs
                result |= {name: np.stack([curve(c, rng, SIZES) for c in true], axis=1), f"{name}_cost": costs}
            rows.append(Measurement(claim.Point(d=d, n=4000), seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_costs_and_exponents_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(1.25)) is Outcome.REFUTED
    assert outcome(world(0.8)) is Outcome.REFUTED
    assert outcome(world(power=0.6)) is Outcome.REFUTED
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    assert outcome(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed)) is Outcome.REFUTED


def test_a_small_run():
    point = claim.Point(d=5, keys=3, n=64)
    results = [Measurement(point, seed, claim.measure(point, seed)) for seed in range(2)]
    assert results[0].result["plain"].shape == (len(results[0].result["sizes"]), 4)
    assert (results[0].result["plain_cost"] > 0).all()
    assert len(claim.draw(results).axes) == 2
    assert "samples that halve the error are" in claim.CLAIM.found(claim.CLAIM.verdict(world()))
