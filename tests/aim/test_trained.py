"""Training with weight decay: the theory against published digits, against matrices, and the convex problem itself."""

import importlib

import numpy as np
import pytest

from attlas import aim
from attlas.aim.minimise import Problem
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, stream

SOFTMAX = aim.Softmax(2)
ONE_HOT = np.eye(2)[None].repeat(3, 0)
trained_module = importlib.import_module("attlas.aim.trained")  # `aim.trained` is the function


@pytest.mark.parametrize(
    ("rho", "trace", "psd"),
    [(0.01, 0.046284, 0.50995), (0.1, 0.315144, 0.595), (0.5, 0.844350, 0.875), (0.9, 0.994810, 0.995), (1.0, 1, 1)],
)
def test_thresholds(rho, trace, psd):
    found = aim.trained_threshold(rho)
    assert found.minimum_trace == pytest.approx(trace, abs=5e-7)
    assert found.psd_only == pytest.approx(psd, abs=5e-7)


@pytest.mark.parametrize(
    ("rho", "A", "error", "theta", "delta", "rank", "best", "best_error"),
    [
        (0.5, 0.1, 1.352122, 4.91762, 13.52122, 0.1669, 0.0651, 1.334031),
        (0.5, 0.2, 1.062804, 2.59540, 5.31402, 0.2596, 0.0121, 1.061524),
        (0.5, 0.4, 0.527362, 0.94733, 1.31840, 0.4090, 0, 0.527362),
        (0.5, 0.5, 0.319234, 0.55591, 0.63847, 0.4764, 0, 0.319234),
        (0.5, 0.6, 0.160999, 0.29505, 0.26833, 0.5419, 0, 0.160999),
        (0.5, 0.75, 0.023681, 0.06561, 0.03158, 0.6391, 0, 0.023681),
        (0.5, 0.8, 0.005135, 0.02332, 0.00642, 0.6722, 0, 0.005135),
        (0.1, 0.1, 0.770875, 3.56490, 7.70875, 0.1604, 0.0186, 0.766849),
        (0.1, 0.25, 0.087312, 0.57175, 0.34925, 0.2651, 0, 0.087312),
        (1.0, 0.8, 0.174633, 0.18840, 0.21829, 0.7160, 0, 0.174633),
        (1.0, 0.2, 1.550350, 3.24185, 7.75175, 0.2621, 0.0194, 1.548170),
        (2.0, 0.4, 1.804058, 1.94607, 4.51014, 0.4223, 0, 1.804058),
    ],
)
def test_without_noise_as_decay_vanishes(rho, A, error, theta, delta, rank, best, best_error):
    found = aim.trained(SOFTMAX, A / 4, rho, 0.0)
    assert found.converged
    assert found.value == pytest.approx(error, abs=6e-7)
    assert found.theta == pytest.approx(theta, abs=6e-6)
    assert found.delta == pytest.approx(delta, abs=6e-6)
    assert found.rank == pytest.approx(rank, abs=6e-5)
    assert found.training < 1e-12
    chosen = aim.best_decay(SOFTMAX, A / 4, rho)
    assert chosen.decay == pytest.approx(best, abs=6e-5)
    assert chosen.mse == pytest.approx(best_error, abs=6e-7)


@pytest.mark.parametrize(
    ("alpha", "error", "best", "best_error", "bayes"),
    [(0.1, 1.137865, 0.0494, 1.119045, 0.769450), (0.2, 0.708373, 0.0305, 0.677846, 0.517850),
     (0.3, 0.669192, 0.0380, 0.398399, 0.335698), (0.35, 1.023922, 0.0426, 0.313110, 0.273683),
     (0.4, 0.583598, 0.0468, 0.252328, 0.226729), (0.5, 0.293439, 0.0539, 0.176197, 0.163892),
     (1.0, 0.078216, 0.0761, 0.065138, 0.062935), (2.0, 0.031431, 0.1016, 0.028315, 0.027284)],
)  # fmt: skip
def test_with_noise(alpha, error, best, best_error, bayes):
    channel = aim.Linear(1, 0.25)
    assert aim.trained(channel, alpha, 0.5, 0.0).value == pytest.approx(error, abs=6e-7)
    found = aim.best_decay(channel, alpha, 0.5)
    assert found.decay == pytest.approx(best, abs=6e-5)
    assert (found.mse, found.bayes) == pytest.approx((best_error, bayes), abs=6e-7)
    for factor in (0.8, 1.25):  # it is a minimum
        assert aim.trained(channel, alpha, 0.5, factor * found.decay).value > found.mse


@pytest.mark.parametrize(
    ("rho", "noise", "A", "peak"),
    [(0.5, 0.125, 0.64726, 1.558), (0.5, 0.5, 0.5822, 6.22), (0.1, 0.125, 0.5357, 5.12), (2.0, 0.125, 0.8327, 1.334)],
)
def test_the_peak_is_at_the_interpolation_threshold(rho, noise, A, peak):
    channel = aim.Linear(1, 2 * noise)
    alpha, error = aim.interpolation_threshold(channel, rho)
    assert 2 * alpha == pytest.approx(A, abs=6e-5)
    assert error == pytest.approx(peak, rel=5e-4)
    below, above = (aim.trained(channel, alpha * factor, rho, 0.0) for factor in (0.97, 1.03))
    assert max(below.value, above.value) < error
    assert below.training < 1e-10 < above.training


@pytest.mark.parametrize("rho", [1e-3, 0.19, 0.2, 0.25, 0.99, 1.0, 1.01, 5.0, 100.0])
def test_any_width(rho):
    """Solved, without a warning, by all three ways; and tiny decays are as good as their limit."""
    found = aim.trained(SOFTMAX, 0.1, rho, 0.05)
    assert found.converged
    assert aim.trained_curve(SOFTMAX, 0.1, rho, 0.05)["mse"].item() == pytest.approx(found.value, rel=1e-9)
    limit, tiny = (aim.trained(SOFTMAX, 0.05 * min(rho, 1), rho, decay) for decay in (0.0, 1e-10))
    assert tiny.converged
    assert tiny.value == pytest.approx(limit.value, rel=1e-6)
    alpha, peak = aim.interpolation_threshold(aim.Linear(1, 0.25), rho)
    assert 0.25 <= alpha <= 0.5
    assert np.isfinite(peak)


def test_the_limit_is_a_limit():
    """Small decays approach decay = 0, on both sides of the threshold of perfect recovery."""
    for alpha in (0.1, 0.15):
        limit = aim.trained(SOFTMAX, alpha, 0.5, 0.0)
        errors = [abs(aim.trained(SOFTMAX, alpha, 0.5, decay).value - limit.value) for decay in (1e-3, 1e-4, 1e-5)]
        assert errors[0] > errors[1] > errors[2]
        assert errors[2] < 1e-4
    assert aim.trained(SOFTMAX, 0.22, 0.5, 0.0).value == 0
    assert 0 < aim.trained(SOFTMAX, 0.22, 0.5, 1e-4).value < 1e-4


def test_softmax_is_linear_of_as_many_measurements():
    first = aim.trained(aim.Softmax(3), 0.05, 0.5, 0.01)
    second = aim.trained(aim.Linear(1), 0.05 * 10 / 2, 0.5, 0.01)
    assert first.value == pytest.approx(second.value, rel=1e-10)
    assert first.value == pytest.approx(0.3370, abs=5e-5)


@pytest.mark.parametrize(
    ("delta", "theta", "rho"), [(0.5, 0.3, 0.5), (1.0, 0.8, 0.2), (2.0, 0.1, 1.5), (0.01, 0.1, 0.5)]
)
def test_integrals_against_a_matrix(delta, theta, rho):
    """R of dimension 800 drawn and shrunk, four times: error, rank, trace and overlap to four standard errors and 3/d."""
    d = 800
    at = aim.family(delta, theta, rho)
    drawn = []
    for seed in range(4):
        S = aim.teacher(d, rho, stream(seed, "teacher"))
        G = stream(seed, "noise").standard_normal((d, d)) / np.sqrt(d)
        values, vectors = np.linalg.eigh(S + np.sqrt(delta / 2) * (G + G.T))
        shrunk = np.maximum(values - theta, 0)
        overlaps = np.einsum("ij,ij->j", vectors, S @ vectors)
        error = (np.sum(shrunk**2) - 2 * shrunk @ overlaps + np.sum(S * S)) / d
        gaps = values[:, None] - values[None, :] + np.eye(d)
        ratio = (shrunk[:, None] - shrunk[None, :]) / gaps
        drawn.append([error, (shrunk > 0).mean(), shrunk.mean(), shrunk @ overlaps / d, ratio.sum() / d**2])
    mean, spread = np.mean(drawn, 0), np.std(drawn, axis=0, ddof=1) / 2
    D = float(at.A - 2 * at.decay / theta)
    expected = [float(at.mse), float(at.rank), float(at.trace), float(at.overlap), D]
    assert np.all(np.abs(mean - expected) < 4 * spread + 3 / d)


def test_the_spectrum_holds_the_rank():
    for found in (aim.trained(SOFTMAX, 0.15, 0.5, 0.01), aim.trained(SOFTMAX, 0.3, 0.5, 0.0)):
        x = np.linspace(0, 8, 200_001)
        density = found.spectrum(x)
        assert np.trapezoid(density, x) == pytest.approx(found.rank, abs=2e-4)
        assert np.trapezoid(density * x, x) == pytest.approx(found.trace, abs=2e-4)
        assert found.zero_mass == 1 - found.rank
        assert found.spectrum(-1.0) == 0
    assert found.rank == 0.5


def test_large_decay_leaves_nothing():
    found = aim.trained(SOFTMAX, 0.1, 0.5, 100.0)
    assert (found.value, found.rank, found.trace) == pytest.approx((1.5, 0, 0), abs=1e-12)


def test_a_grid_is_its_points():
    data = aim.trained_curve(SOFTMAX, [0.05, 0.15, 0.25], 0.5, [0.0, 0.01, 0.3])
    assert data["converged"].values.all()
    assert data["residual"].max() < 1e-6
    for i, decay in enumerate(data["decay"].values):
        for j, alpha in enumerate(data["alpha"].values):
            found = aim.trained(SOFTMAX, alpha, 0.5, decay)
            for name, value in (("mse", found.value), ("rank", found.rank), ("trace", found.trace)):
                assert data[name].values[i, j] == pytest.approx(value, rel=1e-8, abs=1e-10)


def test_the_map_back():
    found = aim.trained(SOFTMAX, 0.1, 0.5, 0.03)
    back = aim.family([found.delta], [found.theta], 0.5)
    assert (back.A[0], back.decay[0], back.mse[0]) == pytest.approx((0.4, 0.03, found.value), rel=1e-10)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.trained(SOFTMAX, 0.1, 0.5, -0.1), "decay must be a finite number of at least 0"),
        (lambda: aim.trained(aim.Hardmax(2), 0.1, 0.5, 0.1), "as Softmax and Linear do; got Hardmax"),
        (lambda: aim.trained(SOFTMAX, 0.0, 0.5, 0.1), "alpha must be"),
        (lambda: aim.trained(SOFTMAX, 0.1, 1e9, 0.1), "rho must be at most"),
        (lambda: aim.trained(SOFTMAX, 0.1, 0.5, 1e300), "decay must be at most"),
        (lambda: aim.trained(aim.Linear(1, 1e13), 0.1, 0.5, 0.1), "noise on a measurement must be 0, or from"),
        (lambda: aim.interpolation_threshold(aim.Linear(1, 1e-30), 0.5), "noise on a measurement must be 0, or from"),
        (lambda: aim.family([0.1, 0.2], [0.1, 0.2, 0.3], 0.5), "do not combine"),
        (lambda: aim.family(1e15, 0.0, 0.5), "delta must be at most"),
        (
            lambda: aim.minimise(np.ones((3, 2, 4)), np.full((3, 2, 2), 0.5), SOFTMAX, 0.1, start=-np.eye(4)),
            "semidefinite",
        ),
        (lambda: aim.minimise(np.full((3, 2, 4), 1e200), np.full((3, 2, 2), 0.5), SOFTMAX, 0.1), "too large"),
        (lambda: aim.trained(SOFTMAX, 0.1, 0.0, 0.1), "rho must be"),
        (lambda: aim.best_decay(aim.Hardmax(2), 0.1, 0.5), "as Softmax and Linear do; got Hardmax"),
        (lambda: aim.trained_curve(SOFTMAX, [[0.1]], 0.5, [0.1]), "numbers or lists"),
        (lambda: aim.trained_diagram(SOFTMAX, [0.2, 0.1], 0.5, [0.1, 0.2]), "alpha must be an increasing list"),
        (lambda: aim.minimise(np.ones((3, 2, 4)), np.full((2, 2, 2), 0.5), SOFTMAX, 0.1), "3 sequences and y has 2"),
        (lambda: aim.minimise(np.ones((3, 2, 4)), ONE_HOT, aim.Hardmax(2), 0.1), "does not give its indices back"),
        (lambda: aim.minimise(np.ones((3, 2, 4)), np.full((3, 2, 2), 0.5), SOFTMAX, -1), "decay must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_too_few_steps_are_not_an_answer():
    task = aim.sample(SOFTMAX, 12, 0.2, 0.5, 0)
    with pytest.raises(ConvergenceError, match="out of steps"):
        aim.minimise(task.X, task.y, SOFTMAX, 0.01, max_steps=5)
    assert aim.minimise(task.X, task.y, SOFTMAX, 0.01, max_steps=5, throw=False).status is Status.OUT_OF_STEPS


def test_what_is_not_solved_is_told(monkeypatch):
    """A tolerance that nothing reaches: numbers raise unless asked not to, grids say where."""
    monkeypatch.setattr(trained_module, "RESIDUAL", 0.0)
    for call in (
        lambda **o: aim.trained(SOFTMAX, 0.1, 0.5, 0.1, **o),
        lambda **o: aim.best_decay(SOFTMAX, 0.05, 0.5, **o),
    ):
        with pytest.raises(ConvergenceError, match="the theory of training did not converge"):
            call()
        assert not call(throw=False).converged
    assert not aim.trained_curve(SOFTMAX, 0.1, 0.5, 0.1)["converged"].values.any()


def test_progress_of_a_minimum_and_of_a_grid_is_told():
    task, events = aim.sample(SOFTMAX, 12, 0.2, 0.5, 0), []
    found = aim.minimise(task.X, task.y, SOFTMAX, 0.01, max_steps=5, throw=False, progress=events.append)
    assert [event.value for event in events] == found.history[1:].tolist()
    events.clear()
    aim.trained_curve(SOFTMAX, [0.05, 0.1], 0.5, [0.1], progress=events.append)
    assert [event.step for event in events] == sorted(event.step for event in events)
    assert events[-1].share == 1
    assert len(events) > 3
