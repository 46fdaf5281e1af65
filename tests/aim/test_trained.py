"""Training with weight decay: the theory against published digits and against itself."""

import importlib

import numpy as np
import pytest

from attlas import aim
from attlas.errors import ConvergenceError, InputError

SOFTMAX = aim.Softmax(2)
trained_module = importlib.import_module("attlas.aim.trained")  # `aim.trained` is the function


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.trained(SOFTMAX, 0.1, 0.5, -0.1), "decay must be a finite number of at least 0"),
        (lambda: aim.trained(aim.Hardmax(2), 0.1, 0.5, 0.1), "as Softmax and Linear do; got Hardmax"),
        (lambda: aim.trained(SOFTMAX, 0.0, 0.5, 0.1), "alpha must be"),
        (lambda: aim.trained(SOFTMAX, 0.1, 1e9, 0.1), "rho must be at most"),
        (lambda: aim.trained(SOFTMAX, 0.1, 0.5, 1e30), "decay must be at most"),
        (lambda: aim.trained(aim.Linear(1, 1e13), 0.1, 0.5, 0.1), "noise on a measurement must be 0, or from"),
        (lambda: aim.interpolation_threshold(aim.Linear(1, 1e-30), 0.5), "noise on a measurement must be 0, or from"),
        (lambda: aim.trained(SOFTMAX, 0.1, 0.0, 0.1), "rho must be"),
        (lambda: aim.best_decay(aim.Hardmax(2), 0.1, 0.5), "as Softmax and Linear do; got Hardmax"),
        (lambda: aim.trained_curve(SOFTMAX, [[0.1]], 0.5, [0.1]), "numbers or lists"),
        (lambda: aim.trained_diagram(SOFTMAX, [0.2, 0.1], 0.5, [0.1, 0.2]), "alpha must be an increasing list"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


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


def test_progress_of_a_grid_is_told():
    events = []
    aim.trained_curve(SOFTMAX, [0.05, 0.1], 0.5, [0.1], progress=events.append)
    assert [event.step for event in events] == sorted(event.step for event in events)
    assert events[-1].share == 1
    assert len(events) > 3
