"""features.sharp-bias: exponents at large d, and where learning curves cross, decide."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import sharp_bias as claim

SIZES = np.geomspace(40, 400, 11)


def world(crossing=1.0, powers=(1.96, 1.05), seeds=8):
    """Results as if curves crossed at `crossing` of the predicted 150 samples."""
    rng = np.random.default_rng(0)
    rows = [
        Measurement(claim.Point(d=64, bias=bias), 0, {"exponent": power, "converged": True})
        for bias, power in zip((0.0, 1.0), powers, strict=True)
    ]
    plain = (SIZES / 100) ** -1.5
    for seed in range(seeds):
        ratio = np.exp(-0.8 * np.log(SIZES / (150 * crossing)) + 0.03 * rng.normal(size=len(SIZES)))
        noisy = plain * np.exp(0.03 * rng.normal(size=len(SIZES)))
        result = {"plain": noisy, "biased": noisy / ratio, "plain_theory": plain, "permuted": 1 + 0.01 * seed}
        rows.append(Measurement(claim.Point(d=8, bias=1.0, n=400), seed, result | {"sizes": SIZES, "crossing": 150.0}))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_crossings_and_exponents_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(1.6)) is Outcome.REFUTED
    assert outcome(world(0.6)) is Outcome.REFUTED
    assert outcome(world(powers=(1.96, 1.5))) is Outcome.REFUTED
    assert outcome(world()[2:]) is Outcome.INCONCLUSIVE  # no exponents
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    assert outcome(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed)) is Outcome.REFUTED


def test_a_small_run():
    point = claim.Point(d=5, bias=1.0, keys=4, n=96)
    results = [Measurement(point, seed, claim.measure(point, seed)) for seed in range(2)]
    told = claim.Point(d=5, bias=0.0, keys=4)
    results.append(Measurement(told, 0, claim.measure(told, 0)))
    assert 1 < results[-1].result["exponent"] < 2
    assert 10 < results[0].result["crossing"] < 96
    assert len(claim.draw(results).axes) == 2
    assert "overtakes the biased one at 1.0" in claim.CLAIM.found(claim.CLAIM.verdict(world()))
