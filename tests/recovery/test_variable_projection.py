"""The algebra of variable projection and of the gradients, against differences."""

import numpy as np
import pytest

from attlas import layers, tokens
from attlas.numerics import stream
from attlas.recovery import Layer, parameter_error, planted_layer
from attlas.recovery import variable_projection as variable_projection_module
from attlas.recovery.examples import Examples
from attlas.recovery.search import gradient_search, loss_and_gradient, random_start
from attlas.recovery.variable_projection import _normal_equations, eliminate, variable_projection

STEP = 1e-6


def examples(heads=2, d=4, k=3, n=40, d_out=3, last=False, seed=0):
    Theta, W = planted_layer(heads, d, stream(seed, "teacher"), 2.0, d_out=d_out)
    X = tokens.gaussian(n, k, d, stream(seed, "data"))
    Y = layers.multi_head_attention(X, Theta, W)
    return Examples.of(X, Y[:, -1] if last else Y), Layer(Theta, W)


@pytest.mark.parametrize("last", [False, True])
def test_normal_equations_are_those_of_the_projected_problem(last, monkeypatch):
    data, _ = examples(last=last)
    Theta = random_start(2, 4, stream(0, "start"))
    blocks = Examples.blocks
    monkeypatch.setattr(Examples, "blocks", lambda self, numbers: blocks(self, numbers, 7 * numbers))  # several blocks
    model = eliminate(data, Theta)
    H, g = _normal_equations(data, Theta, model)
    units = np.eye(Theta.size).reshape(-1, *Theta.shape)

    def attended(Theta):
        return np.concatenate([data.attend(theta)[1] for theta in Theta], axis=-1).reshape(len(model.Z), -1)

    slopes = [
        (eliminate(data, Theta + STEP * u).loss - eliminate(data, Theta - STEP * u).loss) / (2 * STEP) for u in units
    ]
    np.testing.assert_allclose(-2 * g, slopes, atol=1e-6 * np.abs(slopes).max())
    columns = []
    for u in units:
        moved = (attended(Theta + STEP * u) - attended(Theta - STEP * u)) / (2 * STEP) @ model.W
        columns.append((moved - model.Z @ np.linalg.lstsq(model.Z, moved, rcond=None)[0]).ravel())
    J = np.array(columns)
    np.testing.assert_allclose(H, J @ J.T, atol=1e-7 * np.abs(H).max())


def test_the_gradient_of_the_joint_problem():
    data, _ = examples()
    shape = (2, 4, 3)
    v = stream(1, "start").standard_normal(2 * 16 + 2 * 12)
    _, slope = loss_and_gradient(data, v, shape)
    for i in range(0, len(v), 5):
        u = np.eye(len(v))[i] * STEP
        difference = (loss_and_gradient(data, v + u, shape)[0] - loss_and_gradient(data, v - u, shape)[0]) / (2 * STEP)
        assert slope[i] == pytest.approx(difference, rel=1e-6, abs=1e-9)


def test_starts_know_nothing_of_the_truth():
    """Cosines between start and truth are those of chance."""
    cosines = []
    for seed in range(20):
        truth = planted_layer(2, 8, stream(seed, "teacher"))[0].ravel()
        start = random_start(2, 8, stream(seed, "start", "2", "0")).ravel()
        cosines.append(truth @ start / np.linalg.norm(truth) / np.linalg.norm(start))
    assert np.abs(cosines).max() < 5 / np.sqrt(128)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_a_planted_layer_is_found_to_rounding_but_not_exactly(heads):
    data, truth = examples(heads, d=5, k=4, n=300, d_out=None)
    fit = variable_projection(data, random_start(heads, 5, stream(7, "start")))
    error = parameter_error(Layer(fit.Theta, fit.W), truth)
    assert 0 < error < 1e-9  # exactly zero would mean that the truth leaked
    assert fit.converged
    assert fit.steps < 40


def test_a_deadline_is_kept():
    data, _ = examples()
    fit = variable_projection(data, random_start(2, 4, stream(0, "start")), deadline=0.0)
    assert fit.steps == 0
    assert not fit.converged
    assert fit.residual > 1e-3


def test_time_that_runs_out_is_not_convergence(monkeypatch):
    data, _ = examples()
    clock = iter([0.0, *[10.0] * 100])  # in time for a step, too late to try it
    monkeypatch.setattr(variable_projection_module.time, "perf_counter", lambda: next(clock))
    fit = variable_projection(data, random_start(2, 4, stream(0, "start")), deadline=5.0)
    assert fit.steps == 1
    assert not fit.converged


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
def test_peers_learn_too(method):
    data, truth = examples(1, d=4, k=3, n=200, d_out=None)
    fit = gradient_search(data, 1, method, stream(3, "start"), budget=3.0)
    assert 0 < parameter_error(Layer(fit.Theta, fit.W), truth) < 1e-2
