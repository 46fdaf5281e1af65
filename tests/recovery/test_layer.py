"""What can be known of a layer: pairs of the same function, the canonical form, equality."""

import numpy as np
import pytest

from attlas import recovery
from attlas.errors import InputError
from attlas.recovery import Layer, difference, parameter_error, planted_layer, same_function

RNG = np.random.default_rng(0)
T, T2, A, B = RNG.standard_normal((4, 5, 5))
ZERO = np.zeros((5, 5))


def layer(*heads):
    return Layer(np.array([head[0] for head in heads]), np.array([head[1] for head in heads]))


SAME = [
    (layer((T, A), (T2, B)), layer((T2, B), (T, A))),  # order
    (layer((T, A)), layer((T, 0.3 * A), (T, 0.7 * A))),  # equal attention
    (layer((T, A)), layer((T, A), (T2, ZERO))),  # no value
    (layer((T, A)), layer((T, A), (T2, B), (T2, -B))),  # a pair that cancels
]
SAME_AT_TWO = [
    (layer((T, A), (-T, A)), layer((ZERO, 2 * A))),
    (layer((T, A), (ZERO, B)), layer((-T, -A), (ZERO, B + 2 * A))),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_the_same_function_has_one_canonical_form(first, second):
    assert difference(first, second) < 1e-14
    assert same_function(first, second)
    assert parameter_error(first.canonical(), second.canonical()) < 1e-13


@pytest.mark.parametrize(("first", "second"), SAME_AT_TWO)
def test_some_layers_agree_at_length_two_alone(first, second):
    assert same_function(first, second, k=2)
    assert not same_function(first, second, k=3)
    assert parameter_error(first.canonical(k=2), second.canonical(k=2)) < 1e-13
    assert first.canonical().heads == first.heads


def test_generic_heads_stay():
    found = Layer(*planted_layer(4, 5, 1)).canonical()
    assert found.heads == 4
    assert (np.diff(np.linalg.norm(found.W, axis=(1, 2))) <= 0).all()


def test_nothing_at_all_is_one_silent_head():
    silent = layer((T, A), (T, -A)).canonical()
    assert silent.heads == 1
    assert not silent.W.any()


def test_a_large_pair_that_cancels_hides_nothing():
    found = layer((T, 1e8 * A), (T, -1e8 * A), (T2, B)).canonical()
    assert parameter_error(found, layer((T2, B))) < 1e-6


def test_different_layers_differ():
    first, second = Layer(*planted_layer(2, 5, 1)), Layer(*planted_layer(2, 5, 2))
    assert not same_function(first, second)
    assert parameter_error(first, second) > 0.1
    assert parameter_error(first, Layer(*planted_layer(3, 5, 1))) == np.inf
    with pytest.raises(InputError, match="W of shapes"):
        parameter_error(first, Layer(*planted_layer(2, 5, 1, d_out=1)))
    with pytest.raises(InputError, match="dimension 5 and 4"):
        same_function(first, Layer(*planted_layer(2, 4, 1)))


@pytest.mark.parametrize(
    ("Theta", "W", "message"),
    [
        (np.zeros((2, 3, 4)), np.zeros((2, 3, 3)), "Theta"),
        (np.zeros((2, 3, 3)), np.zeros((1, 3, 3)), "W"),
        (np.full((1, 3, 3), np.nan), np.zeros((1, 3, 3)), "Theta"),
    ],
)
def test_bad_parameters_are_named(Theta, W, message):
    with pytest.raises(InputError, match=message):
        Layer(Theta, W)


def test_what_was_found_compares_like_a_layer_and_other_things_do_not():
    Theta, W = recovery.planted_layer(1, 3, 0)
    layer = recovery.Layer(Theta, W)
    found = recovery.learn_from_queries(lambda X: layer(X[None])[0, -1], 3)
    assert recovery.same_function(found, layer)
    assert recovery.parameter_error(found, layer) < 1e-12
    assert found.canonical().heads == 1
    with pytest.raises(InputError, match="give a Layer"):
        recovery.same_function((Theta, W), layer)
    with pytest.raises(InputError, match="k must be"):
        layer.canonical(k=0)
    with pytest.raises(InputError, match="k must be"):
        recovery.same_function(layer, layer, k=-1)


U, V, C = np.random.default_rng(1).standard_normal((3, 5))


def biased(*heads, constant=C, causal=False):
    Theta, W, u = (np.array([head[part] for head in heads]) for part in range(3))
    return Layer(Theta, W, u, constant, causal)


BIASED = [
    (biased((T, A, U), (T2, B, V)), biased((T2, B, V), (T, A, U))),
    (biased((T, A, U)), biased((T, 0.3 * A, U), (T, 0.7 * A, U))),
    (biased((T, A, U)), biased((T, A, U), (T, B, V), (T, -B, V))),
    (biased((T, A, 0 * U), constant=0 * C), layer((T, A))),
    (biased((T, A, U), causal=True), biased((T, A, U), (T2, ZERO, V), causal=True)),
]


@pytest.mark.parametrize(("first", "second"), BIASED)
def test_biases_have_one_canonical_form_too(first, second):
    assert difference(first, second) < 1e-14
    one, other = first.canonical(), second.canonical()
    assert parameter_error(one, other) < 1e-13
    assert difference(one, first) < 1e-14
    assert one.causal == first.causal
    assert (one.key_bias is None) == (other.key_bias is None)


def test_equal_theta_with_other_key_biases_are_two_heads():
    assert biased((T, A, U), (T, A, V)).canonical().heads == 2


def test_the_sign_at_length_two_takes_the_key_bias_along():
    first, second = biased((T, A, U), (ZERO, B, 0 * U)), biased((-T, -A, -U), (ZERO, B + 2 * A, 0 * U))
    assert same_function(first, second, k=2)
    assert not same_function(first, second, k=3)
    assert parameter_error(first.canonical(k=2), second.canonical(k=2)) < 1e-13


def test_biases_and_masks_against_loops():
    """The definition, token by token: a causal mask, padding, and a token that may attend to nothing."""
    X = np.random.default_rng(2).standard_normal((2, 4, 5))
    padding = np.zeros((2, 4), bool)
    padding[0, 0] = padding[1, 2] = True
    expected = np.tile(C, (2, 4, 1))
    for s in range(2):
        for r in range(4):
            seen = [c for c in range(r + 1) if not padding[s, c]]
            for theta, value, u in ((T, A, U), (T2, B, V)):
                e = np.exp([X[s, r] @ theta @ X[s, c] + u @ X[s, c] for c in seen])
                for weight, c in zip(e / e.sum(), seen, strict=True):
                    expected[s, r] += weight * X[s, c] @ value
    np.testing.assert_allclose(biased((T, A, U), (T2, B, V), causal=True)(X, padding=padding), expected, atol=1e-12)


def test_cross_attention_of_a_sequence_to_itself_is_attention():
    own = biased((T, A, U), (T2, B, V))
    X = np.random.default_rng(3).standard_normal((3, 4, 5))
    np.testing.assert_array_equal(own(X, keys=X), own(X))
    with pytest.raises(InputError, match="leave out keys, or causal"):
        biased((T, A, U), causal=True)(X, keys=X)
    with pytest.raises(InputError, match="give keys"):
        Layer(np.ones((1, 5, 3)), np.ones((1, 3, 5)))(X)
    with pytest.raises(InputError, match=r"padding must have shape \(3, 4\)"):
        own(X, padding=np.zeros((3, 5), bool))
    with pytest.raises(InputError, match="key_bias"):
        Layer(T[None], A[None], np.zeros((2, 5)))
