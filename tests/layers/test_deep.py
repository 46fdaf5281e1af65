"""Two layers against loops that are their definition; one layer is softmax of the indices."""

import math

import numpy as np

from attlas import layers, tokens
from attlas.aim import teacher

from .naive import naive_indices, naive_softmax


def test_deep_attention_of_two_layers():
    """x^(2) = (cI + softmax(beta h1)) x; its indices, centred by Tr S2 B B^T, give the output."""
    X, S = tokens.gaussian(4, 3, 6, 0), [teacher(6, 0.5, seed) for seed in (1, 2)]
    beta, c = 0.7, 0.4
    expected = []
    for x, h in zip(X, naive_indices(X, S[0]), strict=True):
        B = c * np.eye(3) + np.array([naive_softmax(row, beta) for row in h])
        moved = B @ x
        H = (moved @ S[1] @ moved.T - np.trace(S[1]) * B @ B.T) / math.sqrt(6)
        expected.append([naive_softmax(row, beta) for row in H])
    np.testing.assert_allclose(layers.deep_attention(X, S, beta, c), expected, rtol=1e-11, atol=1e-13)


def test_deep_attention_of_one_layer_is_softmax_of_indices():
    X, S = tokens.gaussian(4, 3, 6, 0), teacher(6, 0.5, 1)
    np.testing.assert_allclose(
        layers.deep_attention(X, [S], 2.0), layers.softmax(layers.attention_indices(X, S), 2.0), rtol=1e-13
    )
