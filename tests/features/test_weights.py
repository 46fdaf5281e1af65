"""Weights of samples and of classes, accepted and refused."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from attlas import tokens
from attlas.errors import InputError
from attlas.features import RandomAttentionClassifier, RandomAttentionRegressor
from attlas.features.weights import class_weights, sample_weights

X = tokens.gaussian(6, 3, 2, 0)
Y = np.arange(6) % 2


def test_equal_weights_are_none():
    assert sample_weights(None, 3) is None
    assert sample_weights([1, 1, 1], 3) is None
    assert sample_weights(1.0, 3) is None
    np.testing.assert_array_equal(sample_weights([True, False, True], 3), [1, 0, 1])
    np.testing.assert_array_equal(sample_weights(2, 3), [2, 2, 2])


def test_balanced_is_scikit_learns():
    index = np.array([0, 0, 0, 2, 1, 2])
    found = class_weights("balanced", np.arange(3), index, None)
    np.testing.assert_allclose(found, compute_sample_weight("balanced", index))
    w = np.array([1.0, 2, 0, 1, 3, 1])
    totals = np.bincount(index, class_weights("balanced", np.arange(3), index, w))
    np.testing.assert_allclose(totals, w.sum() / 3)


@pytest.mark.parametrize("model", [RandomAttentionRegressor(5), RandomAttentionClassifier(5)])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([-1, 1, 1, 1, 1, 1], "sample_weight must be finite and at least 0; got -1"),
        ([np.nan, 1, 1, 1, 1, 1], "sample_weight must be finite and at least 0; got nan"),
        ([np.inf, 1, 1, 1, 1, 1], "sample_weight must be finite"),
        ([1, 1], "one weight per sample; got"),
        (np.ones((6, 2)), "one weight per sample; got"),
        (np.zeros(6), "zero for all samples"),
        ([1, 0, 0, 0, 0, 0], "one positive weight only"),
        (["a"] * 6, "sample_weight must be real numbers"),
        (np.ma.masked_array(np.ones(6), np.arange(6) > 3), "sample_weight is masked"),
        ([1e300] * 6, "must lie between"),
    ],
)  # fmt: skip
def test_bad_weights_are_one_sentence(model, weight, message):
    with pytest.raises(InputError, match=message):
        model.fit(X, Y, sample_weight=weight)
