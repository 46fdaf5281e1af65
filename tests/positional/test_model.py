"""The model: what is refused, and the loss in rotated tokens against the layer itself."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.numerics import Status
from attlas.positional import (
    Model,
    Objective,
    Order,
    baseline,
    bayes_error,
    crossing,
    curve,
    message_passing,
    minimise,
    proximal_map,
    read_attention,
    read_gram,
    sample,
    sample_teacher,
    sharpness,
    spectral,
    state_evolution,
    switch,
    tabulated,
)
from attlas.positional.baseline import mean_attention

F = Model(0.3, 3.0)
TASK, MEANT = sample(F, 6, 3), sample_teacher(2, 6, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mixture": 1.0, "encoding": 3.0}, r"mixture must be in \[0, 1\); got 1.*take 0.99"),
        ({"mixture": -0.1, "encoding": 3.0}, "mixture must be a finite number of at least 0; got -0.1"),
        ({"mixture": 0.3, "encoding": -1.0}, "encoding must be a finite number of at least 0"),
        ({"mixture": 0.3, "encoding": 3.0, "token_scale": 0.0}, "token_scale must be a finite number greater than 0"),
        ({"mixture": 0.3, "encoding": 3.0, "decay": 0.0}, "decay must be a finite number greater than 0"),
        (
            {"mixture": 0.3, "encoding": 3.0, "positional_matrix": [[0.6, 0.5], [0.4, 0.6]]},
            "every row must sum to one; got rows that sum to 1.1 and 1; divide each row by its sum",
        ),
        ({"mixture": 0.3, "encoding": 3.0, "positional_matrix": [[1.2, -0.2], [0.4, 0.6]]}, "no negative entry"),
        (
            {"mixture": 0.3, "encoding": 3.0, "positional_matrix": np.full((3, 3), 1 / 3)},
            r"theory of training is for two tokens; got shape \(3, 3\)",
        ),
        ({"mixture": 0.3, "encoding": 3.0, "tokens": 3}, "theory of training is for two tokens; got tokens=3; take 2"),
    ],
)
def test_models_that_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Model(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: state_evolution(m, 0), "alpha must be a finite number greater than 0; got 0"),
        (lambda m: state_evolution(m, -1.0), "alpha must be a finite number greater than 0; got -1.0"),
        (lambda m: state_evolution(m, 3, "sideways"), "branch must be"),
        (lambda m: state_evolution(m, 3, tol=1e-12), "tol must be at least 1e-08"),
        (lambda m: state_evolution(Model(0.3, 0.0), 3, "positional"), 'got encoding=0.*branch="semantic"'),
        (lambda m: state_evolution(Model(0.3, 1e20), 3, "positional"), "an encoding between 0.001 and 1e\\+06"),
        (lambda m: state_evolution(Model(0.3, 1e-12), 3, "positional"), "there is no positional minimum"),
        (lambda m: switch(Model(0.3, 0.0)), "no switch without an encoding; got encoding=0"),
        (lambda m: sample(m, 1, 3), "d must be an integer of at least 2"),
        (lambda m: sample(m, 10, 0.01), "give no sample; take alpha of at least 0.1"),
        (lambda m: sample(m, 10, 3, values="other"), 'values must be "plain" or "encoded"'),
        (lambda m: proximal_map(0.1, 0.2, 0.5, 1.5, 1.0), r"attention weights in \[0, 1\]; got 1.5"),
        (lambda m: proximal_map(0.1, 0.2, 0.5, 0.5, 0.0), "V must be a finite number greater than 0"),
    ],
)
def test_what_else_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(Model(0.3, 3.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda call=call: call("F"), "model must be a Model") for call in (baseline, switch, crossing)),
        (lambda: state_evolution("F", 3), "model must be a Model, such as Model"),
        (lambda: sample(None, 10, 3), "model must be a Model"),
        (lambda: curve(None, 3), "model must be a Model"),
        (lambda: bayes_error(None, 0.3), "model must be a Model"),
        (lambda: tabulated(None, 3, "semantic"), "model must be a Model"),
        (lambda: minimise(None), "task must be a Task, such as sample"),
        (lambda: Objective(None), "task must be a Task"),
        (lambda: sharpness(None, [1.0]), "task must be a Task"),
        (lambda: state_evolution(F, 3, start="x"), "start must be an Order"),
        (lambda: state_evolution(F, 3, start=(1, 2)), "start must be an Order"),
        (lambda: state_evolution(F, 3, start=Order(1e200, 0, 0.3, 1)), "q of start must be a finite number"),
        (lambda: tabulated(F, 3, "x"), "branch must be"),
        (lambda: tabulated(F, 3, "semantic", tol="a"), "tol must be a number"),
        (lambda: tabulated(F, 3, "semantic", tol=np.nan), "tol must be a finite number"),
        (
            lambda: bayes_error(Model(0.3, 3.0, 5.0), 0.3),
            "best test error is computed for token_scale between 0.001 and 2",
        ),
        (lambda: sample(F, 50, 1e9), "more than any memory holds"),
        (lambda: sample(F, 10**15, 3), "more than any memory holds"),
        (lambda: sample_teacher(10**9, 10**4, 3), "more than any memory holds"),
        (lambda: minimise(TASK, 1e200 * np.ones(6)), "entries of size one or so"),
        (lambda: minimise(TASK, step="a"), "step must be a number"),
        (lambda: sharpness(TASK, 1e200 * np.ones(6)), "entries of size one or so"),
        (lambda: read_gram(MEANT.attention, "a"), "rank must be an integer"),
        (lambda: read_gram(MEANT.attention, -3), "rank must be an integer of at least 1"),
        (lambda: proximal_map([1.0, 2.0], [1.0, 2.0, 3.0], 0.5, 0.5, 1.0), "shapes that fit each other"),
        (lambda: proximal_map(1.0, 1.0, 0.5, 0.5, 1e30), "V token_scale"),
        (lambda: spectral(MEANT.X, MEANT.attention).overlap(np.zeros((6, 1))), "W must have rank 1"),
        (lambda: read_attention(0 * MEANT.X, MEANT.y), "X is zero"),
        (lambda: read_attention(MEANT.X[:, [0, 0]], MEANT.y), "tokens that are not independent"),
        (lambda: message_passing(MEANT.X, z=MEANT.z[:, :, 0], start=5), "start must be a pair"),
        (lambda: message_passing(MEANT.X, z=MEANT.z[:, :, 0], start=(np.ones(6),)), "start must be a pair"),
        (lambda: message_passing(1e200 * MEANT.X, z=MEANT.z[:, :, 0]), "X must be Gaussian tokens of this scale"),
        (lambda: message_passing(MEANT.X, z=1e150 * MEANT.z[:, :, 0]), "z must be x.Q"),
        (lambda: message_passing(MEANT, token_scale=2.0), "a task knows its outputs"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_descent_that_runs_away_says_so():
    assert minimise(TASK, method="descent", step=100.0, throw=False).status is Status.DIVERGED


def test_the_loss_in_rotated_tokens_is_that_of_the_layer():
    model = Model(0.3, 2.0, 0.7, positional_matrix=[[0.6, 0.4], [0.1, 0.9]])
    rng = np.random.default_rng(0)
    h, z = rng.standard_normal((2, 50, 2))

    def softmax(h):
        weights = np.exp(h[:, :, None] * h[:, None, :])
        return weights / weights.sum(2, keepdims=True)

    T = 0.7 * softmax(z) + 0.3 * np.array([[0.6, 0.4], [0.1, 0.9]])
    expected = 0.5 * 0.7**2 * np.sum((softmax(h) - T) ** 2, axis=(1, 2))

    def rotated(h):
        return (h[:, 0] - h[:, 1]) / np.sqrt(2), (h[:, 0] + h[:, 1]) / np.sqrt(2)

    targets = model.targets(*rotated(z))
    np.testing.assert_allclose(targets, [T[:, 0, 0], T[:, 1, 1]], rtol=1e-13)
    np.testing.assert_allclose(model.loss(*rotated(h), *targets), expected, rtol=1e-12)
    np.testing.assert_allclose(model.loss(*rotated(-h), *targets), expected, rtol=1e-12)  # h and -h are one layer


def test_baseline_of_wide_and_of_small_tokens():
    """Wide tokens: attention is 1 with probability 3/4, else 0. Small ones: sig(x) = 1/2 + x/4, Var S(S + R) = 3 sigma^4."""
    for scale in (1e2, 1e6):
        limit = 4 * scale**2 * 0.49 * 3 / 16
        assert baseline(Model(0.3, 3.0, scale)) == pytest.approx(limit, rel=20 / scale)
    assert baseline(Model(0.3, 3.0, 1e-3)) == pytest.approx(4 * 1e-6 * 0.49 * 3e-12 / 16, rel=1e-5)


@pytest.mark.parametrize(
    ("mixture", "scale", "value"), [(0.3, 1, 0.0728612832), (0.5, 1, 0.0371741241), (0.3, 0.5, 0.0039427687)]
)
def test_baseline(mixture, scale, value):
    """To the ten digits of an independent computation, and within four standard errors of a simulation."""
    model = Model(mixture, 3.0, scale)
    assert baseline(model) == pytest.approx(value, abs=5e-11)
    assert mean_attention(model).sum(1) == pytest.approx([1, 1])
    S, R = scale * np.random.default_rng(1).standard_normal((2, 200_000))
    assert mean_attention(model)[0, 0] == pytest.approx(model.targets(S, R)[0].mean(), abs=2e-3)
    S, R = scale * np.random.default_rng(0).standard_normal((2, 200_000))
    squares = 2 * scale**2 * sum((t - t.mean()) ** 2 for t in model.targets(S, R))
    assert abs(squares.mean() - value) < 4 * squares.std() / np.sqrt(len(S))
