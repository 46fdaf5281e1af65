"""Random heads and neurons against loops that are their definition; the order of keys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import features, layers, tokens

from .naive import naive_attention


@pytest.mark.parametrize("activation", ["relu", "exp", "softmax"])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_random_feature_attention(activation, bias):
    X, heads = tokens.sphere(6, 4, 3, 0), features.attention_heads(5, 3, 1, bias=bias)
    found = layers.random_feature_attention(X, heads, activation)
    np.testing.assert_allclose(found, naive_attention(X, heads, activation), rtol=1e-12, atol=1e-14)


def test_random_feature_attention_keeps_single_precision():
    X, heads = tokens.sphere(6, 4, 3, 0), features.attention_heads(5, 3, 1)
    found = layers.random_feature_attention(X.astype(np.float32), heads)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, layers.random_feature_attention(X, heads), atol=1e-5)


def test_random_feature_mlp():
    X, w = tokens.sphere(6, 4, 3, 0), features.mlp_neurons(7, 4, 3, 1)
    expected = [[max(float(np.append(x.ravel(), 1.0) @ v), 0.0) for v in w] for x in X]
    np.testing.assert_allclose(layers.random_feature_mlp(X, w), expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5), st.integers(2, 7), st.integers(1, 6), st.sampled_from(["relu", "exp", "softmax"]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_attention_does_not_see_the_order_of_keys(n, keys, d, activation, seed):
    rng = np.random.default_rng(seed)
    X = tokens.sphere(n, 1 + keys, d, rng)
    heads = features.attention_heads(3, d, rng, bias=rng.uniform(0, 2))
    order = np.concatenate([[0], 1 + rng.permutation(keys)])
    before = layers.random_feature_attention(X, heads, activation)
    after = layers.random_feature_attention(X[:, order], heads, activation)
    np.testing.assert_allclose(after, before, rtol=1e-10, atol=1e-13)
