"""Pooled features: the average over queries of the layer with one query."""

import numpy as np
import pytest

from attlas import features, layers, tokens
from attlas.errors import InputError
from attlas.layers import pooled_features


def average_over_queries(one, heads, activation, codes=0):
    found = []
    for x in one:
        asks = x.copy()
        asks[len(asks) - codes :] = 0
        found.append(layers.random_feature_attention(np.vstack([asks, one])[None], heads, activation)[0])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("activation", ["relu", "exp", "sigmoid", "softmax", np.cos])
@pytest.mark.parametrize("block", [1 << 23, 1 << 9])
def test_pooling_is_the_average_over_queries(activation, block, monkeypatch):
    monkeypatch.setattr(pooled_features, "BLOCK", block)
    monkeypatch.setattr(pooled_features, "_HEADS", 3)
    X, heads = tokens.sphere(6, 5, 3, 0), features.attention_heads(7, 3, 1, bias=0.5)
    lengths = [5, 1, 3, 4, 2, 5]
    present = np.arange(5) < np.array(lengths)[:, None]
    found = layers.pooled_feature_attention(X, heads, activation, present, codes=1)
    for k, x, own in zip(lengths, X, found, strict=True):
        np.testing.assert_allclose(own, average_over_queries(x[:k], heads, activation, 1), rtol=1e-12, atol=1e-14)
    whole = layers.pooled_feature_attention(X, heads, activation)
    np.testing.assert_allclose(whole[0], average_over_queries(X[0], heads, activation), rtol=1e-12, atol=1e-14)


def test_single_precision_stays():
    X, heads = tokens.sphere(6, 4, 3, 0), features.attention_heads(5, 3, 1)
    found = layers.pooled_feature_attention(X.astype(np.float32), heads)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, layers.pooled_feature_attention(X, heads), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"present": np.zeros((6, 4), bool)}, "none of the tokens in sequence 0"),
        ({"present": np.ones((6, 4))}, "present must be a boolean array"),
        ({"codes": 4}, "codes must be"),
        ({"activation": "gelu"}, "activation must be one of"),
        ({"heads": 1e300 * np.ones((5, 4, 4)), "X": np.ones((6, 4, 3), np.float32)}, "too large for the precision"),
    ],
)
def test_bad_input_is_one_sentence(options, message):
    given = {"X": np.ones((6, 4, 3)), "heads": np.ones((5, 4, 4))} | options
    with pytest.raises(InputError, match=message):
        layers.pooled_feature_attention(**given)
