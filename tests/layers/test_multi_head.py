"""Multi-head attention against loops that are its definition; the order of tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import layers, recovery, tokens

from .naive import naive_softmax


@pytest.mark.parametrize("d_out", [None, 1, 5])
def test_multi_head_attention(d_out):
    X = tokens.boolean(5, 4, 3, 0)
    Theta, W = recovery.planted_layer(2, 3, 1, d_out=d_out)
    expected = np.zeros((5, 4, d_out or 3))
    for s in range(5):
        for theta, value in zip(Theta, W, strict=True):
            for a in range(4):
                p = naive_softmax([X[s, a] @ theta @ X[s, b] for b in range(4)])
                expected[s, a] += sum(p[b] * X[s, b] for b in range(4)) @ value
    np.testing.assert_allclose(layers.multi_head_attention(X, Theta, W), expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(2, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_permuting_tokens_permutes_the_output(n, T, d, seed):
    rng = np.random.default_rng(seed)
    X, order = tokens.gaussian(n, T, d, rng), rng.permutation(T)
    Theta, W = recovery.planted_layer(2, d, rng)
    permuted = layers.multi_head_attention(X[:, order], Theta, W)
    np.testing.assert_allclose(permuted, layers.multi_head_attention(X, Theta, W)[:, order], atol=1e-10)
