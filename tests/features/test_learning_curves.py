"""Learning curves against separate fits, and the data that learners are compared on."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import (
    RandomAttentionFeatures,
    RandomAttentionRegressor,
    RandomMLPFeatures,
    TargetData,
    attention_kernel,
    learning_curve,
    sample_sizes,
    targets,
)

X = tokens.sphere(60, 5, 4, 0)
BETA = np.array([1.0, 0, 0, 0])
Y = np.stack([targets.KeyAverage(BETA, 2)(X), targets.Correlation(1)(X)], axis=1)
y = Y[:, 1]


def test_the_nested_curve_with_intercept_is_that_of_separate_fits():
    fresh = tokens.sphere(9, 5, 4, 1)
    expected, shifted = targets.Correlation(1)(fresh) + 0.5, y + 0.5
    curve = learning_curve(
        RandomAttentionRegressor("infinite"), X, shifted, fresh, expected, sizes=[10, 60], alphas=[0.1, 0.01]
    )
    scale = np.trace(attention_kernel(X)) / 60
    for j, n in enumerate(curve.sizes):
        small = np.trace(attention_kernel(X[:n])) / n
        for i, alpha in enumerate([0.1, 0.01]):
            model = RandomAttentionRegressor("infinite", alphas=[alpha * scale / small]).fit(X[:n], shifted[:n])
            assert curve.test[i, j, 0] == pytest.approx(np.mean((model.predict(fresh) - expected) ** 2), rel=1e-8)
            assert curve.loo[i, j, 0] == pytest.approx(model.loo_errors_[0, 0], rel=1e-8)
            missed = []
            for m in range(n - n // 5, n):
                before = RandomAttentionRegressor(
                    "infinite", alpha=alpha * scale / (np.trace(attention_kernel(X[:m])) / m)
                )
                missed.append(before.fit(X[:m], shifted[:m]).predict(X[m : m + 1])[0] - shifted[m])
            assert curve.forecast[i, j, 0] == pytest.approx(np.mean(np.square(missed)), rel=1e-7)


def test_penalties_below_the_rounding_of_few_heads_are_passed_over():
    many, f = tokens.sphere(500, 5, 4, 3), targets.Correlation(1)
    curve = learning_curve(RandomAttentionRegressor(20, random_state=0), many, f(many), X, y)
    assert np.isinf(curve.loo[0]).all()
    assert np.isfinite(curve.chosen()).all()
    one = learning_curve(RandomAttentionRegressor(3, alpha=0.1, random_state=0), X[:50], y[:50], X[50:], y[50:])
    assert one.test.shape[0] == 1


def test_the_nested_curve_is_that_of_separate_fits():
    fresh = tokens.sphere(9, 5, 4, 1)
    expected = np.stack([targets.KeyAverage(BETA, 2)(fresh), targets.Correlation(1)(fresh)], axis=1)
    model = RandomAttentionRegressor("infinite", fit_intercept=False)
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


def test_every_learner_gets_the_same_data():
    names, sizes = ["keys 1", "correlation 1"], sample_sizes(8, 64, 1)
    first, second = (TargetData(names, 4, 3, 64, 200, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_allclose(first.Y_test.var(0), 1)
    np.testing.assert_allclose(first.Y_test[:, 1] * np.sqrt(first.variance[1]), targets.Correlation(1)(first.X_test))
    curves = first.attention(sizes), first.network(sizes), first.features(RandomMLPFeatures(50, random_state=0), sizes)
    assert all(curve.shape == (len(sizes), 2) for curve in curves)
    assert curves[0][-1, 1] < 0.9 < curves[1][-1, 1]  # a network of so few samples does not learn a correlation
    many = first.features(RandomAttentionFeatures(2000, random_state=0), sizes)
    np.testing.assert_allclose(many, first.attention(sizes), rtol=0.2)


def test_progress_is_told_until_the_end():
    for model in (RandomAttentionRegressor("infinite"), RandomAttentionRegressor(5, random_state=0)):
        events = []
        learning_curve(model, X[:40], y[:40], X[40:], y[40:], alphas=[0.1, 1.0], progress=events.append)
        assert [event.text.split(":")[0] for event in events][-2:] == ["learning curve"] * 2
        assert len({event.text.split(":")[0] for event in events}) == 2
        assert events[-1].share == events[0].share == 1.0  # forty rows, or five heads, are one block


def test_sizes_are_even_in_logarithms():
    assert sample_sizes(16, 128, 1) == [16, 32, 64, 128]
    assert sample_sizes(4, 8, 2) == [4, 6, 8]
    with pytest.raises(InputError, match="too small"):
        sample_sizes(64, 64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learning_curve(RandomAttentionRegressor(5), X, y, X, y, sizes=[5, 90]), "at most n = 60"),
        (lambda: learning_curve(RandomAttentionRegressor(5), X, Y, X, y), "2 targets and Y_test has 1"),
        (lambda: learning_curve(RandomAttentionRegressor(5), X, y, X, y, sizes=[16.7, 20]), "increasing integers"),
        (lambda: learning_curve(RandomAttentionFeatures(5), X, y, X, y), "must be a RandomAttentionRegressor"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message), np.errstate(all="ignore"):
        call()
