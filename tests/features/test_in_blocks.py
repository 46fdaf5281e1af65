"""Estimators on arrays in blocks have the numbers of the same estimators in memory."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from attlas import tokens
from attlas.errors import InputError
from attlas.features import RandomAttentionClassifier, RandomAttentionRegressor, StandardTokens
from attlas.features.ridge import GRID

da = pytest.importorskip("dask.array")

X = tokens.sphere(120, 5, 4, 0)
X[::3, 4] = np.nan  # a token is missing
SCORE = np.nanmean(X[:, 1:, 0], axis=1) + 0.5 * X[:, 0, 1]
WEIGHT = np.random.default_rng(0).uniform(0.1, 2, 120)
BLOCKS = da.from_array(X, chunks=((50, 31, 39), 3, 4))


def blocks(y):
    return da.from_array(y, chunks=17)


@pytest.mark.parametrize("query", ["first", None, "mean"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_regressor(query, weight):
    model = RandomAttentionRegressor(20, query=query, solver="primal", random_state=0)
    y = np.stack([SCORE, SCORE**2], axis=1)
    expected = model.fit(X, y, weight)
    inside, errors, alpha = expected.predict(X), expected.loo_errors_, expected.alpha_
    given = None if weight is None else blocks(weight)
    found = RandomAttentionRegressor(20, query=query, random_state=0).fit(BLOCKS, blocks(y), given)
    assert (found.alpha_, found.solver_) == (alpha, "primal")
    amplified = np.finfo(np.float32).eps / np.array(GRID)  # rounding of float32 features, at small penalties
    assert (np.abs(found.loo_errors_ / errors - 1).max(1) < 1e-5 + amplified).all()
    predicted = found.predict(BLOCKS)
    assert predicted.chunks[0] == (50, 31, 39)
    np.testing.assert_allclose(predicted.compute(), inside, atol=1e-4)
    np.testing.assert_allclose(found.predict(X), inside, atol=1e-4)


def test_one_target_has_no_axis():
    model = RandomAttentionRegressor(20, random_state=0).fit(BLOCKS, blocks(SCORE))
    assert isinstance(model.intercept_, float)
    assert model.predict(BLOCKS).compute().shape == (120,)


LABELS = {
    "binary": np.where(SCORE > 0, "high", "low"),
    "multi-class": np.digitize(SCORE, [-0.1, 0.1]) * 10,
    "multi-label": np.stack([SCORE > 0, SCORE**2 > 0.02], axis=1).astype(int),
}


@pytest.mark.parametrize("kind", LABELS)
def test_a_classifier(kind):
    y = LABELS[kind]
    expected = RandomAttentionClassifier(20, solver="primal", random_state=0).fit(X, y)
    found = RandomAttentionClassifier(20, random_state=0).fit(BLOCKS, blocks(y))
    assert found.alpha_ == expected.alpha_
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_allclose(found.predict_proba(BLOCKS).compute(), expected.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(found.predict_log_proba(BLOCKS).compute(), np.log(found.predict_proba(X)), atol=1e-4)
    np.testing.assert_allclose(found.decision_function(BLOCKS).compute(), found.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(found.predict(BLOCKS).compute(), found.predict(X))


def test_what_cannot_be_done_in_blocks_is_a_sentence():
    y = blocks(SCORE)
    with pytest.raises(InputError, match="arrays in blocks like X"):
        RandomAttentionRegressor(5).fit(BLOCKS, SCORE)
    with pytest.raises(InputError, match="infinitely many heads"):
        RandomAttentionRegressor("infinite").fit(BLOCKS, y)
    with pytest.raises(InputError, match="'auto' or 'primal' for an array in blocks"):
        RandomAttentionRegressor(5, solver="dual").fit(BLOCKS, y)
    with pytest.raises(InputError, match="three axes"):
        RandomAttentionRegressor(5).fit(BLOCKS[:, 0], y)
    with pytest.raises(InputError, match="not finite"):
        RandomAttentionRegressor(5).fit(BLOCKS, blocks(np.where(SCORE > 0, np.nan, SCORE)))
    with pytest.raises(InputError, match="loss='ridge'"):
        RandomAttentionClassifier(5, loss="log").fit(BLOCKS, blocks(LABELS["binary"]))
    with pytest.raises(InputError, match="arrays in blocks like X"):
        RandomAttentionClassifier(5).fit(BLOCKS, LABELS["binary"])


def test_log_loss_predicts_blocks():
    model = RandomAttentionClassifier(20, loss="log", alpha=0.1, random_state=0).fit(X, LABELS["binary"])
    np.testing.assert_allclose(model.predict_proba(BLOCKS).compute(), model.predict_proba(X), atol=1e-6)


def test_single_precision_stays():
    small = BLOCKS.astype(np.float32)
    model = RandomAttentionRegressor(10, random_state=0).fit(small, blocks(SCORE))
    sorter = RandomAttentionClassifier(10, random_state=0).fit(small, blocks(LABELS["multi-class"]))
    for method in (model.predict, sorter.decision_function, sorter.predict_proba, sorter.predict_log_proba):
        found = method(small)
        assert found.dtype == found.compute().dtype == np.float32
        assert method(BLOCKS).compute().dtype == np.float64


def changed(values, entry):
    return np.where(np.arange(120) == 100, entry, values)


@pytest.mark.parametrize("model", [RandomAttentionRegressor(5), RandomAttentionClassifier(5)])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (changed(WEIGHT, -1.0), "sample_weight must be finite and at least 0; got -1"),
        (changed(WEIGHT, np.nan), "sample_weight must be finite and at least 0; got nan"),
        (0 * WEIGHT, "sample_weight is zero for all samples"),
        (changed(0 * WEIGHT, 1.0), "one positive weight only"),
        (WEIGHT[:90], "sample_weight must have shape .n,. with n = 120"),
        (WEIGHT[:, None], "sample_weight must have shape .n,. with n = 120"),
        (np.ma.masked_array(WEIGHT, WEIGHT > 1), "sample_weight is masked"),
        (np.array(["a"] * 120), "sample_weight must be real numbers"),
    ],
)
def test_bad_weights_in_blocks_are_a_sentence(model, weight, message):
    with pytest.raises(InputError, match=message):
        model.fit(BLOCKS, blocks((SCORE > 0).astype(int)), blocks(weight))


def test_bad_targets_in_blocks_are_a_sentence():
    for y, message in (
        (LABELS["binary"], "y must be numbers"),
        (np.ma.masked_array(SCORE, SCORE > 0), "y is masked"),
        (SCORE[:90], "X has 120 samples and y has 90"),
        (X, "y in blocks must have shape"),
    ):
        with pytest.raises(InputError, match=message):
            RandomAttentionRegressor(5).fit(BLOCKS, blocks(y))
    with pytest.raises(InputError, match="y is masked"):
        RandomAttentionClassifier(5).fit(BLOCKS, blocks(np.ma.masked_array(SCORE > 0, SCORE > 1)))


def test_labels_in_blocks_of_columns():
    y = LABELS["multi-label"]
    expected = RandomAttentionClassifier(10, random_state=0).fit(BLOCKS, blocks(y))
    found = RandomAttentionClassifier(10, random_state=0).fit(BLOCKS, da.from_array(y, chunks=(17, 1)))
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_rows_in_blocks_are_not_predicted():
    model = RandomAttentionRegressor(5, random_state=0).fit(BLOCKS, blocks(SCORE))
    with pytest.raises(InputError, match="three axes"):
        model.predict(BLOCKS[:, 0])


def test_blocks_without_sets_are_passed_over():
    kept = np.arange(120) >= 60
    mask, y = da.from_array(kept, chunks=((50, 31, 39),)), da.from_array(SCORE, chunks=((50, 31, 39),))
    expected = RandomAttentionRegressor(10, alpha=0.1, solver="primal", random_state=0).fit(X[kept], SCORE[kept])
    found = RandomAttentionRegressor(10, alpha=0.1, random_state=0).fit(BLOCKS[mask], y[mask])
    np.testing.assert_allclose(found.predict(BLOCKS[mask]).compute(), expected.predict(X[kept]), atol=1e-5)
    with pytest.raises(InputError, match="no set in any of its blocks"):
        RandomAttentionRegressor(10).fit(BLOCKS[mask & False], y[mask & False])
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        RandomAttentionRegressor(10).fit(BLOCKS[mask], y)


def test_an_empty_block_of_labels_has_the_width_of_the_others():
    keep = da.from_array(np.arange(120) < 100, chunks=20)  # the last block is empty, and its size unknown
    given, labels = da.from_array(X, chunks=(20, 5, 4))[keep], da.from_array(LABELS["multi-class"], chunks=20)[keep]
    found = RandomAttentionClassifier(20, random_state=0).fit(given, labels)
    expected = RandomAttentionClassifier(20, solver="primal", random_state=0).fit(X[:100], LABELS["multi-class"][:100])
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scaled_tokens_stay_in_blocks(dtype):
    moved = (100 * X + 30).astype(dtype)
    lazy = da.from_array(moved, chunks=((50, 0, 31, 39), 3, 4))
    expected, found = StandardTokens().fit(moved), StandardTokens().fit(lazy)
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=1e-12)
    np.testing.assert_allclose(found.var_, expected.var_, rtol=1e-12)
    assert found.n_tokens_seen_ == expected.n_tokens_seen_
    scaled = found.transform(lazy)
    assert (scaled.chunks[0], scaled.dtype) == ((50, 0, 31, 39), np.dtype(dtype))
    assert scaled.compute().dtype == dtype
    np.testing.assert_allclose(scaled.compute(), expected.transform(moved), atol=1e-5)
    np.testing.assert_allclose(found.inverse_transform(scaled).compute(), moved, atol=1e-4)  # entries up to 200
    twice = found.partial_fit(lazy)
    np.testing.assert_allclose(twice.var_, expected.var_, rtol=1e-12)
    assert twice.n_tokens_seen_ == 2 * expected.n_tokens_seen_
    with pytest.raises(InputError, match="dimension 3, the model was made for 4"):
        found.transform(lazy[:, :, :3]).compute()
    with pytest.raises(InputError, match="three axes"):
        found.transform(lazy[:, 0])


def test_a_pipeline_stays_in_blocks():
    model = make_pipeline(StandardTokens(), RandomAttentionRegressor(20, solver="primal", alpha=0.1, random_state=0))
    expected = model.fit(X, SCORE).predict(X)
    found = model.fit(BLOCKS, blocks(SCORE)).predict(BLOCKS)
    assert found.chunks[0] == (50, 31, 39)
    np.testing.assert_allclose(found.compute(), expected, atol=1e-5)
