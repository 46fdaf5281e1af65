"""features.kernel-limit: the exponent of the error decides, and an error that does not vanish."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import kernel_limit as claim

HEADS = np.array([16.0, 64, 256, 1024])


def world(exponent=-0.5, signed=0.0, seeds=40):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            claim.Point(heads=4096, bias=bias),
            seed,
            {
                "heads": HEADS,
                "squared": HEADS ** (2 * exponent) * np.exp(rng.normal(0, 0.3, 4)),
                "signed": signed + rng.normal(0, 0.02),
            },
        )
        for bias in (0.0, 1.0)
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_exponent_and_mean_error_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(exponent=-0.4)) is Outcome.REFUTED
    assert outcome(world(exponent=-0.6)) is Outcome.REFUTED
    assert outcome(world(signed=0.05)) is Outcome.REFUTED
    assert outcome(world(seeds=2)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", [m for m in claim.CLAIM.mutations if m.change], ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_blocks_are_those_of_their_heads(bias):
    """With all heads in one block the error is that of the whole; wider heads have a larger kernel."""
    point = claim.Point(heads=256, d=4, keys=3, bias=bias)
    results = [claim.compare(point, seed) for seed in range(30)]
    assert results[0]["heads"].tolist() == [16, 64]
    assert np.mean([r["squared"][0] / r["squared"][1] for r in results]) == pytest.approx(4, rel=0.3)
    assert abs(np.mean([r["signed"] for r in results])) < 0.08
    wide = [claim.compare(point, seed, 1.5)["signed"] for seed in range(30)]
    assert np.mean(wide) > 0.2


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "as M^-1/2: the fitted exponents are" in words
    found = claim.series(world())
    assert [(s.settings["bias"], s.x) for s in found] == [(0.0, tuple(HEADS)), (1.0, tuple(HEADS))]
    assert len(claim.draw(world()).axes) == 1
