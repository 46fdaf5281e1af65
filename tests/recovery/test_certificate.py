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
    assert "depends on the tokens" in too_few.reason


def test_one_more_head_is_a_second_witness(monkeypatch):
    """Structure that no family has would escape the test of the residual; that one more head fits better tells it."""
    monkeypatch.setattr(certificate_module, "_dependence", lambda *_: "")
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


@pytest.mark.parametrize("last", [True, False])
def test_tokens_in_another_order_are_no_new_example(last):
    """Labels by chance are fitted by many heads; a held-out sequence must not be one of training with tokens moved."""
    X = stream(0, "data").standard_normal((60, 3, 4))
    orders = [[0, 1, 2], [1, 0, 2]] if last else [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]]
    Y = stream(0, "noise").standard_normal((60, 3, 1))
    moved = np.concatenate([X[:, order] for order in orders])
    given = np.concatenate([Y[:, -1] for _ in orders]) if last else np.concatenate([Y[:, order] for order in orders])
    found = learn(moved, given, 4 if last else 10, max_starts=2)
    assert found.certificate.training < 1e-6
    assert not found.certificate.met


def test_an_output_that_is_small_against_others_is_to_be_right_as_well():
    X, Y, _ = task(1)
    own = stream(0, "noise").standard_normal((*Y.shape[:2], 1))
    found = learn(X, np.concatenate([Y, 1e-7 * own], axis=2), 1, max_starts=2)
    assert found.residual < 1e-6
    assert not found.certificate.met
    assert "output 5 is" in found.certificate.reason
    assert learn(X, np.concatenate([Y, 1e-7 * Y[:, :, :1], 1e-17 * own], axis=2), 1).certificate.met


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


@pytest.mark.parametrize("size", [0.1, 1.0])
@pytest.mark.parametrize("d", [4, 8])
def test_a_constant_in_the_outputs_is_not_taken_for_noise(size, d):
    """Such a layer has no bias, is odd in its tokens, and so are the regressors of first and second order."""
    Theta, W = planted_layer(heads=2, d=d, seed=0)
    X = tokens.boolean(600, 4, d, seed=10)
    Y = layers.multi_head_attention(X, Theta, W)
    shift = size * Y.std() * stream(0, "bias").standard_normal(Y.shape[2])
    found = learn(X, Y + shift, heads=2, max_starts=3)
    assert not found.certificate.met
    assert "depends on the tokens" in found.certificate.reason
    assert found.certificate.reason.endswith("try bias=True")
    with_bias = learn(X, Y + shift, heads=2, bias=True, max_starts=10)
    assert with_bias.certificate.met
    np.testing.assert_allclose(with_bias.layer.output_bias, shift, atol=1e-8)


def test_a_constant_so_large_that_nothing_else_is_learned_is_named_too():
    X, Y, _ = task()
    certificate = learn(X, Y + 5 * Y.std(), 2, max_starts=3).certificate
    assert not certificate.met
    assert certificate.reason.endswith("try bias=True")
    without = learn(X, stream(0, "noise").standard_normal(Y.shape), 2, max_starts=2, max_steps=30).certificate
    assert "bias=True" not in without.reason


def test_copies_that_differ_by_rounding_are_one_sequence():
    """Six sequences with outputs by chance are no evidence, however often they are repeated with other last bits."""
    rng = stream(0, "copies")
    X, Y = (np.repeat(rng.standard_normal((6, 4, width)), 50, axis=0) for width in (4, 1))
    found = learn(X * (1 + 1e-9 * rng.standard_normal(X.shape)), Y, 2, max_starts=3)
    assert not found.certificate.met
