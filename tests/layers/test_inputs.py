"""What the layers refuse, in one sentence each."""

import numpy as np
import pytest

from attlas import layers
from attlas.errors import InputError

GOOD = np.ones((2, 3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.random_feature_attention(GOOD[0], np.ones((1, 5, 5))), r"3 axes \(n, 1 \+ keys, d\)"),
        (lambda: layers.random_feature_attention(GOOD[:, :1], np.ones((1, 5, 5))), "at least one key"),
        (lambda: layers.random_feature_attention(GOOD, np.ones((1, 4, 4))), r"axis 1 \(d \+ 1\) must be 5; got 4"),
        (lambda: layers.random_feature_attention(GOOD * np.nan, np.ones((1, 5, 5))), "not finite"),
        (lambda: layers.random_feature_attention(GOOD, np.ones((1, 5, 5)), "gelu"), "one of relu, exp, .* or a function"),
        (lambda: layers.random_feature_attention(GOOD, 1e4 * np.ones((1, 5, 5)), "exp"), "exp overflows"),
        (lambda: layers.random_feature_mlp(GOOD, np.ones((2, 12))), r"must be 13; got 12"),
        (lambda: layers.multi_head_attention(GOOD, np.ones((1, 3, 3)), np.ones((1, 4, 4))), "must be 4; got 3"),
        (lambda: layers.multi_head_attention(GOOD, np.ones((2, 4, 4)), np.ones((1, 4, 4))), "must be 2; got 1"),
        (lambda: layers.attention_indices(GOOD, np.triu(np.ones((4, 4)))), "must be symmetric"),
        (lambda: layers.attention_indices(GOOD, np.eye(3)), "must be 4; got 3"),
        (lambda: layers.deep_attention(GOOD, []), "S must have 3 axes"),
        (lambda: layers.deep_attention(GOOD, None), "S must be real numbers"),
        (lambda: layers.deep_attention(GOOD, [[1], [1, 2]]), "rows of unequal length"),
        (lambda: layers.hardmax([np.nan, 1.0]), "without NaN"),
        (lambda: layers.softmax([[np.nan, 1.0]]), "without NaN"),
        (lambda: layers.random_feature_attention(GOOD, np.ones((1, 5, 5)), ["relu"]), "one of relu"),
        (lambda: layers.random_feature_attention(GOOD.astype("f4"), 1e60 * np.ones((1, 5, 5))), "too large for the"),
        (lambda: layers.softmax(GOOD, 0.0), "beta must be"),
        (lambda: layers.attention_indices(np.array([["a"]]), np.eye(1)), "real numbers"),
        (lambda: layers.attention_indices(np.ones((0, 2, 3)), np.eye(3)), "is empty"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
