"""Measurements that were never made: what a claim would see in a world that is as it says, in wrong and unclear ones."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.power import detect


def world(claim, result, tier="quick"):
    """Every cell of a tier with the result `result(point, rng)`; cells of a seed and a size share no random numbers."""
    return [
        Measurement(point, seed, result(point, np.random.default_rng([i, seed])))
        for i, (point, count) in enumerate(claim.tiers[tier])
        for seed in range(count)
    ]


def near(value, d, rng, scatter=0.3):
    """A number that tends to `value` as 1/d, and scatters as 1/d."""
    return value + (0.3 + scatter * rng.standard_normal()) / d


def with_seeds(measurements, count):
    """The first seeds alone."""
    return [m for m in measurements if m.seed < count]


def with_sizes(measurements, count):
    """The smallest sizes alone; points without a size stay."""
    sizes = sorted({m.point.d for m in measurements} - {0})
    return [m for m in measurements if m.point.d in {0, *sizes[:count]}]


def missed(claim, measurements):
    """The changes that the claim must refute and does not, with what it says of them."""
    found = detect(claim, measurements)
    assert any(each.required for each in found)
    return {each.name: str(each.outcome) for each in found if each.required and each.outcome is not Outcome.REFUTED}


def outcome(claim, measurements):
    """What the claim says."""
    return claim.verdict(measurements).outcome
