"""features.kernel-limit: the exponent of the error decides, and an error that does not vanish."""

import numpy as np
import pytest

from attlas import features, layers, tokens
from attlas.claims import Measurement, Outcome
from attlas.claims.features import kernel_limit as claim

HEADS = np.array([16.0, 64, 256, 1024])


def world(exponent=-0.5, signed=0.0, seeds=40, constant=1.0):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            claim.Point(heads=4096, bias=bias),
            seed,
            {
                "heads": HEADS,
                "squared": constant * (HEADS / 16) ** (2 * exponent) * np.exp(rng.normal(0, [0.06, 0.1, 0.2, 0.3])),
                "theory": 16 / HEADS,
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
    assert outcome(world(constant=1.2)) is Outcome.REFUTED
    assert outcome(world(constant=0.8)) is Outcome.REFUTED
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


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_spread_of_a_head_is_that_of_drawn_matrices(bias):
    """Matrices W drawn whole, one at a time, on pairs of sequences; the mean of K^2 from the kernel in closed form."""
    d, keys = 3, 2
    X = tokens.sphere(200, keys + 1, d, np.random.default_rng(0))
    heads = features.attention_heads(4000, d, np.random.default_rng(1), bias)
    Phi = layers.random_feature_attention(X, heads, "relu").reshape(len(X), len(heads), d + 1)
    K, apart = features.attention_kernel(X, bias=bias), ~np.eye(len(X), dtype=bool)
    squares = np.mean([(Phi[:, m] @ Phi[:, m].T)[apart] ** 2 for m in range(len(heads))])
    expected = squares / np.mean(K[apart] ** 2) - 1
    assert claim.spread(d, keys, bias) == pytest.approx(expected, rel=0.1)


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "as M^-1/2: the fitted exponents are" in words
    found = claim.series(world())
    assert found[0].theory == pytest.approx(4 / np.sqrt(HEADS))
    assert [(s.settings["bias"], s.x) for s in found] == [(0.0, tuple(HEADS)), (1.0, tuple(HEADS))]
    assert len(claim.draw(world()).axes) == 1
