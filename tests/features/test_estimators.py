"""scikit-learn manners, the algebra of ridge, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from attlas import tokens
from attlas.errors import InputError
from attlas.features import (
    ConstrainedAttentionRegressor,
    RandomAttentionFeatures,
    RandomAttentionRegressor,
    RandomMLPFeatures,
    attention_kernel,
    estimators,
    learning_curve,
    targets,
)
from attlas.features.ridge import GRID

X = tokens.sphere(60, 5, 4, 0)
BETA = np.array([1.0, 0, 0, 0])
Y = np.stack([targets.KeyAverage(BETA, 2)(X), targets.Correlation(1)(X)], axis=1)
y = Y[:, 1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # tokens around (100, .., 100) are hard
@parametrize_with_checks(
    [
        RandomAttentionRegressor(n_heads=30, random_state=0),
        RandomAttentionRegressor(n_heads=4, solver="primal", random_state=0),
        RandomAttentionRegressor(n_heads=30, alpha=0.01, solver="cg", random_state=0),
        RandomAttentionRegressor(n_heads="infinite"),
        ConstrainedAttentionRegressor(n_heads=10, radius=0.5, max_iter=200, random_state=0),
        RandomAttentionFeatures(n_heads=5),
        RandomMLPFeatures(n_heads=3),
    ]
)
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


def test_infinitely_many_heads_are_kernel_ridge():
    model = RandomAttentionRegressor("infinite", alpha=0.01).fit(X, Y)
    K = attention_kernel(X)
    peer = KernelRidge(alpha=0.01 * np.trace(K) / len(X), kernel="precomputed").fit(K, Y)
    fresh = tokens.sphere(7, 5, 4, 1)
    np.testing.assert_allclose(model.predict(fresh), peer.predict(attention_kernel(fresh, X)), rtol=1e-9, atol=1e-12)


def test_finitely_many_are_ridge_on_the_features():
    model = RandomAttentionRegressor(40, alpha=0.1, random_state=3).fit(X, y)
    Phi = RandomAttentionFeatures(40, random_state=3).fit(X)
    F = Phi.transform(X)
    peer = Ridge(alpha=0.1 * np.sum(F * F) / len(X), fit_intercept=False).fit(F, y)
    fresh = tokens.sphere(7, 5, 4, 1)
    np.testing.assert_allclose(model.predict(fresh), peer.predict(Phi.transform(fresh)), rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(model.coef_[:, 0], peer.coef_, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("heads", [5, 40])
@pytest.mark.parametrize("solver", ["primal", "cg"])
def test_the_solvers_agree(heads, solver, monkeypatch):
    """To what float32 features allow; features made again in each step, in blocks, are the same."""
    monkeypatch.setattr(estimators, "_ROWS", 17)
    monkeypatch.setattr(estimators, "_HELD", 0 if heads == 5 else 1 << 30)
    fresh = tokens.sphere(7, 5, 4, 1)
    found = {
        name: RandomAttentionRegressor(heads, alpha=0.01, solver=name, random_state=3).fit(X, Y)
        for name in ("dual", solver)
    }
    assert found[solver].solver_ == solver
    assert (found[solver].n_iter_ > 0) == (solver == "cg")
    np.testing.assert_allclose(found[solver].predict(fresh), found["dual"].predict(fresh), atol=2e-4 * Y.std())
    if solver == "primal":
        paths = [
            RandomAttentionRegressor(heads, alphas=[1e-2, 1.0], solver=name, random_state=3).fit(X, Y).loo_errors_
            for name in found
        ]
        np.testing.assert_allclose(*paths, rtol=1e-3)


def test_the_solver_fits_the_sizes(monkeypatch):
    def chosen(heads):
        return RandomAttentionRegressor(heads, alpha=0.1, random_state=0).fit(X, y).solver_

    assert (chosen(3), chosen(30)) == ("primal", "dual")
    monkeypatch.setattr(estimators, "_DIRECT", 50)
    assert (chosen(3), chosen(30)) == ("primal", "cg")


def test_conjugate_gradients_choose_a_penalty_on_held_out_samples():
    model = RandomAttentionRegressor(40, solver="cg", random_state=0).fit(X, y)
    assert model.alpha_ == GRID[int(np.argmin(model.loo_errors_[:, 0]))]


def test_conjugate_gradients_that_stop_early_say_so(monkeypatch):
    monkeypatch.setattr(estimators, "_STEPS", 1)
    monkeypatch.setattr(estimators, "_RANK", 5)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        RandomAttentionRegressor(40, alpha=1e-4, solver="cg", random_state=0).fit(X, y)


def test_leave_one_out_is_leaving_one_out():
    """By brute force, at the same absolute penalty."""
    alphas = [1e-3, 1e-1]
    model = RandomAttentionRegressor("infinite", alphas=alphas).fit(X, y)
    K = attention_kernel(X)
    for row, alpha in enumerate(alphas):
        peer = KernelRidge(alpha=alpha * np.trace(K) / len(X), kernel="precomputed")
        left_out = cross_val_predict(peer, K, y, cv=LeaveOneOut())
        assert model.loo_errors_[row, 0] == pytest.approx(np.mean((left_out - y) ** 2), rel=1e-8)
    assert model.alpha_ in alphas


def test_the_nested_curve_is_that_of_separate_fits():
    fresh = tokens.sphere(9, 5, 4, 1)
    expected = np.stack([targets.KeyAverage(BETA, 2)(fresh), targets.Correlation(1)(fresh)], axis=1)
    model = RandomAttentionRegressor("infinite")
    curve = learning_curve(model, X, Y, fresh, expected, sizes=[10, 33, 60], alphas=[1e-3, 0.1])
    K, cross = attention_kernel(X), attention_kernel(fresh, X)
    for i, penalty in enumerate(curve.penalties):
        for j, n in enumerate(curve.sizes):
            inverse = np.linalg.inv(K[:n, :n] + penalty * np.eye(n))
            found = cross[:, :n] @ inverse @ Y[:n]
            np.testing.assert_allclose(curve.test[i, j], np.mean((found - expected) ** 2, axis=0), rtol=1e-8)
            left_out = (inverse @ Y[:n]) / np.diag(inverse)[:, None]
            np.testing.assert_allclose(curve.loo[i, j], np.mean(left_out**2, axis=0), rtol=1e-8)
            forecasts = []
            for m in range(n - max(n // 5, 1), n):
                weights = np.linalg.solve(K[:m, :m] + penalty * np.eye(m), K[:m, m])
                forecasts.append((Y[m] - weights @ Y[:m]) ** 2)
            np.testing.assert_allclose(curve.forecast[i, j], np.mean(forecasts, axis=0), rtol=1e-7)
    assert curve.chosen().shape == (3, 2)


@pytest.mark.parametrize("activation", ["relu", "exp", "softmax"])
def test_padding_and_order_of_keys_change_nothing(activation):
    Phi = RandomAttentionFeatures(20, activation=activation, random_state=0).fit(X)
    F = Phi.transform(X)
    np.testing.assert_allclose(Phi.transform(X[:, [0, 4, 2, 1, 3]]), F, atol=1e-13)
    padded = np.concatenate([X, np.full((60, 3, 4), np.nan)], axis=1)
    np.testing.assert_allclose(Phi.transform(padded), F, atol=1e-13)


def test_equal_number_of_trained_numbers():
    assert RandomMLPFeatures(n_heads=7).fit_transform(X).shape == RandomAttentionFeatures(7).fit_transform(X).shape


def test_pipelines_searches_and_workers():
    pipeline = make_pipeline(RandomAttentionFeatures(30, random_state=0), Ridge(1e-3))
    assert cross_val_score(pipeline, X, y, cv=3, n_jobs=2).shape == (3,)
    search = GridSearchCV(RandomAttentionRegressor("infinite"), {"bias": [0.0, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0
    model = RandomAttentionRegressor(20, bias=0.5, random_state=1)
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    padded = np.concatenate([X, np.full((60, 1, 4), np.nan)], axis=1)
    assert cross_val_score(RandomAttentionRegressor(20, random_state=1), padded, y, cv=3).shape == (3,)


def test_rows_of_tokens_end_to_end():
    flat = X.reshape(60, -1)
    by_rows = RandomAttentionRegressor(20, token_dim=4, random_state=0).fit(flat, y)
    np.testing.assert_array_equal(
        by_rows.predict(flat), RandomAttentionRegressor(20, random_state=0).fit(X, y).predict(X)
    )


def test_constant_y_is_learned():
    model = RandomAttentionRegressor("infinite").fit(X, np.full(60, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomAttentionRegressor(0).fit(X, y), "n_heads must be a positive integer; got 0"),
        (lambda: RandomAttentionRegressor("many").fit(X, y), "positive integer or 'infinite'"),
        (lambda: RandomAttentionRegressor(5, alpha=-1.0).fit(X, y), "alpha must be positive"),
        (lambda: RandomAttentionRegressor(5, alpha="gcv").fit(X, y), "positive number or 'loo'"),
        (lambda: RandomAttentionRegressor(5, activation="gelu").fit(X, y), "activation must be one of"),
        (lambda: RandomAttentionRegressor(5).fit(X[:1], y[:1]), "1 sample"),
        (lambda: RandomAttentionRegressor(5).fit(X[:, :1], y), "query token only"),
        (lambda: RandomAttentionRegressor(5).fit(X, y[:9]), "n = 60"),
        (lambda: RandomAttentionRegressor(5).fit(X, y * np.nan), "y has entries that are not finite"),
        (lambda: RandomAttentionRegressor(5).fit(X * np.inf, y), "infinite"),
        (lambda: RandomAttentionRegressor(5).fit(X, y).predict(X[:, :, :3]), "dimension 3, the model was made for 4"),
        (lambda: RandomAttentionRegressor(5, token_dim=3).fit(X.reshape(60, -1), y), "token_dim = 3 does not divide"),
        (lambda: learning_curve(RandomAttentionRegressor(5), X, y, X, y, sizes=[5, 90]), "at most n = 60"),
        (lambda: RandomMLPFeatures(5).fit(X).transform(np.where(np.arange(5)[:, None] > 3, np.nan, X)), "missing tokens"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message), np.errstate(all="ignore"):
        call()
