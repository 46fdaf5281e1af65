"""The convex problem behind training: its certificate, its gradient, and descent and theory beside it."""

import numpy as np
import pytest

from attlas import aim
from attlas.aim.minimise import Problem
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, stream

SOFTMAX = aim.Softmax(2)
ONE_HOT = np.eye(2)[None].repeat(3, 0)


@pytest.mark.parametrize(
    ("channel", "alpha", "decay"), [(SOFTMAX, 0.15, 0.1), (aim.Softmax(3), 0.06, 0.05), (aim.Linear(2, 0.1), 0.1, 0.1)]
)
def test_the_convex_problem_is_solved(channel, alpha, decay):
    """No perturbation lowers the objective, the bound holds, and descent of full width lands in the same place."""
    task = aim.sample(channel, 24, alpha, 0.5, 0)
    found = aim.minimise(task.X, task.y, channel, decay)
    assert found.converged
    assert found.residual < 1e-6
    problem = Problem(task.X, task.y, channel, decay)
    least = problem.value(found.value, problem.residual(found.value))
    rng = stream(1, "perturbation")
    for size in (1e-3, 1e-2, 0.1):
        G = rng.standard_normal((24, 24))
        values, vectors = np.linalg.eigh(found.value + size * (G + G.T))
        other = (vectors * np.maximum(values, 0)) @ vectors.T
        assert problem.value(other, problem.residual(other)) > least
    descended = aim.descend(task.X, task.y, channel, 24, decay=decay, tol=1e-9, max_steps=20_000)
    assert np.sum((descended.value - found.value) ** 2) < 1e-4 * np.sum(found.value**2)
    assert not descended.narrow
    assert descended.gaps.max() < 1e-3


def test_the_gradient_is_that_of_the_objective():
    task = aim.sample(aim.Softmax(3), 6, 0.5, 0.5, 0)
    problem = Problem(task.X, task.y, aim.Softmax(3), 0.1)
    rng = stream(0, "point")
    S, V = rng.standard_normal((2, 6, 6))
    S, V = S @ S.T, V + V.T
    slope = problem.slope(problem.residual(S)) + problem.penalty * np.eye(6)
    value = [problem.value(S + t * V, problem.residual(S + t * V)) for t in (1e-5, -1e-5)]
    assert (value[0] - value[1]) / 2e-5 == pytest.approx(np.sum(slope * V), rel=1e-6)


def test_a_student_too_narrow_is_told():
    task = aim.sample(SOFTMAX, 24, 0.15, 0.5, 0)
    with pytest.warns(UserWarning, match="a student of 4 columns is too narrow"):
        found = aim.descend(task.X, task.y, SOFTMAX, 4, decay=0.03)
    assert found.narrow
    loose = aim.descend(task.X, task.y, SOFTMAX, 24, decay=0.01, tol=1e-3)  # wide enough, and stopped too early
    assert loose.gaps.max() > 0.03
    assert not loose.narrow


def test_simulation_approaches_the_theory():
    """Softmax at alpha = .1, decay = .1: mean over eight seeds at d = 60 within 20 %, of the training error and rank too."""
    theory = aim.trained(SOFTMAX, 0.1, 0.5, 0.1)
    rows = []
    for seed in range(8):
        task = aim.sample(SOFTMAX, 60, 0.1, 0.5, seed)
        found = aim.minimise(task.X, task.y, SOFTMAX, 0.1, tol=1e-4)
        rows.append((found.mse(task.S), found.training, found.rank, found.trace))
    mean, spread = np.mean(rows, 0), np.std(rows, 0, ddof=1) / np.sqrt(8)
    expected = np.array([theory.value, theory.training, theory.rank, theory.trace])
    assert np.all(np.abs(mean - expected) < 0.2 * expected + 3 * spread)
    assert mean[0] > expected[0]  # finite sizes are on the side of more error


def test_too_few_steps_are_not_an_answer():
    task = aim.sample(SOFTMAX, 12, 0.2, 0.5, 0)
    with pytest.raises(ConvergenceError, match="out of steps"):
        aim.minimise(task.X, task.y, SOFTMAX, 0.01, max_steps=5)
    assert aim.minimise(task.X, task.y, SOFTMAX, 0.01, max_steps=5, throw=False).status is Status.OUT_OF_STEPS


def test_progress_is_told():
    task, events = aim.sample(SOFTMAX, 12, 0.2, 0.5, 0), []
    found = aim.minimise(task.X, task.y, SOFTMAX, 0.01, max_steps=5, throw=False, progress=events.append)
    assert [event.value for event in events] == found.history[1:].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: aim.minimise(np.ones((3, 2, 4)), np.full((3, 2, 2), 0.5), SOFTMAX, 0.1, start=-np.eye(4)),
            "semidefinite",
        ),
        (lambda: aim.minimise(np.full((3, 2, 4), 1e200), np.full((3, 2, 2), 0.5), SOFTMAX, 0.1), "too large"),
        (lambda: aim.minimise(np.ones((3, 2, 4)), np.full((2, 2, 2), 0.5), SOFTMAX, 0.1), "3 sequences and y has 2"),
        (lambda: aim.minimise(np.ones((3, 2, 4)), ONE_HOT, aim.Hardmax(2), 0.1), "does not give its indices back"),
        (lambda: aim.minimise(np.ones((3, 2, 4)), np.full((3, 2, 2), 0.5), SOFTMAX, -1), "decay must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
