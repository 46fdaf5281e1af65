"""The model: what is refused, and the loss in rotated tokens against the layer itself."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.positional import Model, baseline, proximal_map, sample, state_evolution, switch


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


@pytest.mark.parametrize(
    ("mixture", "scale", "value"), [(0.3, 1, 0.0728612832), (0.5, 1, 0.0371741241), (0.3, 0.5, 0.0039427687)]
)
def test_baseline(mixture, scale, value):
    """To the ten digits of an independent computation, and within four standard errors of a simulation."""
    model = Model(mixture, 3.0, scale)
    assert baseline(model) == pytest.approx(value, abs=5e-11)
    S, R = scale * np.random.default_rng(0).standard_normal((2, 200_000))
    squares = 2 * scale**2 * sum((t - t.mean()) ** 2 for t in model.targets(S, R))
    assert abs(squares.mean() - value) < 4 * squares.std() / np.sqrt(len(S))
