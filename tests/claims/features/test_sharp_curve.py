"""features.sharp-curve: how far simulated errors are from the predicted ones decides."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import kit
from attlas.claims.features import sharp_curve as claim

POINTS = (claim.Point(d=4, keys=3, n=80), claim.Point(d=5, keys=4, n=60))


def world(factor=1.0, one=1.0, seeds=8):
    """Results as if errors were `factor` of the predicted ones, and those of the first target `one` times as large again."""
    rng = np.random.default_rng(0)
    rows = []
    for point in POINTS:
        own = kit.theory(point.d, point.keys, point.bias)
        theory = kit.predicted(own, claim.TARGETS, point.sizes, claim.RIDGES, "infinite")
        scale = np.where(np.arange(theory.shape[-1]) == 0, one, 1.0) * factor
        for seed in range(seeds):
            errors = theory * scale * np.exp(0.03 * rng.normal(size=theory.shape))
            rows.append(Measurement(point, seed, {"errors": errors, "theory": theory}))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_deviations_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(1.2)) is Outcome.REFUTED
    assert outcome(world(0.85)) is Outcome.REFUTED
    assert outcome(world(one=1.3)) is Outcome.REFUTED  # one target alone
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", [m for m in claim.CLAIM.mutations if "bias" not in m.name], ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    assert outcome(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed)) is Outcome.REFUTED


def test_a_small_run():
    results = [Measurement(POINTS[0], seed, claim.measure(POINTS[0], seed)) for seed in range(3)]
    errors = np.mean([m.result["errors"] for m in results], axis=0)
    assert errors.shape == results[0].result["theory"].shape == (2, 2, 7)
    assert np.median(np.abs(np.log(errors / results[0].result["theory"]))) < 0.2  # three draws of eighty samples
    assert (claim.measure(POINTS[0], 0)["errors"] == results[0].result["errors"]).all()
    assert len(claim.draw(results).axes) == 2
    assert len(claim.series(results)) == 2 * 7
    assert "the median deviation of the simulated errors is " in claim.CLAIM.found(claim.CLAIM.verdict(world()))
