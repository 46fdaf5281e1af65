"""The solvers of ridge regression against least squares by brute force: weights, repeated samples, samples left out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import attention_heads, ridge
from attlas.features.frozen_heads import FiniteHeads
from attlas.features.ridge import GRID
from attlas.features.ridge_fit import SOLVERS

DIRECT = ("dual", "primal")
rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Plain:
    """Features that are given, in float64: X is the features."""

    X: np.ndarray

    @property
    def width(self):
        return self.X.shape[1]

    @cached_property
    def by_rows(self):
        return [(self.X[start : start + 7], slice(start, start + 7)) for start in range(0, len(self.X), 7)]

    @property
    def by_heads(self):
        return [self.X]

    def gram(self):
        return self.X @ self.X.T

    def values(self, dual):
        return self.X.T @ dual

    def times(self, values):
        return self.X @ values


def least_squares(Phi, Y, penalty, intercept, weight):
    """Return the values and the intercept that minimise sum_i w_i (y_i - b - phi_i v)^2 + penalty |v|^2, b the mean."""
    mean = np.average(Y, axis=0, weights=weight) if intercept else np.zeros(Y.shape[1])
    root = np.sqrt(weight)[:, None]
    tall = np.concatenate([root * Phi, np.sqrt(penalty) * np.eye(Phi.shape[1])])
    right = np.concatenate([root * (Y - mean), np.zeros((Phi.shape[1], Y.shape[1]))])
    return np.linalg.lstsq(tall, right, rcond=None)[0], mean


def left_out(Phi, Y, penalty, intercept, weight):
    """Return the prediction of each sample by the fit to the others."""
    found = np.empty_like(Y)
    for i in range(len(Y)):
        others = weight * (np.arange(len(Y)) != i)
        values, mean = least_squares(Phi, Y, penalty, intercept, others)
        found[i] = Phi[i] @ values + mean
    return found


def penalty_of(Phi, alpha, weight):
    return alpha * np.average((Phi**2).sum(1), weights=weight)


def weights(n):
    """Return weights of all kinds: zero, tiny, large."""
    weight = rng.uniform(0.2, 3, n)
    weight[[1, 5]] = 0.0
    weight[2], weight[3] = 1e-12, 50.0
    return weight


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [9, 40])
@pytest.mark.parametrize("few", [0, 5])
def test_the_fit_and_all_that_is_left_out_of_it(solver, intercept, weighted, p, few, monkeypatch):
    """Whether each penalty has a factorisation of its own or not."""
    monkeypatch.setattr(ridge, "_FEW", few)
    n = 25
    Phi, Y = rng.normal(size=(n, p)) / np.sqrt(p), rng.normal(size=(n, 2)) + 3
    weight = weights(n) if weighted else None
    plain = np.ones(n) if weight is None else weight
    alphas = np.array([1e-4, 1e-2, 1.0, 30.0])
    found = SOLVERS[solver](Plain(Phi), Y, alphas, True, intercept, weight)
    paths = [left_out(Phi, Y, penalty_of(Phi, alpha, plain), intercept, plain) for alpha in alphas]
    errors = [np.average((one - Y) ** 2, axis=0, weights=plain) for one in paths]
    np.testing.assert_allclose(found.errors, errors, rtol=1e-7)
    best = int(np.argmin((np.array(errors) / np.min(errors, axis=0)).mean(1)))
    assert found.alpha == alphas[best]
    np.testing.assert_allclose(found.left_out, paths[best], rtol=1e-7, atol=1e-9)
    values, mean = least_squares(Phi, Y, penalty_of(Phi, found.alpha, plain), intercept, plain)
    np.testing.assert_allclose(found.values, values, rtol=1e-7, atol=1e-9)
    if weighted:  # a sample without a weight is predicted by the fit itself
        np.testing.assert_allclose(found.left_out[1], Phi[1] @ values + mean, rtol=1e-7)
    only = SOLVERS[solver](Plain(Phi), Y, alphas[1:2], True, intercept, weight)
    np.testing.assert_allclose(only.left_out, paths[1], rtol=1e-7, atol=1e-9)
    fixed = SOLVERS[solver](Plain(Phi), Y, alphas[1:2], False, intercept, weight)
    assert fixed.errors is fixed.left_out is None
    np.testing.assert_allclose(fixed.values, only.values, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_integer_weights_are_repeated_samples(solver, intercept):
    Phi, Y = rng.normal(size=(30, 12)), rng.normal(size=(30, 2))
    weight = np.repeat([0, 1, 3], 10)
    alone = SOLVERS[solver](Plain(Phi), Y, np.array([0.01]), False, intercept, weight.astype(float))
    many = np.repeat(np.arange(30), weight)
    repeated = SOLVERS[solver](Plain(Phi[many]), Y[many], np.array([0.01]), False, intercept)
    np.testing.assert_allclose(alone.values, repeated.values, rtol=1e-4 if solver == "cg" else 1e-9, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_common_factor_of_the_weights_is_one_of_the_penalty(solver):
    Phi, Y, weight = rng.normal(size=(30, 12)), rng.normal(size=(30, 1)), rng.uniform(1, 2, 30)
    one = SOLVERS[solver](Plain(Phi), Y, np.array([0.1]), False, True, weight)
    ten = SOLVERS[solver](Plain(Phi), Y, np.array([1.0]), False, True, 10 * weight)
    np.testing.assert_allclose(one.values, ten.values, rtol=1e-4 if solver == "cg" else 1e-9, atol=1e-6)


def test_conjugate_gradients_predict_a_held_out_tenth():
    Phi, Y = rng.normal(size=(50, 12)), rng.normal(size=(50, 2))
    weight = weights(50)
    for alphas in ([0.1, 1.0], [0.1]):
        found = SOLVERS["cg"](Plain(Phi), Y, np.array(alphas), True, True, weight)
        known = np.isfinite(found.left_out).all(1)
        assert known.sum() == 4  # a tenth of those that have a weight
        assert np.all(weight[known] > 0)
        others = np.flatnonzero(~known & (weight > 0))
        scale = np.average((Phi[others] ** 2).sum(1), weights=weight[others])
        values, mean = least_squares(Phi[others], Y[others], found.alpha * scale, True, weight[others])
        np.testing.assert_allclose(found.left_out[known], Phi[known] @ values + mean, atol=1e-4)
        error = np.average((found.left_out[known] - Y[known]) ** 2, axis=0, weights=weight[known])
        np.testing.assert_allclose(found.errors[alphas.index(found.alpha)], error, rtol=1e-9)


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("heads", [6, 30])
def test_single_precision_and_penalties_at_both_ends(solver, heads):
    """Features of rank at most 20 and 40: K or G is singular, and the smallest penalties are near its rounding."""
    X = tokens.sphere(40, 5, 4, 0)
    X[20:] = X[:20] if heads == 30 else X[20:]  # every sample twice
    design = FiniteHeads(attention_heads(heads, 4, 1), "relu").on(X)
    Phi = np.concatenate([part for part, _ in design.by_rows]).astype(float)
    Y = rng.normal(size=(40, 2))
    found = SOLVERS[solver](design, Y, np.array(GRID), True, True)
    one = np.ones(40)
    for row, alpha in enumerate(GRID):
        expected = np.mean((left_out(Phi, Y, penalty_of(Phi, alpha, one), True, one) - Y) ** 2, axis=0)
        if alpha >= 1e-4 or np.isfinite(found.errors[row]).all():
            np.testing.assert_allclose(found.errors[row], expected, rtol=max(2e-4, 2e-6 / alpha))


@pytest.mark.parametrize("solver", DIRECT)
def test_one_sample_with_a_weight_cannot_be_left_out(solver):
    Phi, Y = rng.normal(size=(6, 3)), rng.normal(size=(6, 1))
    with pytest.raises(InputError, match="two samples with positive weights"):
        SOLVERS[solver](Plain(Phi), Y, np.array([0.1]), True, True, np.eye(6)[0])


@pytest.mark.parametrize("weight", [None, np.random.default_rng(1).uniform(0.5, 2, 60)], ids=["equal", "weighed"])
@pytest.mark.parametrize("name", ["dual", "primal"])
def test_a_constant_target_has_no_say_in_the_penalty(name, weight):
    X = tokens.gaussian(60, 5, 3, 0)
    design = FiniteHeads(attention_heads(8, 3, 0), "relu").on(X)
    y = (X[:, 1:, 0].mean(1) + np.random.default_rng(0).standard_normal(60))[:, None]
    alone = SOLVERS[name](design, y, np.array(GRID), True, True, weight)
    beside = SOLVERS[name](design, np.hstack([y, np.full_like(y, 0.1)]), np.array(GRID), True, True, weight)
    assert beside.alpha == alone.alpha
    np.testing.assert_array_equal(beside.errors[:, 1], 0)
