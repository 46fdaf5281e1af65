"""The classifier: scikit-learn's manners, probabilities, weights, labels of any kind, what is refused."""

import pickle
from datetime import date

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from attlas.errors import InputError
from attlas.features import RandomAttentionClassifier, RandomAttentionRegressor, attention_kernel, logistic
from attlas.features.calibration import calibrate
from attlas.features.sets import Sets
from attlas.numerics import stream

LEFT_OUT_WHOLE = (
    "probabilities and the penalty come from leaving samples out: a sample of weight two is left out whole, one of two equal"
    " samples is not"
)
ROUNDED = (
    "features are float32, and some processors round them otherwise where there are more rows: the check asks for 1e-7"
)


def reasons(model):
    """Return the checks that cannot hold."""
    fixed = model.loss == "log" and model.alpha != "loo"
    return {} if fixed else {"check_sample_weight_equivalence_on_dense_data": LEFT_OUT_WHOLE}


@parametrize_with_checks(
    [
        RandomAttentionClassifier(n_heads=20, random_state=0),
        RandomAttentionClassifier(n_heads=4, solver="primal", alpha=0.1, random_state=0),
        RandomAttentionClassifier(n_heads="infinite"),
        RandomAttentionClassifier(n_heads="infinite", loss="log", alpha=1.0),
        RandomAttentionClassifier(n_heads=10, loss="log", solver="primal", alpha=1.0, random_state=0),
        RandomAttentionClassifier(n_heads=10, loss="log", alphas=[0.1, 1.0], random_state=0),
    ],
    expected_failed_checks=reasons,
)
def test_what_scikit_learn_expects(estimator, check):
    if check.func.__name__ in reasons(clone(estimator).set_params(loss="ridge")) and estimator.solver == "primal":
        pytest.skip(ROUNDED)  # `test_weights_are_repeats` holds it, to float32
    check(estimator)


def problem(n, seed, scale=4.0, classes=2):
    """Return sequences, labels drawn with known probabilities, and these."""
    rng = stream(seed, "problem")
    X = rng.normal(size=(n, 5, 3))
    scores = scale * np.stack([0 * X[:, 0, 0], X[:, 1:, 0].mean(1), (X[:, 1:, 1] * X[:, 1:, 2]).mean(1)], axis=1)
    P = softmax(scores[:, :classes], axis=1)
    return X, (rng.random((n, 1)) > P.cumsum(1)).sum(1), P


X, y, _ = problem(80, 0)
Y3 = problem(80, 0, classes=3)[1]
FRESH = problem(30, 1)[0]


def one_hot(labels):
    return 2.0 * (labels[:, None] == np.unique(labels)) - 1.0


@pytest.mark.parametrize(("heads", "solver"), [(30, "dual"), (4, "primal"), ("infinite", "dual")])
def test_ridge_fits_codes_as_a_regressor_does(heads, solver):
    for labels, codes in ((y, 2.0 * y - 1), (Y3, one_hot(Y3))):
        options = {"solver": solver, "alphas": [1e-2, 1.0], "random_state": 0, "query": "first"}
        model = RandomAttentionClassifier(heads, **options).fit(X, labels)
        peer = RandomAttentionRegressor(heads, **options).fit(X, codes)
        scores = peer.predict(FRESH).reshape(len(FRESH), -1)
        expected = model.calibration_.slope * scores + model.calibration_.shift
        np.testing.assert_allclose(model.decision_function(FRESH).reshape(expected.shape), expected, atol=1e-6)
        np.testing.assert_allclose(model.loo_errors_, peer.loo_errors_.reshape(2, -1), rtol=1e-9)
        assert model.alpha_ == peer.alpha_


def test_probabilities_agree_with_decisions_and_labels():
    for labels in (np.array(["no", "yes"])[y], np.array(["b", "c", "a"])[Y3]):
        for loss in ("ridge", "log"):
            model = RandomAttentionClassifier(30, loss=loss, alpha=0.1, random_state=0).fit(X, labels)
            P, z = model.predict_proba(FRESH), model.decision_function(FRESH)
            np.testing.assert_array_equal(model.classes_, np.unique(labels))
            np.testing.assert_allclose(P, softmax(z, axis=1) if z.ndim == 2 else np.stack([expit(-z), expit(z)], 1))
            np.testing.assert_array_equal(model.predict(FRESH), model.classes_[P.argmax(1)])
            np.testing.assert_array_equal(model.predict_log_proba(FRESH), np.log(P))
            assert model.score(X, labels) > np.unique(labels, return_counts=True)[1].max() / 80 + 0.1


def test_scores_are_calibrated_by_leaving_samples_out_by_hand():
    """Leave-one-out scores by one fit each, with the mean of all codes, then one slope and shifts by scipy."""
    K = attention_kernel(X)
    model = RandomAttentionClassifier("infinite", alpha=0.1, query="first").fit(X, Y3)
    codes = one_hot(Y3)
    peer, left_out = KernelRidge(alpha=0.1 * np.trace(K) / len(X), kernel="precomputed"), np.empty_like(codes)
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        peer.fit(K[np.ix_(rest, rest)], codes[rest] - codes[rest].mean(0))
        left_out[i] = peer.predict(K[i : i + 1, rest])[0] + codes.mean(0)
    expected = calibrate(left_out, codes, exclusive=True)
    np.testing.assert_allclose(model.calibration_.slope, expected.slope, rtol=1e-4)
    np.testing.assert_allclose(np.diff(model.calibration_.shift), np.diff(expected.shift), rtol=1e-4)


def calibration_error(p, hit, bins=10):
    """Return the mean gap between predicted and met frequencies, over bins of equally many samples."""
    parts = np.array_split(np.argsort(p), bins)
    return float(np.mean([abs(p[part].mean() - hit[part].mean()) for part in parts]))


def test_probabilities_are_as_calibrated_as_those_of_logistic_regression():
    """Whose features are the very statistic that made the labels, so that its probabilities are of the right form."""
    errors = []
    for seed in range(6):
        A, labels, _ = problem(300, seed)
        B, hits, P = problem(4000, 100 + seed)
        own = RandomAttentionClassifier(100, random_state=seed).fit(A, labels).predict_proba(B)[:, 1]
        peer = LogisticRegression().fit(A[:, 1:].mean(1), labels).predict_proba(B[:, 1:].mean(1))[:, 1]
        errors.append([calibration_error(p, hits) for p in (own, peer, P[:, 1])])
    own, peer, chance = np.mean(errors, axis=0)
    assert own < peer + 0.02
    assert chance < 0.03  # 4000 samples with their true probabilities


def test_training_scores_would_be_overconfident():
    """At a penalty under which the fit nearly interpolates, left-out scores know it and training scores do not."""
    for seed in range(3):
        A, labels, _ = problem(300, seed)
        B, hits, _ = problem(4000, 100 + seed)
        model = RandomAttentionClassifier(100, alpha=0.01, random_state=seed).fit(A, labels)
        trained = calibrate(model._scores(A), 2.0 * labels[:, None] - 1)
        own, wrong = model.predict_proba(B)[:, 1], expit(trained(model._scores(B))[:, 0])
        assert trained.slope[0] > 2 * model.calibration_.slope[0]
        assert calibration_error(own, hits) < 0.5 * calibration_error(wrong, hits)


def test_where_nothing_can_be_learned_probabilities_are_near_frequencies():
    """By the mean divergence from the true 0.3, over problems; training scores would be believed."""
    divergences = []
    for seed in range(8):
        rng = stream(seed, "coin")
        A, labels = rng.normal(size=(200, 5, 3)), (rng.random(200) < 0.3).astype(int)
        model = RandomAttentionClassifier(50, random_state=0).fit(A, labels)
        trained = calibrate(model._scores(A), 2.0 * labels[:, None] - 1)
        found = [model.predict_proba(FRESH)[:, 1], expit(trained(model._scores(FRESH))[:, 0])]
        divergences.append([np.mean(0.3 * np.log(0.3 / p) + 0.7 * np.log(0.7 / (1 - p))) for p in found])
    own, believed = np.mean(divergences, axis=0)
    assert own < 0.02
    assert own < 0.5 * believed


def test_labels_on_their_own_are_classifiers_on_their_own():
    labels = np.stack([y, Y3 > 0, np.zeros(80, int)], axis=1)
    for loss in ("ridge", "log"):
        model = RandomAttentionClassifier(30, loss=loss, alpha=0.1, random_state=0)
        both = clone(model).fit(X, labels)
        assert both.predict_proba(FRESH).shape == both.decision_function(FRESH).shape == (30, 3)
        assert set(np.unique(both.predict(FRESH))) == {0, 1}
        assert both.predict_proba(FRESH)[:, 2].max() < 0.1
        for column in (0, 1):
            single = clone(model).fit(X, labels[:, column])
            np.testing.assert_allclose(
                both.predict_proba(FRESH)[:, column], single.predict_proba(FRESH)[:, 1], atol=1e-5
            )


@pytest.mark.parametrize("kind", [str, bool, float, "object", "datetime64[D]", "category"])
def test_labels_of_any_kind(kind):
    labels = pd.Series(np.array(["a", "b"])[y], dtype="category") if kind == "category" else y.astype(kind)
    model = RandomAttentionClassifier(10, alpha=0.1, random_state=0).fit(X, labels)
    expected = RandomAttentionClassifier(10, alpha=0.1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(FRESH), model.classes_[expected.predict(FRESH)])
    assert model.predict(FRESH).dtype == model.classes_.dtype
    assert model.score(X, labels) == expected.score(X, y)


def test_the_score_is_the_share_of_samples_that_get_their_own_labels():
    """Dates and integers among objects are labels, though scikit-learn's accuracy_score does not know them."""
    weight = np.arange(80.0)
    dates = [date(2020 + label, 1, 1) for label in Y3]
    model = RandomAttentionClassifier(10, alpha=0.1, random_state=0).fit(X, dates)
    known = clone(model).fit(X, Y3)
    assert model.score(X, dates, weight) == accuracy_score(Y3, known.predict(X), sample_weight=weight)
    assert known.score(X, Y3.astype(object)) == accuracy_score(Y3, known.predict(X))
    np.testing.assert_array_equal(*(cross_val_score(model, X, labels, cv=KFold(2)) for labels in (dates, Y3)))
    labels = np.stack([y, Y3 == 1], axis=1).astype(int)
    several = clone(model).fit(X, labels)
    assert several.score(X, labels) == accuracy_score(labels, several.predict(X)) < several.score(X, several.predict(X))
    with pytest.raises(InputError, match=r"y must have shape \(80, 2\)"):
        several.score(X, y)


@pytest.mark.parametrize("loss", ["ridge", "log"])
def test_weights_are_repeats(loss):
    """Of log-odds for the log loss, of scores for ridge: what is left out differs."""
    weight = stream(0, "weights").integers(0, 4, 80)
    for heads, solver in (("infinite", "dual"), (4, "primal")):
        model = RandomAttentionClassifier(heads, loss=loss, alpha=0.1, solver=solver, random_state=0)
        weighed = clone(model).fit(X, Y3, sample_weight=weight)
        repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(Y3, weight))
        np.testing.assert_allclose(weighed._scores(FRESH), repeated._scores(FRESH), atol=1e-4)


def test_class_weights_are_weights_of_samples():
    rare = np.where(y & (np.arange(80) % 4 == 0), "rare", "many")
    counts = {name: np.sum(rare == name) for name in ("rare", "many")}
    balanced = np.array([80 / (2 * counts[name]) for name in rare])
    for loss in ("ridge", "log"):
        model = RandomAttentionClassifier(20, loss=loss, alpha=1.0, random_state=0)
        by_hand = clone(model).fit(X, rare, sample_weight=balanced).predict_proba(FRESH)
        for given in ("balanced", {"rare": 40 / counts["rare"], "many": 40 / counts["many"]}):
            found = clone(model).set_params(class_weight=given).fit(X, rare).predict_proba(FRESH)
            np.testing.assert_allclose(found, by_hand, atol=1e-6)
        assert by_hand[:, 1].mean() > clone(model).fit(X, rare).predict_proba(FRESH)[:, 1].mean() + 0.1


def test_searches_pipelines_copies_and_pickles():
    labels = np.array(["no", "yes"])[y]
    model = RandomAttentionClassifier(10, random_state=0)
    assert GridSearchCV(model, {"loss": ["ridge", "log"], "alpha": [0.1, 1.0]}, cv=3).fit(X, labels).best_score_ > 0.6
    P = cross_val_predict(model, X, labels, cv=3, method="predict_proba")
    assert P.shape == (80, 2)
    np.testing.assert_allclose(P.sum(1), 1)
    piped = make_pipeline(FunctionTransformer(lambda Z: 2 * Z), model).fit(X, labels)
    np.testing.assert_array_equal(piped.predict_proba(FRESH), clone(model).fit(2 * X, labels).predict_proba(2 * FRESH))
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(X, labels)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def test_sets_as_they_come():
    """Lists of sets of any size, padded arrays and `Sets` are the same; a query of one's own changes the features."""
    rng = stream(0, "sets")
    sets = [rng.normal(size=(k, 3)) for k in rng.integers(1, 9, 60)]
    labels = np.array(["low", "high"])[[int(one[:, 0].mean() > 0) for one in sets]]
    padded = np.full((60, 8, 3), np.nan)
    for row, one in zip(padded, sets, strict=True):
        row[: len(one)] = one
    for options in ({"n_heads": 20}, {"n_heads": 20, "loss": "log"}, {"n_heads": "infinite"}, {"query": "mean"}):
        model = RandomAttentionClassifier(**{"n_heads": 20, "alpha": 0.1, "random_state": 0} | options).fit(
            sets, labels
        )
        assert model.score(sets, labels) > 0.8
        for given in (padded, Sets.of(sets)):
            np.testing.assert_allclose(model.predict_proba(given), model.predict_proba(sets), atol=1e-5)
    batched = RandomAttentionClassifier(20, alpha=0.1, random_state=0).partial_fit(
        sets[:30], labels[:30], ["low", "high"]
    )
    assert batched.partial_fit(sets[30:], labels[30:]).score(sets, labels) > 0.8


def test_single_precision_in_single_precision_out():
    small = X.astype("float32")
    model = RandomAttentionClassifier(10, alpha=0.1, random_state=0).fit(small, y)
    for method in ("predict_proba", "decision_function", "predict_log_proba"):
        assert getattr(model, method)(small).dtype == np.float32
        assert getattr(model, method)(X).dtype == np.float64
    assert model.predict_proba(list(small)).dtype == np.float32


def test_conjugate_gradients_are_calibrated_on_the_samples_they_held_out():
    A, labels, _ = problem(400, 0)
    models = [
        RandomAttentionClassifier(20, solver=solver, random_state=0).fit(A, labels) for solver in ("cg", "primal")
    ]
    slopes = [model.calibration_.slope[0] for model in models]
    assert 0.3 < slopes[0] / slopes[1] < 3
    assert np.abs(models[0].predict_proba(FRESH) - models[1].predict_proba(FRESH)).mean() < 0.1


def test_a_log_loss_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(logistic, "MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps") as caught:
        RandomAttentionClassifier(10, loss="log", alpha=0.1, random_state=0).fit(X, y)
    assert caught[0].filename == __file__  # the line that called fit


def fitted(labels=y, **options):
    return RandomAttentionClassifier(5, random_state=0, **options).fit(X, labels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted(np.zeros(80)), "only one class, 0.0; a classifier needs at least two classes"),
        (lambda: fitted(y + 0.5), "Unknown label type: continuous"),
        (lambda: fitted(np.where(y, np.nan, 1.0)), "not finite numbers"),
        (lambda: fitted([None, "a"] * 40), "missing labels"),
        (lambda: fitted([np.nan, "a"] * 40), "missing labels"),
        (lambda: fitted(pd.Series([pd.NA, "a"] * 40)), "missing labels"),
        (lambda: fitted([1, "a"] * 40), "mixes strings"),
        (lambda: fitted(np.array([1, "a"] * 40, dtype=object)), "cannot be sorted"),
        (lambda: fitted(y[:9]), "with n = 80; got"),
        (lambda: fitted(None), "requires y to be passed"),
        (lambda: fitted(np.ones((80, 2)) + y[:, None]), "zeros and ones, a column per label"),
        (lambda: fitted(np.ma.masked_array(y, y > 0)), "masked"),
        (lambda: fitted(1j * y), "complex"),
        (lambda: fitted(loss="hinge"), "loss must be 'ridge' or 'log'; got 'hinge'"),
        (lambda: fitted(class_weight="even"), "class_weight must be None, 'balanced' or a dict"),
        (lambda: fitted(class_weight={7: 1.0}), "a weight for 7, which is not among the classes"),
        (lambda: fitted(class_weight={0: -1.0}), "class_weight of class 0 must be a finite number of at least 0"),
        (lambda: fitted(class_weight={0: 0}), "only the class 1 has samples of positive weight"),
        (lambda: fitted(np.stack([y, 1 - y], 1), class_weight="balanced"), "class_weight is for one class per sample"),
        (lambda: fitted(loss="log", solver="cg"), "no conjugate gradients"),
        (lambda: fitted(solver="qr"), "solver must be one of"),
        (lambda: fitted(alpha=0.0), "alpha must be positive"),
        (lambda: RandomAttentionClassifier(5).fit(X[:1], y[:1]), "only one class"),
        (lambda: RandomAttentionClassifier(5).fit(X[:0], y[:0]), "empty"),
        (lambda: RandomAttentionClassifier(5).fit(X, y, sample_weight=y), "only the class 1"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
