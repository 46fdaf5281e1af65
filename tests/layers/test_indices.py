"""Attention indices against loops that are their definition; their memory; the order of tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import layers, tokens
from attlas.aim import teacher
from attlas.layers import blocks

from .naive import naive_indices


def test_attention_indices():
    X, S = tokens.gaussian(6, 3, 8, 0), teacher(8, 0.5, 1)
    h = layers.attention_indices(X, S)
    np.testing.assert_allclose(h, naive_indices(X, S), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(h, h.transpose(0, 2, 1))


@pytest.mark.parametrize("n", [2_000, 8_000])
def test_scratch_memory_does_not_grow_with_n(n):
    """Beyond input and output at most the stated 64 MB of scratch: an n x d x d tensor would take 0.7 to 2.6 GB."""
    import tracemalloc

    X, S = tokens.gaussian(n, 2, 200, 0), teacher(200, 0.5, 1)
    tracemalloc.start()
    h = layers.attention_indices(X, S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * h.nbytes + 8 * blocks.BLOCK


def test_a_matrix_symmetric_to_its_own_precision_is_symmetric():
    S = teacher(40, 0.5, 0).astype(np.float32)
    S[0, 1] *= 1 + 1e-6
    layers.attention_indices(tokens.gaussian(2, 2, 40, 0), S)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(2, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_permuting_tokens_permutes_the_indices(n, T, d, seed):
    rng = np.random.default_rng(seed)
    X, order, S = tokens.gaussian(n, T, d, rng), rng.permutation(T), teacher(d, 1.0, rng)
    permuted = layers.attention_indices(X[:, order], S)
    np.testing.assert_allclose(permuted, layers.attention_indices(X, S)[:, order][:, :, order], atol=1e-10)
