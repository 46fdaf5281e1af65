"""Softmax and hardmax along rows."""

import numpy as np

from attlas import layers

from .naive import naive_softmax


def test_softmax_and_hardmax():
    h = np.array([[1000.0, 0.0, -1000.0], [2.0, 2.0, 1.0]])
    p = layers.softmax(h, 3.0)
    np.testing.assert_allclose(p.sum(-1), 1)
    np.testing.assert_allclose(p[1], naive_softmax(h[1], 3.0))
    np.testing.assert_array_equal(layers.hardmax(h), [[1, 0, 0], [1, 0, 0]])
