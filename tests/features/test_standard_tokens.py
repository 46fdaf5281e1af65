"""Scaled tokens: against scikit-learn's scaler on all tokens end to end, in every kind of container."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from attlas.errors import InputError
from attlas.features import RandomAttentionRegressor, Sets, StandardTokens

from .test_sets import D, objects, padded, some_sets

SETS = [100 * one + [1000.0, 0.0, 3.0] for one in some_sets(least=1)]
ALL = np.concatenate(SETS)
SCALED = StandardScaler().fit_transform(ALL)


@parametrize_with_checks([StandardTokens()])
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


def tokens_of(X):
    if isinstance(X, Sets):
        return X.tokens
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return X[~np.isnan(X[:, :, 0])]
    return tokens_of(X.reshape(len(X), -1, D)) if X[0].ndim == 1 else np.concatenate(list(X))


@pytest.mark.parametrize(
    "kind", [list, tuple, objects, padded, Sets.of, lambda sets: padded(sets).reshape(len(sets), -1)]
)
def test_it_is_the_scaler_of_all_tokens(kind):
    X = kind(SETS)
    model = StandardTokens(token_dim=D if getattr(X, "ndim", 0) == 2 else None).fit(X)
    found = model.transform(X)
    assert type(found) is type(X)
    assert getattr(found, "shape", None) == getattr(X, "shape", None)
    assert getattr(found, "dtype", None) == getattr(X, "dtype", None)
    np.testing.assert_allclose(tokens_of(found), SCALED, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(tokens_of(model.inverse_transform(found)), ALL, rtol=1e-12, atol=1e-10)
    assert model.n_tokens_seen_ == len(ALL)


def test_sets_of_one_size_keep_their_container():
    X = [one[:1] for one in SETS]
    assert isinstance(StandardTokens().fit_transform(X), list)
    assert isinstance(StandardTokens().fit_transform(Sets.of(X)), Sets)


def test_in_parts():
    whole, parts = StandardTokens().fit(SETS), StandardTokens()
    for start in (0, 7, 30):
        parts.partial_fit(SETS[start : {0: 7, 7: 30, 30: None}[start]])
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-13)
    np.testing.assert_allclose(parts.var_, whole.var_, rtol=1e-11)
    np.testing.assert_array_equal(parts.fit(SETS).mean_, whole.mean_)


def test_constant_coordinates_are_left_alone():
    sets = [np.column_stack([one[:, 0], np.full(len(one), 0.1)]) for one in SETS]
    model = StandardTokens().fit(sets)
    np.testing.assert_array_equal(np.concatenate(model.transform(sets))[:, 1], 0.1)
    model.partial_fit([[[0.0, 7.0]]])
    assert abs(np.concatenate(model.transform([*sets, [[0.0, 7.0]]]))[:, 1].mean()) < 1e-12


def test_single_precision_stays():
    found = StandardTokens().fit_transform([one.astype(np.float32) for one in SETS])
    assert {one.dtype for one in found} == {np.dtype("float32")}
    np.testing.assert_allclose(np.concatenate(found), SCALED, atol=1e-5)


def test_pipelines():
    """Tokens in other units, scaled back by the pipeline, give the scores that the tokens themselves give."""
    sets = some_sets(60)
    y = np.array([one[1:, 0].mean() for one in sets])
    model = make_pipeline(StandardTokens(), RandomAttentionRegressor(30, alpha=1e-3, random_state=0))
    plain, moved = (cross_val_score(model, X, y, cv=3) for X in (sets, [1e4 * one + 1e5 for one in sets]))
    np.testing.assert_allclose(moved, plain, atol=1e-3)
    np.testing.assert_allclose(cross_val_score(model, padded(sets), y, cv=3), plain, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StandardTokens().fit([*SETS, np.empty((0, D))]), "set 40 is empty"),
        (lambda: StandardTokens().fit([1e200 * one for one in SETS]), "squares overflow"),
        (lambda: StandardTokens().fit(SETS).partial_fit([np.ones((2, 5))]), "the model was made for 3"),
        (lambda: StandardTokens().fit(SETS).transform([np.ones((2, 5))]), "the model was made for 3"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_an_iterator_is_gone_through_once():
    np.testing.assert_allclose(np.concatenate(StandardTokens().fit(SETS).transform(iter(SETS))), SCALED, rtol=1e-10)


@pytest.mark.parametrize("kind", [list, padded, Sets.of])
def test_a_setting_of_scikit_learn_makes_no_data_frame_of_sets(kind):
    with config_context(transform_output="pandas"):
        found = StandardTokens().fit_transform(kind(SETS))
    np.testing.assert_allclose(tokens_of(found), SCALED, rtol=1e-10, atol=1e-12)
