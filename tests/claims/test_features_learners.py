"""The claims about kernels and sample cost: they hold at small size, and what breaks them refutes them."""

import numpy as np
import pytest

from attlas import features
from attlas.claims import (
    Measurement,
    Outcome,
    feature_curves,
    features_bias_correlation,
    features_bias_misaligned,
    features_kernel_limit,
    features_key_averages,
)

from .broken import verdict_of

KERNEL = [features_kernel_limit.Point(heads=M, d=4, keys=3, bias=b) for M in (50, 200, 800) for b in (0.0, 1.0)]


def test_heads_approach_their_kernel():
    verdict = verdict_of(features_kernel_limit.CLAIM, KERNEL, seeds=30)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["relu bias 0 slope"] == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("wrong", [lambda K: 1.05 * K, lambda K: K + 0.02])
def test_a_wrong_kernel_refutes_it(monkeypatch, wrong):
    exact = features.attention_kernel
    monkeypatch.setattr(features, "attention_kernel", lambda *a, **o: wrong(exact(*a, **o)), raising=False)
    assert verdict_of(features_kernel_limit.CLAIM, KERNEL, seeds=30).outcome is Outcome.REFUTED


def test_attention_beats_the_network_on_key_averages():
    points = [features_key_averages.Point(heads=80, d=6, keys=6, n=288)]
    assert verdict_of(features_key_averages.CLAIM, points, seeds=14).outcome is Outcome.SUPPORTED


def test_the_same_model_twice_does_not(monkeypatch):
    monkeypatch.setattr(
        features,
        "RandomMLPFeatures",
        lambda n_heads, random_state: features.RandomAttentionFeatures(n_heads, random_state=random_state + 100),
        raising=False,
    )
    points = [features_key_averages.Point(heads=60, d=4, keys=6, n=256)]
    assert verdict_of(features_key_averages.CLAIM, points, seeds=5).outcome is not Outcome.SUPPORTED


def costs(plain, biased):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            features_bias_correlation.Point(d=d),
            seed,
            {
                "plain": d**plain * np.exp(rng.normal(0, 0.05)),
                "biased": d**biased * np.exp(rng.normal(0, 0.05)),
                "plain_curve": np.ones(2),
                "biased_curve": np.ones(2),
                "sizes": np.array([16.0, 32.0]),
            },
        )
        for d in (6, 8, 12, 16)
        for seed in range(3)
    ]


def test_the_difference_of_exponents_decides():
    judge = features_bias_correlation.judge
    assert judge(costs(1.7, 1.0)).outcome is Outcome.SUPPORTED
    assert judge(costs(1.0, 1.7)).outcome is Outcome.REFUTED
    assert judge(costs(1.5, 1.5)).outcome is Outcome.INCONCLUSIVE
    censored = costs(1.7, 1.0)
    for m in censored[3:]:
        m.result["plain"] = np.inf
    assert judge(censored).outcome is Outcome.INCONCLUSIVE


def test_a_bias_lowers_the_cost_of_a_correlation():
    point = features_bias_correlation.Point(d=8, keys=8, n=200)
    result = features_bias_correlation.measure(point, 0)
    assert 16 < result["biased"] < result["plain"] < 200
    assert len(features_bias_correlation.draw([Measurement(point, 0, result)]).axes) == 2


def test_targets_have_names():
    X = feature_curves.tokens.sphere(5, 4, 3, 0)
    for name in ("query 2", "keys 1", "correlation 2", "rotated 1"):
        assert feature_curves.target_of(name, 3, 0)(X).shape == (5,)
    assert not np.allclose(*(feature_curves.target_of(name, 3, 0)(X) for name in ("correlation 1", "rotated 1")))


def misaligned(aligned=0.5, rotated=0.0, loss=0.4):
    """Results as if the bias changed the logarithms of costs and of the last error by these amounts."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (8, 12):
        for seed in range(6):
            plain, biased = np.full((3, 3), 0.3), np.full((3, 3), 0.3)
            biased[-1, 2] *= np.exp(loss + rng.normal(0, 0.02))
            gains = np.array([aligned, rotated, 0.0]) + rng.normal(0, 0.05, 3)
            result = {"plain": plain, "biased": biased, "sizes": np.array([16.0, 32.0, 64.0])}
            result |= {"plain_cost": np.full(3, 50.0), "biased_cost": 50 / np.exp(gains)}
            rows.append(Measurement(features_bias_misaligned.Point(d=d), seed, result))
    return rows


def test_only_an_aligned_correlation_may_gain():
    judge = features_bias_misaligned.judge
    assert judge(misaligned()).outcome is Outcome.SUPPORTED
    assert judge(misaligned(rotated=0.3)).outcome is Outcome.REFUTED
    assert judge(misaligned(aligned=0.0)).outcome is Outcome.INCONCLUSIVE
    assert judge(misaligned(loss=0.0)).outcome is Outcome.INCONCLUSIVE
    censored = misaligned()
    for m in censored:
        m.result["plain_cost"][1] = np.inf
    assert judge(censored).outcome is Outcome.INCONCLUSIVE
    assert len(features_bias_misaligned.draw(misaligned()).axes) == 3
