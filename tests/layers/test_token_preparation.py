"""Normalised tokens and positions, against their definitions."""

import math

import numpy as np
import pytest

from attlas import layers
from attlas.errors import InputError


def test_normalised_tokens_have_mean_zero_and_variance_one():
    X = 5 + 3 * np.random.default_rng(0).standard_normal((4, 3, 50))
    found = layers.layer_norm(X)
    np.testing.assert_allclose(found.mean(2), 0, atol=1e-14)
    np.testing.assert_allclose(found.var(2), X.var(2) / (X.var(2) + 1e-5), rtol=1e-12)
    np.testing.assert_allclose(layers.layer_norm(X, np.full(50, 2.0), np.ones(50)), 2 * found + 1)
    with pytest.raises(InputError, match="weight"):
        layers.layer_norm(X, np.ones(3))


def test_positions_are_sines_and_cosines():
    found = layers.sinusoidal_positions(5, 6)
    for r in range(5):
        for j in range(3):
            angle = r / 10_000 ** (2 * j / 6)
            assert math.isclose(found[r, 2 * j], math.sin(angle), abs_tol=1e-15)
            assert math.isclose(found[r, 2 * j + 1], math.cos(angle), abs_tol=1e-15)
