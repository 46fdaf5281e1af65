"""Training S entry by entry: the theory against closed forms and simulation, the solver against linear algebra."""

import numpy as np
import pytest

from attlas import aim
from attlas.errors import ConvergenceError, InputError

LINEAR = aim.Linear(1, 0.25)


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.4, 0.6, 1.0])
def test_without_decay_it_is_the_known_formula(alpha):
    """Hastie et al. 2022: Q (1 - A) + sig2 A/(1 - A) below A = 1, sig2/(A - 1) above; here A = 2 alpha, sig2 = noise/2."""
    A, sig2, Q = 2 * alpha, 0.125, 1.5
    expected = Q * (1 - A) + sig2 * A / (1 - A) if A < 1 else sig2 / (A - 1)
    assert aim.entrywise(LINEAR, alpha, 0.5, 0.0).value == pytest.approx(expected, rel=1e-12)
    assert aim.entrywise(LINEAR, alpha, 0.5, 1e-9).value == pytest.approx(expected, rel=1e-6)


def test_the_ends():
    assert aim.entrywise(LINEAR, 0.5, 0.5, 0.0).value == np.inf  # A = 1, with noise
    assert aim.entrywise(aim.Softmax(2), 0.25, 0.5, 0.0).value == 0  # A = 1, without
    strong = aim.entrywise(LINEAR, 0.4, 0.5, 1e5)
    assert (strong.value, strong.trace) == pytest.approx((1.5, 0), abs=1e-4)
    assert aim.entrywise(aim.Softmax(2), 0.5, 0.5, 0.0).negative == 0


def test_the_equations_hold_and_the_best_decay_is_the_noise_over_the_signal():
    for decay in (0.01, 0.1, 1.0):
        found = aim.entrywise(LINEAR, 0.3, 0.5, decay)
        A, grown = 0.6, 1 + found.omega
        assert A * found.delta == pytest.approx(0.125 + found.value)
        assert found.value == pytest.approx((found.omega**2 * 1.5 + found.delta) / grown**2)
        assert decay == pytest.approx(found.omega * (A - 1 / grown) / 2)
    best = aim.entrywise(LINEAR, 0.3, 0.5, 0.125 / 3)
    for factor in (0.8, 1.25):
        assert aim.entrywise(LINEAR, 0.3, 0.5, factor * best.decay).value > best.value


def test_the_spectrum_is_whole():
    found = aim.entrywise(LINEAR, 0.4, 0.5, 0.1)
    x = np.linspace(-6, 8, 200_001)
    density = found.spectrum(x)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-4)
    assert np.trapezoid(density * x, x) == pytest.approx(found.trace, abs=1e-4)
    assert np.trapezoid(density[x < 0], x[x < 0]) == pytest.approx(found.negative, abs=1e-4)


@pytest.mark.parametrize("decay", [0.3, 0.0])
def test_the_solver_is_linear_algebra(decay):
    """Five dimensions, fifteen unknowns, by a dense solver: the normal equations, or the least norm without decay."""
    d = 5
    task = aim.sample(LINEAR, d, 0.4, 0.6, 1)
    rows = np.array([(np.outer(x, x) - np.eye(d)).ravel() for x in task.X[:, 0]]) / np.sqrt(d)
    y = task.y[:, 0, 0]
    dense = (
        np.linalg.solve(rows.T @ rows / 2 + decay * d * np.eye(d * d), rows.T @ y / 2)
        if decay
        else np.linalg.pinv(rows) @ y
    )
    found = aim.minimise_entrywise(task.X, task.y, LINEAR, decay, tol=1e-12)
    assert found.value == pytest.approx(dense.reshape(d, d), abs=1e-8)
    assert found.mse(task.S) == pytest.approx(float(np.sum((dense.reshape(d, d) - task.S) ** 2)) / d)
    assert (np.diff(found.history) <= 1e-12).all()


@pytest.mark.parametrize(("channel", "alpha", "decay"), [(LINEAR, 0.4, 0.1), (aim.Softmax(2), 0.15, 0.2)])
def test_theory_meets_simulation(channel, alpha, decay):
    """Within three standard errors and the excess 1/d of finite sizes."""
    theory, d = aim.entrywise(channel, alpha, 0.5, decay), 48
    ratios = []
    for seed in range(12):
        task = aim.sample(channel, d, alpha, 0.5, seed)
        found = aim.minimise_entrywise(task.X, task.y, channel, decay, tol=1e-6)
        size = float(np.sum(task.S**2)) / d / 1.5
        negative = float(np.mean(np.linalg.eigvalsh(found.value) < 0))
        ratios.append(
            (
                found.mse(task.S) / size / theory.value,
                found.training / size / theory.training,
                found.trace / theory.trace,
                negative / theory.negative,
            )
        )
    mean, error = np.mean(ratios, 0), np.std(ratios, 0, ddof=1) / np.sqrt(len(ratios))
    assert (np.abs(mean - 1) < 3 * error + 3 / d).all(), (mean, error)
    assert error.max() < 0.06


def test_bad_input():
    with pytest.raises(InputError, match="alpha"):
        aim.entrywise(LINEAR, 0.0, 0.5, 0.1)
    with pytest.raises(InputError, match="decay"):
        aim.entrywise(LINEAR, 0.1, 0.5, -1.0)
    task = aim.sample(LINEAR, 8, 0.4, 0.5, 0)
    with pytest.raises(ConvergenceError, match="ridge regression"):
        aim.minimise_entrywise(task.X, task.y, LINEAR, 0.1, max_steps=1)
    assert not aim.minimise_entrywise(task.X, task.y, LINEAR, 0.1, max_steps=1, throw=False).converged
