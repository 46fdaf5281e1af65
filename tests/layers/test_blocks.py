"""Blocks bound the memory and change nothing."""

import numpy as np
import pytest

from attlas import features, layers, recovery, tokens
from attlas.aim import teacher
from attlas.layers import blocks


@pytest.mark.parametrize("name", ["attention", "mlp", "multi", "indices", "deep"])
def test_blocks_change_nothing(monkeypatch, name):
    """The block size bounds memory and must not be seen in the result beyond rounding."""
    X = tokens.sphere(11, 4, 5, 0)
    S = [teacher(5, 1.0, 1), teacher(5, 1.0, 2)]
    call = {
        "attention": lambda: layers.random_feature_attention(X, features.attention_heads(7, 5, 1)),
        "mlp": lambda: layers.random_feature_mlp(X, features.mlp_neurons(7, 4, 5, 1)),
        "multi": lambda: layers.multi_head_attention(X, *recovery.planted_layer(2, 5, 1)),
        "indices": lambda: layers.attention_indices(X, S[0]),
        "deep": lambda: layers.deep_attention(X, S),
    }[name]
    whole = call()
    monkeypatch.setattr(blocks, "BLOCK", 1)
    np.testing.assert_allclose(call(), whole, rtol=1e-12, atol=1e-14)
