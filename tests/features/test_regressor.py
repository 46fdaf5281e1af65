"""The regressor: scikit-learn's manners, the algebra of ridge, what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from attlas import tokens
from attlas.errors import InputError
from attlas.features import (
    RandomAttentionFeatures,
    RandomAttentionRegressor,
    attention_kernel,
    frozen_heads,
    head_features,
    ridge_fit,
    targets,
)
from attlas.features.ridge import GRID
from attlas.numerics import Status, stream

X = tokens.sphere(60, 5, 4, 0)
BETA = np.array([1.0, 0, 0, 0])
Y = np.stack([targets.KeyAverage(BETA, 2)(X), targets.Correlation(1)(X)], axis=1)
y = Y[:, 1]


LEFT_OUT_WHOLE = (
    "the penalty is chosen by leaving samples out:"
    " a sample of weight two is left out whole, one of two equal samples is not"
)
STOPS_EARLIER = "conjugate gradients stop at a relative residual of 1e-6, where the check asks for 1e-7"


def reasons(model):
    """Return the checks that cannot hold."""
    why = LEFT_OUT_WHOLE if model.alpha == "loo" else STOPS_EARLIER if model.solver == "cg" else None
    sparse = {
        "check_sample_weight_equivalence_on_sparse_data": "scikit-learn 1.6 asks it of models that refuse sparse data"
    }
    return sparse if why is None else sparse | {"check_sample_weight_equivalence_on_dense_data": why}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # tokens around (100, .., 100) are hard
@parametrize_with_checks(
    [
        RandomAttentionRegressor(n_heads=30, random_state=0),
        RandomAttentionRegressor(n_heads=4, solver="primal", random_state=0),
        RandomAttentionRegressor(n_heads=30, alpha=0.01, solver="cg", random_state=0),
        RandomAttentionRegressor(n_heads="infinite"),
        RandomAttentionRegressor(n_heads="infinite", alpha=0.01),
    ],
    expected_failed_checks=reasons,
)
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


def test_infinitely_many_heads_are_kernel_ridge():
    model = RandomAttentionRegressor("infinite", alpha=0.01, fit_intercept=False).fit(X, Y)
    K = attention_kernel(X)
    peer = KernelRidge(alpha=0.01 * np.trace(K) / len(X), kernel="precomputed").fit(K, Y)
    fresh = tokens.sphere(7, 5, 4, 1)
    np.testing.assert_allclose(model.predict(fresh), peer.predict(attention_kernel(fresh, X)), rtol=1e-9, atol=1e-12)


def test_finitely_many_are_ridge_on_the_features():
    model = RandomAttentionRegressor(40, alpha=0.1, fit_intercept=False, random_state=3).fit(X, y)
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
    monkeypatch.setattr(head_features, "ROWS", 17)
    monkeypatch.setattr(head_features, "HELD", 0 if heads == 5 else 1 << 30)
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


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_features_are_made_once(solver, monkeypatch):
    made, make = [], head_features.make_features
    monkeypatch.setattr(
        head_features, "make_features", lambda X, heads, *a: made.append(len(X) * len(heads)) or make(X, heads, *a)
    )
    monkeypatch.setattr(head_features, "HEADS", 7)
    monkeypatch.setattr(head_features, "ROWS", 17)
    RandomAttentionRegressor(20, solver=solver, random_state=0).fit(X, y)
    assert sum(made) == 60 * 20


def test_the_solver_fits_the_sizes(monkeypatch):
    def chosen(heads):
        return RandomAttentionRegressor(heads, alpha=0.1, random_state=0).fit(X, y).solver_

    assert (chosen(3), chosen(30)) == ("primal", "dual")
    monkeypatch.setattr(frozen_heads, "DIRECT", 50)
    assert (chosen(3), chosen(30)) == ("primal", "cg")


def test_conjugate_gradients_choose_a_penalty_on_held_out_samples():
    model = RandomAttentionRegressor(40, solver="cg", random_state=0).fit(X, y)
    assert model.alpha_ == GRID[int(np.argmin(model.loo_errors_[:, 0]))]


def test_conjugate_gradients_that_stop_early_say_so(monkeypatch):
    model = RandomAttentionRegressor(40, alpha=1e-4, solver="cg", random_state=0)
    assert model.fit(X, y).status_ is Status.CONVERGED
    monkeypatch.setattr(ridge_fit, "MAX_STEPS", 1)
    monkeypatch.setattr(ridge_fit, "RANK", 5)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps") as caught:
        model.fit(X, y)
    assert model.status_ is Status.OUT_OF_STEPS
    assert caught[0].filename == __file__  # the line that called fit


def test_leave_one_out_is_leaving_one_out():
    """By brute force, at the same absolute penalty; with an intercept the mean is that of the others, too."""
    alphas, shifted = [1e-3, 1e-1], y + 0.3
    K = attention_kernel(X)
    for row, alpha in enumerate(alphas):
        peer = KernelRidge(alpha=alpha * np.trace(K) / len(X), kernel="precomputed")
        for intercept in (False, True):
            model = RandomAttentionRegressor("infinite", alphas=alphas, fit_intercept=intercept).fit(X, shifted)
            left_out = np.empty(len(X))
            for i in range(len(X)):
                rest = np.delete(np.arange(len(X)), i)
                mean = shifted[rest].mean() if intercept else 0.0
                peer.fit(K[np.ix_(rest, rest)], shifted[rest] - mean)
                left_out[i] = peer.predict(K[i : i + 1, rest])[0] + mean
            assert model.loo_errors_[row, 0] == pytest.approx(np.mean((left_out - shifted) ** 2), rel=1e-8)
            assert model.alpha_ in alphas


@pytest.mark.parametrize("solver", ["dual", "primal", "cg"])
def test_a_constant_added_to_y_is_added_to_predictions(solver):
    fresh = tokens.sphere(7, 5, 4, 1)
    for options in ({"alpha": 0.01}, {}):
        model = RandomAttentionRegressor(20, solver=solver, random_state=0, **options)
        plain, shifted = (clone(model).fit(X, y + shift).predict(fresh) for shift in (0.0, 1e4))
        np.testing.assert_allclose(shifted - 1e4, plain, atol=1e-5 * y.std() + 1e-8)
    constant = RandomAttentionRegressor(20, solver=solver, random_state=0).fit(X, np.full(60, 0.1))
    np.testing.assert_allclose(constant.predict(fresh), 0.1, atol=1e-12)


@pytest.mark.parametrize(("heads", "solver"), [("infinite", "dual"), (30, "dual"), (5, "primal"), (30, "cg")])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_repeats_at_a_fixed_penalty(heads, solver, intercept):
    weight = stream(0, "weights").integers(0, 4, 60)
    model = RandomAttentionRegressor(heads, alpha=0.1, solver=solver, fit_intercept=intercept, random_state=0)
    weighed = clone(model).fit(X, Y + 1, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(Y + 1, weight, axis=0))
    np.testing.assert_allclose(weighed.intercept_, repeated.intercept_, rtol=1e-12)
    fresh = tokens.sphere(7, 5, 4, 1)
    np.testing.assert_allclose(weighed.predict(fresh), repeated.predict(fresh), atol=1e-4 * Y.std())


@pytest.mark.parametrize(("heads", "solver"), [("infinite", "dual"), (5, "primal")])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_weighed_sample_is_left_out_whole(heads, solver, intercept):
    """By brute force, at the same absolute penalty, a sample of weight zero among them."""
    weight = stream(0, "weights").random(60) + 0.2
    weight[3] = 0
    alphas, shifted = [1e-2, 1.0], y + 0.3
    options = {"alphas": alphas, "solver": solver, "fit_intercept": intercept, "random_state": 0}
    model = RandomAttentionRegressor(heads, **options).fit(X, shifted, sample_weight=weight)
    K, root = model.kernel(X), np.sqrt(weight)
    for row, alpha in enumerate(alphas):
        penalty, errors = alpha * (weight @ np.diag(K)) / weight.sum(), np.empty(60)
        for i in range(60):
            rest = np.delete(np.arange(60), i)
            mean = weight[rest] @ shifted[rest] / weight[rest].sum() if intercept else 0.0
            A = root[rest, None] * K[np.ix_(rest, rest)] * root[rest] + penalty * np.eye(59)
            dual = root[rest] * np.linalg.solve(A, root[rest] * (shifted[rest] - mean))
            errors[i] = K[i, rest] @ dual + mean - shifted[i]
        expected = weight @ errors**2 / weight.sum()
        assert model.loo_errors_[row, 0] == pytest.approx(expected, rel=1e-8 if heads == "infinite" else 1e-3)


def test_single_precision_in_single_precision_out():
    small = X.astype("float32")
    model = RandomAttentionRegressor(20, random_state=0).fit(small, y)
    assert model.predict(small).dtype == np.float32
    assert model.predict(list(small)).dtype == np.float32
    assert model.predict(X).dtype == np.float64
    np.testing.assert_allclose(model.predict(small), model.predict(X), atol=1e-5)


def test_searches_copies_and_pickles():
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
        (lambda: RandomAttentionRegressor(0).fit(X, y), "n_heads must be an integer of at least 1; got 0"),
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
        (lambda: RandomAttentionRegressor(20, activation="exp", random_state=0).fit(20 * X, y), "overflow"),
        (lambda: RandomAttentionRegressor(20, random_state=0).fit(1e13 * X, y), "overflow"),
        (lambda: RandomAttentionRegressor(20, solver="cg", random_state=0).fit(1e13 * X, y), "overflow"),
        (lambda: RandomAttentionRegressor(20, random_state=0).fit(1e40 * X, y), "too large for features in float32"),
        (lambda: RandomAttentionRegressor("infinite").fit(1e80 * X, y), "overflows"),
        (lambda: RandomAttentionRegressor("infinite", activation="exp").fit(40 * X, y), "overflows"),
        (lambda: RandomAttentionRegressor(20, random_state=0).fit(X, y).predict(1e35 * X), "too large"),
        (lambda: RandomAttentionRegressor(20).fit(X, 1e300 * y), "beyond 1e100"),
        (lambda: RandomAttentionRegressor(20).fit(X, np.empty((60, 0))), "y must have shape"),
        (lambda: RandomAttentionRegressor(20).fit(X, 1j * y), "complex"),
        (lambda: RandomAttentionRegressor(20).fit(1j * X, y), "complex"),
        (lambda: RandomAttentionRegressor(20).fit([[[1.0, 2], [3, 4]], [[1.0, 2]]], [1, 2]), "set 1 has the query token"),
        (lambda: RandomAttentionRegressor(20).fit(X[None], y), "X must have shape"),
        (lambda: RandomAttentionRegressor(20, token_dim=0).fit(X.reshape(60, -1), y), "token_dim"),
        (lambda: RandomAttentionRegressor(20, token_dim=3).fit(X, y), "token_dim says 3"),
        (lambda: RandomAttentionRegressor(20, alphas="abc").fit(X, y), "alphas must be"),
        (lambda: RandomAttentionRegressor(20, alphas=[]).fit(X, y), "alphas must be"),
        (lambda: RandomAttentionRegressor(20, alpha=[0.1, 1]).fit(X, y), "given as alphas"),
        (lambda: RandomAttentionRegressor(20, bias="a").fit(X, y), "bias must be"),
        (lambda: RandomAttentionRegressor(20, solver=np.array(["cg"])).fit(X, y), "solver must be"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message), np.errstate(all="ignore"):
        call()


def test_a_fit_keeps_nothing_of_the_caller_or_of_an_earlier_fit():
    mine = X.copy()
    model = RandomAttentionRegressor("infinite").fit(mine, y)
    before = model.predict(X)
    mine *= 2
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(n_heads=10, alpha=0.1, random_state=np.random.default_rng(0)).fit(X, y)
    assert not hasattr(model, "X_fit_")
    assert not hasattr(model, "loo_errors_")


def test_a_batch_that_is_refused_leaves_the_model_as_it_was():
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((size, 3)) for size in (2, 3, 4, 2, 3)]
    model = RandomAttentionRegressor(20, query=None, random_state=0).fit(sets, np.arange(5.0))
    before = model.predict(sets)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="y must be numbers"):
            method([np.ones((2, 5))] * 3, ["x"] * 3)
        np.testing.assert_array_equal(model.predict(sets), before)
