"""The claims about kernels and sample cost: they hold at small size, and what breaks them refutes them."""

import numpy as np
import pytest

from attlas import features
from attlas.claims import Measurement, Outcome, feature_curves
from attlas.claims.features import activations as features_activations
from attlas.claims.features import bias_correlation as features_bias_correlation
from attlas.claims.features import bias_misaligned as features_bias_misaligned
from attlas.claims.features import expressivity as features_expressivity
from attlas.claims.features import kernel_limit as features_kernel_limit
from attlas.claims.features import key_averages as features_key_averages
from attlas.claims.features import risk_bound as features_risk_bound
from attlas.claims.features import target_degree as features_target_degree
from attlas.errors import InputError

from .broken import verdict_of

KERNEL = [features_kernel_limit.Point(heads=M, d=4, keys=3, bias=b) for M in (50, 200, 800) for b in (0.0, 1.0)]


def test_heads_approach_their_kernel():
    verdict = verdict_of(features_kernel_limit.CLAIM, KERNEL, seeds=30)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["relu bias 0 d=4 keys=3 slope"] == pytest.approx(-0.5, abs=0.1)


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
    for name in ("query 2", "keys 1", "correlation 2", "rotated 1", "weighted 2"):
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
    assert judge(misaligned(aligned=-0.5)).outcome is Outcome.REFUTED
    assert judge(misaligned(loss=-0.3)).outcome is Outcome.REFUTED
    blurred = misaligned()
    for m in blurred:
        m.result["biased_cost"][1] *= np.exp(0.6 * (-1) ** m.seed)
    assert judge(blurred).outcome is Outcome.INCONCLUSIVE  # no gain was seen, but none could have been
    assert judge(misaligned(loss=0.0)).outcome is Outcome.INCONCLUSIVE
    censored = misaligned()
    for m in censored:
        m.result["plain_cost"][1] = np.inf
    assert judge(censored).outcome is Outcome.INCONCLUSIVE
    assert len(features_bias_misaligned.draw(misaligned()).axes) == 3


def expressed(slope, scatter=0.1):
    rng = np.random.default_rng(1)
    return [
        Measurement(
            features_expressivity.Point(heads=M), seed, {"errors": M**slope * np.exp(rng.normal(0, scatter, 5))}
        )
        for M in (32, 64, 128, 256)
        for seed in range(4)
    ]


def test_more_heads_express_more():
    points = [features_expressivity.Point(heads=M, d=2, keys=3) for M in (10, 20, 40)]
    claim = features_expressivity.CLAIM
    results = [Measurement(p, s, claim.measure(p, s)) for p in points for s in range(4)]
    assert claim.judge(results).outcome is not Outcome.REFUTED
    assert len(claim.draw(results).axes) == 1
    judge = claim.judge
    assert judge(expressed(-1.0)).outcome is Outcome.SUPPORTED
    assert judge(expressed(-2.0, 0.5)).outcome is Outcome.SUPPORTED
    assert judge(expressed(-0.7)).outcome is Outcome.REFUTED
    assert judge(expressed(-1.0, 1.0)).outcome is Outcome.INCONCLUSIVE
    assert (
        judge(expressed(-9.0)).outcome is Outcome.INCONCLUSIVE
    )  # at the floor of the arithmetic there is nothing to fit


def ranked(order):
    B = 10.0 ** np.arange(12)
    return [
        Measurement(
            features_target_degree.Point(),
            seed,
            {
                "tenth": order(B) * (1 + 0.01 * seed),
                "half": order(B),
                "B": B,
                "rkhs": B[::-1].copy(),
                "variance": np.ones(12),
            },
        )
        for seed in range(3)
    ]


def test_the_order_of_costs_decides():
    judge = features_target_degree.judge
    found = judge(ranked(lambda B: B**0.3))
    assert found.outcome is Outcome.SUPPORTED
    assert found.numbers["d=4 rank correlation with RKHS norm"] == pytest.approx(-1)
    assert judge(ranked(lambda B: B**-0.3)).outcome is Outcome.REFUTED
    shuffled = np.random.default_rng(0).permutation(12)
    assert judge(ranked(lambda B: B[shuffled])).outcome is Outcome.INCONCLUSIVE
    assert judge(ranked(lambda B: np.full_like(B, np.inf))).outcome is Outcome.INCONCLUSIVE
    assert len(features_target_degree.draw(ranked(lambda B: B**0.3)).axes) == 2


def test_costs_are_those_of_the_targets():
    point = features_target_degree.Point(d=2, keys=3, n=200)
    result = features_target_degree.measure(point, 0)
    cost = dict(zip(features_target_degree.TARGETS, result["tenth"], strict=True))
    assert 0 < cost["query 1"] < cost["query 2"] < cost["query 4"]
    assert (result["half"] <= result["tenth"]).all()


def test_risks_above_the_bound_refute_it():
    point = features_risk_bound.Point(target="keys 1", n=40, heads=10, d=3, keys=4)
    results = [Measurement(point, s, features_risk_bound.measure(point, s)) for s in range(2)]
    found = features_risk_bound.judge(results)
    assert found.outcome is Outcome.SUPPORTED
    assert 0 < results[0].result["risk"] < results[0].result["constant"]
    assert len(features_risk_bound.draw(results).axes) == 1
    results[0].result["risk"] = 2 * results[0].result["bound"]
    assert features_risk_bound.judge(results).outcome is Outcome.REFUTED
    results[0].result["risk"] = np.nan
    assert features_risk_bound.judge(results).outcome is Outcome.INCONCLUSIVE


def test_activations_are_compared_on_the_same_data():
    point = features_activations.Point(heads=40, d=4, keys=4, n=128)
    results = [Measurement(point, s, features_activations.measure(point, s)) for s in range(4)]
    found = features_activations.judge(results)
    assert found.numbers["d=4 correlation 1 softmax"] > 0.9  # softmax does not learn it
    assert found.numbers["d=4 correlation 1 relu"] < 0.5
    assert len(features_activations.draw(results).axes) == 4
    swapped = [
        Measurement(point, m.seed, m.result | {"relu": m.result["softmax"], "softmax": m.result["relu"]})
        for m in results
    ]
    assert features_activations.judge(swapped).outcome is Outcome.REFUTED


def test_points_too_small_for_their_curve_are_refused():
    with pytest.raises(ValueError, match="2 d"):
        features_key_averages.Point(d=16, n=64)
    with pytest.raises(InputError, match="too small"):
        feature_curves.grid(64, 64)


def test_costs_that_never_meet_decide_nothing():
    apart = costs(1.7, 1.0)
    for m in apart:
        m.result["plain" if m.seed else "biased"] = np.inf
    assert features_bias_correlation.judge(apart).outcome is Outcome.INCONCLUSIVE
    unknown = costs(1.7, 1.0)
    unknown[0].result["plain"] = np.nan
    assert features_bias_correlation.judge(unknown).outcome is Outcome.INCONCLUSIVE
    lost = expressed(-2.0)
    lost[0].result["errors"][1] = np.nan
    assert features_expressivity.judge(lost).outcome is Outcome.INCONCLUSIVE
