"""Layers that hide a parity, and their controls."""

import numpy as np
import pytest

from attlas import recovery, tokens
from attlas.errors import InputError
from attlas.recovery.parity import hidden_coordinates


@pytest.mark.parametrize("heads", [3, 5, 7])
def test_the_parity_is_exact(heads):
    d = heads + 3
    layer = recovery.parity_layer(heads, d, seed=heads)
    assert len(hidden_coordinates(layer)) == heads
    X = tokens.boolean(3000, 2, d, 0)
    pairs = X[X[:, 0, -1] != X[:, 1, -1]]
    parity = np.prod(pairs[:, :, hidden_coordinates(layer)], axis=2)
    assert np.abs(layer(pairs)[:, :, -1] - parity).max() < 1e-12
    assert recovery.on_slice_accuracy(layer, layer, X) == 1
    control = recovery.control_layer(layer, 0)
    np.testing.assert_allclose(np.linalg.norm(control.Theta, axis=(1, 2)), np.linalg.norm(layer.Theta, axis=(1, 2)))
    assert recovery.on_slice_accuracy(layer, control, X) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("heads", "d"), [(2, 8), (5, 5), (0, 4)])
def test_parities_that_do_not_exist(heads, d):
    with pytest.raises(InputError):
        recovery.parity_layer(heads, d, 0)
