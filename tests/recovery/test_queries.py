"""Recovery from chosen queries."""

import numpy as np
import pytest

from attlas import layers
from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, learn_from_queries, parameter_error, planted_layer


def oracle_of(Theta, W, noise=0.0, seed=0):
    rng = stream(seed, "noise")

    def oracle(X):
        answer = layers.multi_head_attention(X[None], Theta, W)[0, -1]
        return answer + noise * np.sqrt(np.mean(answer**2)) * rng.standard_normal(answer.shape)

    return oracle


def planted(heads, d, seed=0, d_out=None):
    return planted_layer(heads, d, stream(seed, "teacher"), 2 * np.sqrt(d), d_out=d_out)


@pytest.mark.parametrize("d", [1, 3, 8, 20])
@pytest.mark.parametrize("d_out", [1, None])
def test_one_head_from_d_squared_plus_d_queries(d, d_out):
    Theta, W = planted(1, d, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), d)
    assert found.queries == d * d + d
    assert np.abs(found.Theta - Theta).max() < 1e-12
    assert np.abs(found.W - W).max() < 1e-14
    assert found.met


def test_steep_heads_cost_more_queries_but_are_found():
    Theta, W = planted_layer(1, 6, stream(0, "teacher"), 300.0)
    found = learn_from_queries(oracle_of(Theta, W), 6)
    assert found.queries > 42
    np.testing.assert_allclose(found.Theta, Theta, rtol=1e-6, atol=1e-6 * np.abs(Theta).max())


@pytest.mark.parametrize(("d", "rank"), [(10, 1), (20, 2)])
def test_low_rank_needs_fewer(d, rank):
    rng = stream(1, "teacher")
    Theta = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, d)) / d
    W = rng.standard_normal((d, d)) / np.sqrt(d)
    found = learn_from_queries(oracle_of(Theta[None], W[None]), d, rank=rank)
    assert found.queries == 2 * rank * d + d
    assert np.abs(found.Theta - Theta).max() < 1e-9


def test_noise_costs_in_proportion_and_repeats_help():
    Theta, W = planted(1, 6)
    size = np.linalg.norm(Theta)

    def error(noise, repeats=1):
        found = [
            learn_from_queries(oracle_of(Theta, W, noise, seed), 6, noise=noise, repeats=repeats) for seed in range(4)
        ]
        assert all(f.met for f in found)
        return np.mean([np.linalg.norm(f.Theta - Theta) / size for f in found])

    assert error(1e-4) == pytest.approx(100 * error(1e-6), rel=0.3)
    assert error(1e-4, repeats=9) == pytest.approx(error(1e-4) / 3, rel=0.5)


@pytest.mark.parametrize(("heads", "given", "d_out"), [(2, 2, 1), (2, None, 3)])
def test_several_heads_from_ordinary_queries(heads, given, d_out):
    Theta, W = planted(heads, 4, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=given)
    assert found.met
    assert 0 < parameter_error(found.layer, Layer(Theta, W)) < 1e-8


def test_too_few_heads_are_not_certified():
    Theta, W = planted(3, 4)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=2, ratio=2)
    assert not found.met
    assert "not 1e-06" in found.reason


def failing(X):
    raise RuntimeError("no connection")


@pytest.mark.parametrize(
    ("oracle", "options", "message"),
    [
        (lambda X: np.zeros((2, 2)), {}, "shape"),
        (lambda X: np.ones(len(X)), {}, "as before"),
        (lambda X: "text", {}, "must return numbers"),
        (lambda X: np.nan, {}, "not finite"),
        (lambda X: 0.0, {}, "W = 0"),
        (failing, {}, "raised RuntimeError at query 1: no connection"),
        (3, {}, "must be a function"),
        (lambda X: X[-1], {"heads": 0}, "heads"),
        (lambda X: X[-1], {"rank": 9}, "rank must be at most"),
        (lambda X: X[-1], {"rank": 1, "heads": 2}, "one head"),
        (lambda X: X[-1], {"repeats": 0}, "repeats"),
        (lambda X: X[-1], {"step": 0}, "step"),
        (lambda X: X[-1], {"noise": -1}, "noise"),
    ],
)
def test_bad_oracles_and_settings_are_one_sentence(oracle, options, message):
    with pytest.raises(InputError, match=message):
        learn_from_queries(oracle, 4, **options)
