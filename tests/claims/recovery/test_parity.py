"""Layers that hide a parity of an even number of coordinates, and accuracy on tokens that were not seen."""

import numpy as np
import pytest

from attlas import tokens
from attlas.claims.recovery.kit.parity import deviation, hiding, parity, unseen_accuracy
from attlas.errors import InputError
from attlas.recovery import Layer


@pytest.mark.parametrize("hidden", [2, 3, 4, 5, 6, 7])
def test_the_parity_is_exact(hidden):
    layer = hiding(hidden, 9, 0)
    X = tokens.boolean(500, 2, 9, 1)
    assert layer.heads == hidden + (hidden % 2 == 0)
    assert deviation(layer, X) < 1e-13
    shown = np.flatnonzero(np.abs(layer.Theta[:, :-1, -1]).sum(0) > 0)
    assert len(shown) == hidden
    product = np.prod(X[:, :, shown], axis=2) * (X[:, :, -1] if hidden % 2 == 0 else 1)
    assert np.array_equal(parity(layer, X), product)


def test_a_memory_of_the_examples_is_worth_nothing():
    layer = hiding(2, 6, 0)
    X = tokens.boolean(20, 2, 6, 1)
    fresh = tokens.boolean(500, 2, 6, 2)
    assert unseen_accuracy(layer, layer, fresh, X) == 1.0
    assert unseen_accuracy(layer, Layer(layer.Theta, -layer.W), fresh, X) == 0.0
    with pytest.raises(InputError, match="every token of the test was in the examples"):
        unseen_accuracy(layer, layer, fresh, np.concatenate([fresh, X]))
    with pytest.raises(InputError, match="d must exceed"):
        hiding(4, 4, 0)
