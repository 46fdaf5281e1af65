"""Large layers through `learn`: the method is chosen by size, biases are found, a wrong rank is not certified."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, learn, parameter_error, planted_layer
from attlas.recovery.factor_fit import layer_of_factors
from attlas.recovery.factors import Sizes

SIZES = Sizes(heads=8, rank=4, d=32, d_out=32, biased=True)


def task(sizes, n, seed=1, noise=0.0):
    v = 1.5 * stream(seed, "teacher").standard_normal(sizes.numbers) / np.sqrt(2 * sizes.d)
    truth = layer_of_factors(v, sizes)
    X = stream(seed, "data").standard_normal((n, 4, sizes.d))
    return X, truth(X) + noise * stream(seed, "noise").standard_normal((n, 4, sizes.d_out)), truth


@pytest.mark.parametrize("biased", [False, True])
def test_a_large_layer_is_found_without_naming_the_method(biased):
    X, Y, truth = task(SIZES._replace(biased=biased), 1500)
    found = learn(X, Y, heads=8, bias=biased)
    assert found.converged
    assert found.certificate.source == "random, factors"
    assert found.certificate.starts == 1
    assert 0 < found.residual < 1e-9
    assert 0 < parameter_error(found, truth) < 1e-7


def test_small_layers_keep_variable_projection():
    X, Y, _ = task(Sizes(2, 4, 4, 4), 200)
    assert learn(X, Y, heads=2).certificate.source == "random"
    assert learn(X, Y, heads=2, method="factors", rank=4).converged


def test_a_wrong_rank_is_not_certified():
    X, Y, _ = task(SIZES._replace(biased=False), 800)
    found = learn(X, Y, heads=8, rank=2, max_starts=1, max_steps=300)
    assert not found.converged
    assert found.certificate.residual > 1e-2


@pytest.mark.parametrize(("heads", "rank", "told"), [(4, 4, None), (3, 4, 4)])
def test_the_number_of_heads_of_a_large_layer_is_found(heads, rank, told):
    X, Y, truth = task(Sizes(heads, rank, 16, 16), 512)
    found = learn(X, Y, rank=told)
    assert found.converged
    assert found.certificate.source == "random, factors"
    assert found.layer.heads == heads
    assert 0 < parameter_error(found, truth) < 1e-7
    tried = found.history[:, 0].tolist()
    assert tried == ([1, 2, 4, 4] if told is None else [1, 2, 4, 3, 3])  # the last one of each is polished


def test_heads_of_any_rank_follow_where_factors_find_nothing():
    """Full matrices have no rank d/H: variable projection finds them, as it does for smaller layers."""
    Theta, W = planted_layer(2, 16, stream(5, "teacher"), 3.0)
    X = stream(5, "data").standard_normal((300, 4, 16))
    found = learn(X, Layer(Theta, W)(X), max_heads=2, max_steps=60)
    assert found.converged
    assert found.certificate.source == "random"
    assert found.layer.heads == 2


def test_a_seed_gives_the_same_layer():
    X, Y, _ = task(Sizes(2, 2, 6, 6), 200)
    one, other = (learn(X, Y, 2, method="factors", rank=2, max_starts=1, max_steps=200) for _ in range(2))
    assert np.array_equal(one.Theta, other.Theta)
    assert one.steps == other.steps


def test_what_factors_cannot_do_is_said():
    X, Y, _ = task(Sizes(2, 2, 4, 4), 50)
    with pytest.raises(InputError, match="no causal mask"):
        learn(X, Y, 2, method="factors", causal=True)
