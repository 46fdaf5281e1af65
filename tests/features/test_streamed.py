"""Batches: the same as one fit, and what is left out of them."""

import numpy as np
import pytest
from sklearn.base import clone

from attlas import tokens
from attlas.errors import InputError
from attlas.features import RandomAttentionClassifier, RandomAttentionRegressor, streamed
from attlas.numerics import stream

X = tokens.gaussian(150, 5, 3, 0)
Y = np.stack([X[:, 1:, 0].mean(1), X[:, 0, 1] ** 2], axis=1) + 3
LABELS = np.array(["a", "b", "c"])[np.argmax(X[:, 1:].mean(1), axis=1)]
WEIGHT = stream(0, "weight").integers(0, 3, 150).astype(float)
FRESH = tokens.gaussian(20, 5, 3, 1)
BATCHES = [slice(0, 1), slice(1, 40), slice(40, 150)]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighed"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["two", "one"])
def test_batches_are_one_fit(weight, intercept, y):
    model = RandomAttentionRegressor(8, alpha=0.1, fit_intercept=intercept, solver="primal", random_state=0)
    whole, batched = clone(model).fit(X, y, sample_weight=weight), clone(model)
    for part in BATCHES[1:] if weight is not None else BATCHES:
        batched.partial_fit(X[part], y[part], sample_weight=None if weight is None else weight[part])
    if weight is not None:
        whole = clone(model).fit(X[1:], y[1:], sample_weight=weight[1:])
    np.testing.assert_allclose(batched.intercept_, whole.intercept_, rtol=1e-12)
    np.testing.assert_allclose(batched.predict(FRESH), whole.predict(FRESH), atol=1e-4)
    assert batched.predict(FRESH).shape == y[:20].shape


def test_batches_of_labels_are_one_fit():
    model = RandomAttentionClassifier(8, alpha=0.1, solver="primal", random_state=0)
    whole, batched = clone(model).fit(X, LABELS), clone(model)
    for part in BATCHES:
        batched.partial_fit(X[part], LABELS[part], classes=["c", "b", "a"])
        np.testing.assert_allclose(batched.predict_proba(FRESH).sum(1), 1)
    np.testing.assert_array_equal(batched.classes_, ["a", "b", "c"])
    np.testing.assert_allclose(batched._scores(FRESH), whole._scores(FRESH), atol=1e-4)
    np.testing.assert_allclose(batched.predict_proba(FRESH), whole.predict_proba(FRESH), atol=1e-4)  # all are kept


@pytest.mark.parametrize("weight", [None, WEIGHT + 0.5], ids=["equal", "weighed"])
def test_a_penalty_is_chosen_by_leaving_kept_samples_out_of_all(weight, monkeypatch):
    """By fits to all samples but one, for ten of them."""
    monkeypatch.setattr(streamed, "KEPT", 10)
    alphas = [1e-2, 1.0]
    batched = RandomAttentionRegressor(6, alphas=alphas, random_state=0)
    batched.partial_fit(X[:30], Y[:30], sample_weight=None if weight is None else weight[:30])
    batched.partial_fit(X[30:120], Y[30:120], sample_weight=None if weight is None else weight[30:120])
    w = np.ones(120) if weight is None else weight[:120]
    F = batched._heads.on(X[:120]).by_rows[0][0].astype(float)
    scale = w @ np.sum(F * F, axis=1) / w.sum()
    kept = [int(np.flatnonzero((Y[:120] == one).all(1))[0]) for one in batched._sums.kept[1][:, :-1]]
    assert len(set(kept)) == 10
    assert min(kept) < 110  # of all samples, not the last
    for row, alpha in enumerate(alphas):
        errors = []
        for i in kept:
            rest = np.delete(np.arange(120), i)
            mean = w[rest] @ Y[rest] / w[rest].sum()
            A = F[rest].T @ (w[rest, None] * F[rest]) + alpha * scale * np.eye(F.shape[1])
            v = np.linalg.solve(A, F[rest].T @ (w[rest, None] * (Y[rest] - mean)))
            errors.append((F[i] @ v + mean - Y[i]) ** 2)
        expected = np.average(errors, axis=0, weights=w[kept])
        np.testing.assert_allclose(batched.loo_errors_[row], expected, rtol=1e-3)
    assert batched.alpha_ in alphas
    before = batched.loo_errors_
    batched.partial_fit(X[120:], Y[120:])
    assert batched.loo_errors_ is before  # samples have not doubled


def test_labels_on_their_own_come_in_batches_too():
    both = np.stack([LABELS == "a", LABELS == "b"], axis=1)
    model = RandomAttentionClassifier(8, alpha=0.1, random_state=0)
    for part in BATCHES[1:]:
        model.partial_fit(X[part], both[part])
    assert model.predict(FRESH).shape == (20, 2)
    assert model.score(X, both) > 0.5


def test_a_fit_starts_anew():
    model = RandomAttentionRegressor(8, alpha=0.1, solver="primal", random_state=0)
    once = clone(model).partial_fit(X[:50], Y[:50]).predict(FRESH)
    model.partial_fit(X[50:], Y[50:]).fit(X[50:], Y[50:])
    np.testing.assert_allclose(model.partial_fit(X[:50], Y[:50]).predict(FRESH), once)


def test_a_batch_that_fails_adds_nothing():
    model = RandomAttentionRegressor(8, alpha=0.1, activation="exp", random_state=0).partial_fit(X[:50], Y[:50])
    before = model.predict(FRESH)
    with pytest.raises(InputError, match="overflow"):
        model.partial_fit(100 * X[50:], Y[50:])
    model.partial_fit(X[:50], Y[:50])
    twice = clone(model).fit(np.repeat(X[:50], 2, 0), np.repeat(Y[:50], 2, 0)).predict(FRESH)
    np.testing.assert_allclose(model.predict(FRESH), twice, atol=1e-3 * np.abs(before).max())


def started():
    return RandomAttentionClassifier(8, alpha=0.1, random_state=0).partial_fit(X, LABELS, classes=["a", "b", "c"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomAttentionClassifier(8).partial_fit(X, LABELS), "classes must be given at the first call"),
        (lambda: RandomAttentionClassifier(8).partial_fit(X, LABELS[:, None]), "classes must be given at the first call"),
        (lambda: RandomAttentionClassifier(8, class_weight={"a": 0}).partial_fit(X[:1], ["a"], list("abc")), "no sample"),
        (lambda: RandomAttentionClassifier(8).partial_fit(X, LABELS, classes=["a", "b"]), "the label 'c', which is not"),
        (lambda: RandomAttentionClassifier(8).partial_fit(X, LABELS, classes=["a"]), "only one class"),
        (lambda: started().partial_fit(X, np.where(LABELS == "a", "z", "b")), "the label 'z', which is not"),
        (lambda: started().partial_fit(X, LABELS, classes=["a", "b"]), "classes differ from those of the first call"),
        (lambda: started().partial_fit(X[:, :, :2], LABELS), "dimension 2, the model was made for 3"),
        (lambda: RandomAttentionClassifier(8, class_weight="balanced").partial_fit(X, LABELS, ["a", "b", "c"]), "needs all"),
        (lambda: RandomAttentionRegressor(8).partial_fit(X, Y).partial_fit(X, Y[:, 0]), "in earlier batches"),
        (lambda: RandomAttentionRegressor(8).partial_fit(X, Y, sample_weight=np.zeros(150)), "zero for all samples"),
    ],
)  # fmt: skip
def test_bad_batches_are_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomAttentionRegressor("infinite"), "infinitely many heads have none"),
        (RandomAttentionRegressor(8, solver="dual"), "partial_fit is primal"),
        (RandomAttentionClassifier(8, loss="log"), "needs loss='ridge'"),
    ],
)
def test_models_without_sums_have_no_batches(model, message):
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(X, LABELS)
    assert message in str(caught.value.__cause__)


def test_kept_samples_stand_for_all_whatever_their_order():
    """Sorted by class, 4000 samples: the last thousand are of one class."""
    X = tokens.gaussian(4000, 5, 3, 2)
    truth = (X[:, :, 0].mean(1) > 0).astype(int)
    order = np.argsort(truth, kind="stable")
    model = RandomAttentionClassifier(30, random_state=0)
    for part in np.split(order, 8):
        model.partial_fit(X[part], truth[part], classes=[0, 1])
    share = (model._sums.kept[1][:, 0] > 0).mean()
    assert abs(share - truth.mean()) < 4 * np.sqrt(0.25 / 1000)
    whole = RandomAttentionClassifier(30, random_state=0).fit(X, truth)
    assert model.score(X, truth) > whole.score(X, truth) - 0.02


def test_class_weights_of_a_batch_of_one_sample():
    model = RandomAttentionClassifier(8, alpha=0.1, class_weight={"a": 2.0}, solver="primal", random_state=0)
    whole = clone(model).fit(X, LABELS)
    for part in (slice(0, 1), slice(1, None)):
        model.partial_fit(X[part], LABELS[part], classes=["a", "b", "c"])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-3, atol=1e-5 * np.abs(whole.coef_).max())
