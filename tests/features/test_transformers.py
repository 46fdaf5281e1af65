"""Features as scikit-learn transformers: its manners, padding and order of keys, what is refused."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from attlas import tokens
from attlas.errors import InputError
from attlas.features import RandomAttentionFeatures, RandomMLPFeatures, targets

X = tokens.sphere(60, 5, 4, 0)
y = targets.Correlation(1)(X)


@parametrize_with_checks(
    [
        RandomAttentionFeatures(n_heads=5),
        RandomMLPFeatures(n_heads=3),
    ]
)
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


@pytest.mark.parametrize("activation", ["relu", "exp", "softmax"])
def test_padding_and_order_of_keys_change_nothing(activation):
    Phi = RandomAttentionFeatures(20, activation=activation, random_state=0).fit(X)
    F = Phi.transform(X)
    np.testing.assert_allclose(Phi.transform(X[:, [0, 4, 2, 1, 3]]), F, atol=1e-13)
    padded = np.concatenate([X, np.full((60, 3, 4), np.nan)], axis=1)
    np.testing.assert_allclose(Phi.transform(padded), F, atol=1e-13)


def test_equal_number_of_trained_numbers():
    assert RandomMLPFeatures(n_heads=7).fit_transform(X).shape == RandomAttentionFeatures(7).fit_transform(X).shape


def test_pipelines_and_workers():
    pipeline = make_pipeline(RandomAttentionFeatures(30, random_state=0), Ridge(1e-3))
    assert cross_val_score(pipeline, X, y, cv=3, n_jobs=2).shape == (3,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomMLPFeatures(5).fit(X).transform(np.where(np.arange(5)[:, None] > 3, np.nan, X)), "missing tokens"),
        (lambda: RandomAttentionFeatures(20, dtype="int64").fit(X), "dtype must be"),
        (lambda: RandomMLPFeatures(n_heads=0).fit(X), "n_heads"),
        (lambda: RandomMLPFeatures(n_heads=2).fit(X).transform(X[:, :3]), "3 tokens to a sequence"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message), np.errstate(all="ignore"):
        call()
