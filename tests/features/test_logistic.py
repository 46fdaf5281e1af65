"""The log loss on frozen heads against scikit-learn's logistic regression, and the choice of its penalty."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from attlas import tokens
from attlas.features import RandomAttentionClassifier, RandomAttentionFeatures, attention_kernel, logistic
from attlas.numerics import stream

X = tokens.gaussian(120, 5, 3, 0)
MEANS = X[:, 1:].mean(1)
LABELS = {
    "binary": (MEANS[:, 0] + 0.3 * stream(0, "noise").normal(size=120) > 0).astype(int),
    "multi-class": np.argmax(MEANS + 0.3 * stream(0, "noise").normal(size=(120, 3)), axis=1),
}
WEIGHT = stream(0, "weight").random(120)
FRESH = tokens.gaussian(40, 5, 3, 1)


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighed"])
def test_it_is_logistic_regression_on_the_features(solver, kind, weight):
    y = LABELS[kind]
    model = RandomAttentionClassifier(15, query="first", loss="log", alpha=0.1, solver=solver, random_state=0)
    model.fit(X, y, sample_weight=weight)
    Phi = RandomAttentionFeatures(15, random_state=0).fit(X)
    F = Phi.transform(X)
    w = np.ones(120) if weight is None else weight
    penalty = 0.1 * (w @ np.sum(F * F, axis=1)) / w.sum()
    peer = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(F, y, sample_weight=w)
    np.testing.assert_allclose(model.predict_proba(FRESH), peer.predict_proba(Phi.transform(FRESH)), atol=2e-4)
    assert model.status_ == "converged"


def test_the_gradient_vanishes_for_infinitely_many_heads():
    """sum_n w_n (p_n - t_n) K_n + lam K a = 0, so that a = -w (p - t)/lam, and sum w (p - t) = 0 for the intercept."""
    y = LABELS["multi-class"]
    model = RandomAttentionClassifier("infinite", query="first", loss="log", alpha=0.01).fit(X, y, sample_weight=WEIGHT)
    K = attention_kernel(X)
    penalty = 0.01 * (WEIGHT @ np.diag(K)) / WEIGHT.sum()
    missed = WEIGHT[:, None] * (model.predict_proba(X) - (y[:, None] == np.arange(3)))
    np.testing.assert_allclose(model.dual_coef_, -missed / penalty, atol=1e-4 * np.abs(model.dual_coef_).max())
    np.testing.assert_allclose(missed.sum(0), 0, atol=1e-5)


def test_the_penalty_is_that_of_the_smallest_held_out_loss(monkeypatch):
    """By hand, fold for fold, with scikit-learn's fits."""
    monkeypatch.setattr(logistic, "ROUGH", 1e-7)
    y, alphas = LABELS["binary"], [1e-2, 1e-1, 1.0, 10.0]
    model = RandomAttentionClassifier(8, query="first", loss="log", alphas=alphas, random_state=0).fit(X, y)
    F = RandomAttentionFeatures(8, random_state=0).fit(X).transform(X)
    scale = np.sum(F * F) / 120
    expected = np.zeros(4)
    folds = list(logistic._folds(2.0 * y[:, None] - 1, exclusive=False))
    np.testing.assert_array_equal(np.sum(folds, axis=0), 1)
    assert np.ptp([y[fold].sum() for fold in folds]) <= 1
    for fold in folds:
        for row, alpha in enumerate(alphas):
            peer = LogisticRegression(C=1 / (alpha * scale), tol=1e-8, max_iter=10_000).fit(F[~fold], y[~fold])
            expected[row] -= peer.predict_log_proba(F[fold])[np.arange(fold.sum()), y[fold]].sum() / 120
    tried = np.isfinite(model.loo_errors_[:, 0])
    assert tried.sum() >= 3
    np.testing.assert_allclose(model.loo_errors_[tried, 0], expected[tried], atol=1e-4)
    assert model.alpha_ == alphas[int(np.argmin(expected))]


def test_many_samples_choose_on_one_fold(monkeypatch):
    monkeypatch.setattr(logistic, "MANY", 100)
    assert len(list(logistic._folds(np.ones((120, 1)), exclusive=False))) == 1


def test_separable_classes_converge_and_a_fit_that_is_broken_off_predicts_what_it_reached(monkeypatch):
    """Values that are right only where the gradient vanishes were once returned: worse than the larger class."""
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomAttentionClassifier(20, loss="log", alpha=1e-6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert model.fit(X, y).score(X, y) > 0.94
    monkeypatch.setattr(logistic, "MAX_STEPS", 6)
    with pytest.warns(ConvergenceWarning, match="out of steps"):
        assert model.fit(X, y).score(X, y) > 0.9
