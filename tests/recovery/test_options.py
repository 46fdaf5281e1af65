"""Layers with biases, masks and low rank from examples: found, and refused where the option is left out."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, learn, parameter_error, same_function
from attlas.recovery.examples import Examples
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import variable_projection


def model(d=6, heads=2, causal=False, biases=True, seed=0):
    """A layer as models have it: d_head = d/heads, logits of standard deviation about two, biases of one half."""
    rng = stream(seed, "teacher")
    Wq, Wk, Wv, Wo = rng.standard_normal((4, d, d)) * (np.array([2.0, 1, 1, 1]) / np.sqrt(d))[:, None, None]
    b = 0.5 * rng.standard_normal((4, d)) if biases else [None] * 4
    return Layer.from_weights(Wq, Wk, Wv, Wo, *b, heads=heads, causal=causal)


def tokens(n=200, k=4, d=6, seed=0):
    return stream(seed, "data").standard_normal((n, k, d))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_biases_and_the_causal_mask_are_recovered(causal, last):
    truth, X = model(causal=causal), tokens()
    Y = truth(X)[:, -1] if last else truth(X)
    found = learn(X, Y, 2, bias=True, causal=causal)
    assert found.certificate.met
    assert 0 < parameter_error(found, truth) < 1e-8
    assert found.layer.causal is causal
    assert same_function(found.canonical(), truth)


def test_a_layer_without_biases_is_found_with_them_as_zero():
    truth, X = model(biases=False), tokens()
    found = learn(X, truth(X), 2, bias=True)
    assert np.abs(found.layer.key_bias).max() < 1e-9
    assert np.abs(found.layer.output_bias).max() < 1e-9


def test_what_is_left_out_is_refused():
    X = tokens()
    for truth, told in ((model(), {}), (model(causal=True), {"bias": True}), (model(), {"bias": True, "rank": 2})):
        assert not learn(X, truth(X), 2, max_starts=3, **told).certificate.met


def test_sequences_of_different_length():
    truth, X = model(), tokens(k=5)
    padding = np.arange(5) >= stream(0, "lengths").integers(2, 6, len(X))[:, None]
    Y = truth(X, padding=padding)
    nonsense = np.where(padding[:, :, None], 7.0, Y)
    for outputs in (nonsense, Y[np.arange(len(X)), 4 - np.argmax(~padding[:, ::-1], axis=1)]):
        found = learn(np.where(padding[:, :, None], 3.0, X), outputs, 2, bias=True, padding=padding)
        assert found.certificate.met
        assert 0 < parameter_error(found, truth) < 1e-8
        assert found.tokens is None
    assert not learn(X, Y, 2, bias=True, max_starts=2).certificate.met  # without the mask


def test_low_rank_needs_fewer_examples():
    """Two heads of rank one, d = 8, one output: 49 unknowns instead of 161, and 128 numbers to fit."""
    whole, X = model(d=8, heads=8), tokens(n=40, d=8)
    truth = Layer(whole.Theta[:2], whole.W[:2, :, :1], whole.key_bias[:2], whole.output_bias[:1])
    found = learn(X, truth(X), 2, bias=True, rank=1)
    assert found.certificate.met
    assert 0 < parameter_error(found, truth) < 1e-9
    assert found.layer.rank == 1
    refused = learn(X, truth(X), 2, bias=True, max_starts=3)
    assert refused.residual > 0.1
    assert "cannot determine" in refused.certificate.reason


def test_the_slope_of_the_fit_is_that_of_its_loss():
    """A step along the gradient of the projected loss, by differences, for biased, masked, low-rank examples."""
    from attlas.recovery.variable_projection import _normal_equations, eliminate

    X = tokens(n=15, k=4)
    padding = np.zeros((15, 4), bool)
    padding[3, -1] = True
    data = Examples.of(X, model(causal=True)(X), bias=True, causal=True, padding=padding)
    Theta = random_start(2, 6, stream(1, "start"), rank=2, bias=True) + 0.1
    g = _normal_equations(data, Theta, eliminate(data, Theta))[1]
    for number in range(3):
        step = stream(number, "direction").standard_normal(Theta.shape)
        ahead, back = (eliminate(data, Theta + h * step).loss for h in (1e-5, -1e-5))
        assert np.isclose((ahead - back) / 2e-5, -2 * g @ step.ravel(), rtol=1e-5)


def test_a_fit_of_a_given_rank_keeps_it():
    X = tokens()
    data = Examples.of(X, model()(X), bias=True)
    fit = variable_projection(data, random_start(2, 6, stream(0, "start"), rank=2, bias=True), rank=2, max_steps=15)
    assert fit.layer.rank == 2
    assert np.all(np.diff(fit.history) <= 0)


def across(d=6, d_keys=4, seed=0):
    """A layer of two heads whose tokens attend to those of another sequence, of another dimension."""
    rng = stream(seed, "teacher")
    Theta = 2 * rng.standard_normal((2, d, d_keys)) / np.sqrt(d * d_keys)
    return Layer(
        Theta, rng.standard_normal((2, d_keys, 3)), 0.5 * rng.standard_normal((2, d_keys)), rng.standard_normal(3)
    )


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("d_keys", [4, 6])
def test_cross_attention_is_recovered(d_keys, last):
    truth, X, Z = across(d_keys=d_keys), tokens(n=300), stream(1, "data").standard_normal((300, 5, d_keys))
    padding = np.arange(5) >= stream(0, "lengths").integers(2, 6, len(X))[:, None]
    Y = truth(X, keys=Z, padding=padding)
    Z[padding] = 99.0
    found = learn(X, Y[:, -1] if last else Y, 2, keys=Z, bias=True, padding=padding)
    assert found.certificate.met, found.certificate.reason
    assert found.layer.Theta.shape == (2, 6, d_keys)
    assert 0 < parameter_error(found, truth) < 1e-8
    assert same_function(found.canonical(), truth)


@pytest.mark.parametrize("piece", [0.0, 0.3])
def test_the_certificate_of_cross_attention_under_noise_sees_a_missing_piece(piece):
    truth, X, Z = across(), tokens(n=500), stream(1, "data").standard_normal((500, 5, 4))
    F = truth(X, keys=Z)
    Y = F + F.std() * (0.1 * stream(0, "noise").standard_normal(F.shape) + piece * X[:, :, :1] * Z[:, :1, :1])
    found = learn(X, Y, 2, keys=Z, bias=True, max_starts=6)
    assert found.certificate.met == (piece == 0), found.certificate.reason
    assert (found.certificate.p_value <= 0.01) == (piece > 0)


def test_the_number_of_heads_of_cross_attention_is_found():
    truth, X, Z = across(), tokens(n=300, k=1), stream(1, "data").standard_normal((300, 5, 4))
    found = learn(X, truth(X, keys=Z), keys=Z, bias=True)
    assert found.certificate.met
    assert found.layer.heads == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": np.ones((200, 4))}, "keys must have 3 axes"),
        ({"keys": np.ones((100, 4, 6))}, "keys: axis 0"),
        ({"keys": np.ones((200, 1, 6))}, "keys has one token per sequence"),
        ({"keys": np.ones((200, 4, 6))}, "all tokens of a sequence are equal"),
        ({"keys": tokens(), "causal": True}, "leave out keys, or causal"),
        ({"keys": tokens(), "method": "adam"}, "knows no keys"),
        ({"keys": tokens(), "method": "sculpt"}, "leave out causal, padding and keys"),
        ({"keys": tokens(), "method": "factors"}, "causal mask, padding or keys"),
        ({"keys": tokens(), "padding": np.ones((200, 4), bool)}, "all keys of sequence 0 are padding"),
    ],
)
def test_bad_keys_are_one_sentence(options, message):
    X = tokens()
    with pytest.raises(InputError, match=message):
        learn(X, model()(X), 2, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bias": True, "method": "lbfgs"}, "knows no biases"),
        ({"rank": 2, "method": "adam"}, "knows no biases and no ranks"),
        ({"causal": True, "method": "sculpt"}, "sculpting needs every token"),
        ({"padding": np.ones((200, 4), bool)}, "all tokens of sequence 0 are padding"),
        ({"padding": np.zeros((200, 3), bool)}, "padding must have shape"),
        ({"padding": 0.5}, "padding must be True"),
        ({"bias": 2}, "bias must be True or False"),
        ({"rank": 0}, "rank"),
    ],
)
def test_options_that_do_not_go_together_are_one_sentence(options, message):
    X = tokens()
    with pytest.raises(InputError, match=message):
        learn(X, model()(X), 2, **options)


@pytest.mark.parametrize("keys", [False, True])
def test_data_in_single_precision_are_taken_as_they_are(keys, recwarn):
    truth, X = model(), tokens(n=100).astype(np.float32)
    Z = tokens(n=100, seed=1).astype(np.float32) if keys else None
    found = learn(X, truth(X, keys=Z).astype(np.float32), 2, bias=True, keys=Z)
    assert found.certificate.met
    assert 1e-9 < found.residual < 1e-6
    assert not recwarn.list
