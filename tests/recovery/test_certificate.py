"""What examples certify, and what they do not."""

import numpy as np
import pytest

from attlas import layers, recovery, tokens
from attlas.numerics import stream
from attlas.recovery import Layer, learn, planted_layer
from attlas.recovery import certificate as certificate_module

from .tasks import task


def test_a_layer_that_is_not_of_this_kind_gets_no_certificate():
    X, _, _ = task()
    Y = stream(0, "noise").standard_normal((len(X), 4, 5))
    certificate = learn(X, Y, 2, max_starts=3, max_steps=30).certificate
    assert not certificate.met
    assert certificate.residual > 0.9
    too_few = learn(*task(3)[:2], 1, max_starts=3).certificate
    assert not too_few.met  # a best single head exists and all starts find it; what is left depends on the tokens
    assert "the tokens explain" in too_few.reason


def test_one_more_head_is_a_second_witness(monkeypatch):
    """Structure beyond second order would escape the regression on the tokens; that one more head fits better tells it."""
    monkeypatch.setattr(certificate_module, "_explained", lambda *_: 0.0)
    certificate = learn(*task(3)[:2], 1, max_starts=3).certificate
    assert not certificate.met
    assert "there are more than 1" in certificate.reason


@pytest.mark.parametrize("heads", [2, None])
def test_many_heads_are_not_mistaken_for_few_and_noise(heads):
    """Two starts may agree on a poor optimum, and one head more may gain less than a tenth: it is not noise."""
    Theta, W = planted_layer(12, 6, 0)
    X = tokens.boolean(800, 4, 6, 100)
    found = learn(X, Layer(Theta, W)(X), heads, max_starts=2, max_steps=25, max_heads=3)
    assert not found.certificate.met


def test_another_function_is_not_mistaken_for_a_layer_and_noise():
    _, W = planted_layer(12, 6, 0)
    X = tokens.boolean(800, 4, 6, 100)
    assert not learn(X, np.tanh(X @ W[0]), 2, max_starts=3, max_steps=20).certificate.met


def test_tokens_that_hide_part_of_theta_are_told():
    Theta, W = planted_layer(1, 6, 0)
    constant = tokens.boolean(400, 4, 6, 1)
    constant[:, :, 0] = 1
    for X, seen in ((constant, "6 x 5"), (np.eye(6)[stream(0, "data").integers(0, 6, (400, 4))], "6 x 5")):
        certificate = learn(X, Layer(Theta, W)(X), 1).certificate
        assert certificate.met
        assert f"these tokens show {seen} of the 6 x 6 numbers" in certificate.reason


@pytest.mark.parametrize("Y", [stream(0, "noise").standard_normal(400), np.ones(400)])
@pytest.mark.parametrize("heads", [1, None])
def test_nothing_is_certified_where_nothing_was_learned(Y, heads):
    certificate = learn(tokens.boolean(400, 4, 4, 11), Y, heads, max_starts=2, max_steps=40, max_heads=2).certificate
    assert not certificate.met


def test_few_or_repeated_examples_certify_nothing():
    Theta, W = planted_layer(3, 4, 5)
    X = tokens.boolean(6, 3, 4, 9)
    Y = layers.multi_head_attention(X, Theta, W)
    repeated = learn(np.tile(X, (50, 1, 1)), np.tile(Y, (50, 1, 1)), max_starts=2, max_heads=3)
    assert not repeated.certificate.met
    few = learn(X, Y[:, -1, :1], 1, max_starts=3)
    assert "cannot determine" in few.certificate.reason


def test_a_parity_is_not_certified():
    layer = recovery.parity_layer(5, 10, seed=0)
    X = tokens.boolean(300, 2, 10, 1)
    found = learn(X, layer(X), 5, max_starts=1, max_steps=20)
    assert not found.certificate.met
    assert "nothing learned" in found.certificate.reason


def test_a_stalled_search_is_not_noise():
    """At large logits Adam stalls at a tenth, from every start alike, and what is left looks like noise."""
    Theta, W = planted_layer(2, 6, 0, 30.0)
    X = tokens.boolean(800, 4, 6, 1)
    found = learn(X, Layer(Theta, W)(X), 2, method="adam", max_starts=2, max_steps=500)
    assert found.residual > 1e-3
    assert not found.certificate.met
