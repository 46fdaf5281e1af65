"""The algebra of variable projection, against differences; how it ends, and what it tells."""

import numpy as np
import pytest

from attlas.errors import ConvergenceError
from attlas.numerics import Status, stream
from attlas.recovery import parameter_error
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import _normal_equations, best_of, eliminate, variable_projection

from .tasks import examples

STEP = 1e-6


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


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_a_planted_layer_is_found_to_rounding_but_not_exactly(heads):
    data, truth = examples(heads, d=5, k=4, n=300, d_out=None)
    fit = variable_projection(data, random_start(heads, 5, stream(7, "start")))
    error = parameter_error(fit, truth)
    assert 0 < error < 1e-9  # exactly zero would mean that the truth leaked
    assert fit.converged
    assert fit.steps < 40


def test_steps_and_seconds_end_it_and_the_status_says_which():
    data, _ = examples()
    start = random_start(2, 4, stream(0, "start"))
    for options, status in (({"max_steps": 2}, Status.OUT_OF_STEPS), ({"max_seconds": 1e-9}, Status.OUT_OF_TIME)):
        fit = variable_projection(data, start, **options)
        assert fit.status is status
        assert fit.steps == len(fit.history) == options.get("max_steps", 0)
        assert fit.residual > 1e-3
        with pytest.raises(ConvergenceError, match=f"variable projection did not converge: {status}"):
            variable_projection(data, start, **options, throw=True)


def test_time_that_runs_out_is_not_convergence(monkeypatch):
    data, _ = examples()
    ticks = iter([False, *[True] * 100])  # in time for a step, too late to try it
    monkeypatch.setattr(Clock, "out", property(lambda self: next(ticks)))
    fit = variable_projection(data, random_start(2, 4, stream(0, "start")), max_seconds=5.0)
    assert fit.steps == 1
    assert fit.status is Status.OUT_OF_TIME


def test_every_step_is_told():
    data, _ = examples()
    events = []
    fit = variable_projection(data, random_start(2, 4, stream(0, "start")), max_steps=60, progress=events.append)
    assert [event.value for event in events] == fit.history.tolist()
    assert (np.diff(fit.history) <= 0).all()
    assert events[-1].of == 60


def test_the_best_of_several_starts_counts_the_steps_of_all():
    data, _ = examples()
    starts = [random_start(2, 4, stream(seed, "start")) for seed in range(3)]
    events = []
    best = best_of(data, starts, done=0.0, max_steps=4, progress=events.append)
    assert best.residual == min(best.history)
    assert best.steps == 12
    assert [(event.step, event.of) for event in events] == [(1, 3), (2, 3), (3, 3)]
    assert best_of(data, starts, done=0.0, max_seconds=1e-9).status is Status.OUT_OF_TIME
