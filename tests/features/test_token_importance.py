"""Importance of tokens by brute force."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import RandomAttentionClassifier, RandomAttentionRegressor, token_importance
from attlas.features.sets import Sets

X = tokens.gaussian(60, 5, 3, 0)
Y = np.stack([X[:, 1:, 0].mean(1), X[:, 0, 1]], axis=1)
LABELS = np.argmax(X[:, 1:].mean(1), axis=1)
SETS = X[:7].copy()
SETS[2, 3] = SETS[4, 2:] = np.nan  # the fifth has a query and one key

MODELS = {
    "regressor": RandomAttentionRegressor(10, alpha=0.1, random_state=0).fit(X, Y[:, 0]),
    "two targets": RandomAttentionRegressor("infinite", alpha=0.1).fit(X, Y),
    "positions": RandomAttentionRegressor(10, alpha=0.1, positions=1.0, random_state=0).fit(X, Y[:, 0]),
    "binary": RandomAttentionClassifier(10, query="first", alpha=0.1, random_state=0).fit(X, LABELS > 0),
    "classes": RandomAttentionClassifier(10, query="first", alpha=0.1, random_state=0).fit(X, LABELS),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("numbers", [1 << 22, 1], ids=["at once", "one by one"])
def test_every_token_is_left_out_in_turn(name, numbers, monkeypatch):
    monkeypatch.setattr(token_importance, "NUMBERS", numbers)
    model = MODELS[name]
    output = model.decision_function if hasattr(model, "decision_function") else model.predict
    found = model.token_importance(SETS)
    full = output(SETS)
    assert found.shape == (*SETS.shape[:2], *full.shape[1:])
    for i, tokens_of_set in enumerate(SETS):
        for j in range(5):
            rest = tokens_of_set.copy()
            rest[j] = np.nan
            if j == 0 or np.isnan(SETS[i, j, 0]) or i == 4:
                assert np.isnan(found[i, j]).all()  # the query, a missing token, the only key
            else:
                np.testing.assert_allclose(found[i, j], full[i] - output(rest[None])[0], atol=1e-5)


def test_lists_of_sets_and_rows():
    model = MODELS["regressor"]
    expected = model.token_importance(SETS[:2])
    listed = model.token_importance(list(SETS[:2]))
    assert isinstance(listed, list)
    np.testing.assert_allclose(listed, expected)
    rows = RandomAttentionRegressor(10, alpha=0.1, token_dim=3, random_state=0).fit(X.reshape(60, -1), Y[:, 0])
    np.testing.assert_allclose(rows.token_importance(SETS[:2].reshape(2, -1)), expected)
    with pytest.raises(InputError, match="one token per sample"):
        RandomAttentionRegressor(10).fit(X[:, 0], Y[:, 0]).token_importance(X[:2, 0])


def test_the_token_that_decides_is_found():
    """One key holds a large entry, and the target is the mean of that entry."""
    rng = np.random.default_rng(0)
    A = 0.1 * rng.normal(size=(200, 6, 3))
    where = rng.integers(1, 6, 200)
    A[np.arange(200), where, 0] += 2 * rng.normal(size=200)
    model = RandomAttentionRegressor(100, random_state=0).fit(A, A[:, 1:, 0].mean(1))
    found = np.nanargmax(np.abs(model.token_importance(A)), axis=1)
    decided = np.abs(A[np.arange(200), where, 0]) > 1
    assert np.mean(found[decided] == where[decided]) > 0.95


@pytest.mark.parametrize("query", [None, "mean", "first"])
@pytest.mark.parametrize("heads", [10, "infinite"])
def test_sets_of_any_size(query, heads):
    """Without a query any token can be left out, but not the only one."""
    rng = np.random.default_rng(0)
    least = 2 if query == "first" else 1
    sets = [rng.normal(size=(k, 3)) for k in (least, 4, 3, 4, 5, 6) * 5]
    y = [one[:, 0].mean() for one in sets]
    model = RandomAttentionRegressor(heads, query=query, alpha=0.1, random_state=0).fit(sets, y)
    found = model.token_importance(sets[:6])
    assert isinstance(found, list)
    full = model.predict(sets[:6])
    for i, one in enumerate(sets[:6]):
        assert found[i].shape == (len(one),)
        for j in range(len(one)):
            if len(one) == least or (query == "first" and j == 0):
                assert np.isnan(found[i][j])
            else:
                rest = [np.delete(one, j, axis=0)]
                assert found[i][j] == pytest.approx(full[i] - model.predict(rest)[0], abs=1e-5)
    for given in (Sets.of(sets[:6]), np.array([*sets[:6], None], dtype=object)[:6]):
        for a, b in zip(model.token_importance(given), found, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_set_may_lack_its_first_token_if_nothing_asks():
    model = RandomAttentionRegressor(10, query=None, positions=1.0, alpha=0.1, random_state=0).fit(X, Y[:, 0])
    found, full = model.token_importance(SETS), model.predict(SETS)
    rest = SETS.copy()
    rest[:, 0] = np.nan
    np.testing.assert_allclose(found[:, 0], full - model.predict(rest), atol=1e-5)


def test_single_precision_stays():
    small = SETS.astype(np.float32)
    for name, model in MODELS.items():
        assert model.token_importance(small).dtype == np.float32, name
    assert all(one.dtype == np.float32 for one in MODELS["regressor"].token_importance(list(small)))


def test_sets_of_an_iterator():
    expected = MODELS["regressor"].token_importance(list(X[:4]))
    found = MODELS["regressor"].token_importance(one for one in X[:4])
    assert len(found) == 4
    np.testing.assert_array_equal(found, expected)


class Ragged:
    """A ragged array of another library: it has axes, and numpy cannot make one array of it."""

    ndim = 3

    def __init__(self, items):
        self.items = items

    def to_list(self):
        return [one.tolist() for one in self.items]

    def __array__(self, *args, **kwargs):
        raise ValueError("lengths are not regular")


def test_ragged_arrays_of_other_libraries():
    sets = [X[0], X[1, :3], X[2, :2]]
    model = MODELS["regressor"]
    for one, expected in zip(model.token_importance(Ragged(sets)), model.token_importance(sets), strict=True):
        np.testing.assert_array_equal(one, expected)
