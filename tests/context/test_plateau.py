import numpy as np
import pytest

from attlas.context import plateau
from attlas.errors import InputError
from attlas.numerics import stream

TIMES = np.linspace(0, 100, 2001)


@pytest.mark.parametrize(("scale", "close"), [(1e-2, 2e-3), (1e-4, 5e-5)])
def test_the_drop_is_logistic(scale, close):
    flow = plateau.gradient_flow(TIMES, 20, 2, 0.1, scale, seed=1)
    logistic = plateau.logistic_error(TIMES, 20, 2, 0.1, flow.start)
    assert np.abs(flow.value - logistic).max() < close
    assert flow.half_time == pytest.approx(plateau.half_time(20, 2, 0.1, flow.start), abs=0.02)
    assert flow.value[-1] == pytest.approx(0.465079, abs=5e-7)


def test_the_plateau_lengthens_by_half_the_root_of_d_for_every_factor_e_of_the_start():
    waits = [plateau.half_time(20, 2, 0.1, start) for start in (1e-4, 1e-4 / np.e)]
    assert waits[1] - waits[0] == pytest.approx(np.sqrt(20) / 2, rel=1e-3)


def test_three_numbers_stand_for_the_whole_matrix():
    """Small steps of descent on (v, U) with the gradient of the error by hand."""
    d, alpha, noise, scale, step = 5, 2, 0.1, 0.1, 2e-3
    b = 1 + 1 / 10 + 1.1 / 2
    v, U = scale, scale * stream(3, "start").standard_normal((d, d)) / np.sqrt(d)
    errors = []
    for _ in range(8001):
        errors.append(1 + noise - 2 * v * np.trace(U) / d + b * v**2 * np.sum(U**2) / d)
        v, U = (v + step * (np.trace(U) / d - b * v * np.sum(U**2) / d), U + step * (v * np.eye(d) - b * v**2 * U) / d)
    flow = plateau.gradient_flow(step * np.arange(8001), d, alpha, noise, scale, seed=3)
    assert np.abs(flow.value - errors).max() < 2e-3


def test_halfway_of_the_law_is_half_of_the_drop():
    t = plateau.half_time(30, 3, 0.2, 1e-5)
    b = 1 + 1 / 90 + 1.2 / 3
    assert plateau.logistic_error([t], 30, 3, 0.2, 1e-5)[0] == pytest.approx(1.2 - 1 / (2 * b), abs=1e-12)


def test_bad_input():
    for arguments in ((0, 2, 0.1, 1e-3), (20, 0, 0.1, 1e-3), (20, 2, 0.1, 0.0)):
        with pytest.raises(InputError):
            plateau.half_time(*arguments)
    assert np.isnan(plateau.gradient_flow(np.linspace(0, 1, 5), 20, 2, 0.1, 1e-3).half_time)


@pytest.mark.parametrize("times", [[0.0], [3, 1, 2]])
def test_times_that_do_not_rise_are_refused(times):
    with pytest.raises(InputError, match="times must rise"):
        plateau.gradient_flow(times, d=20, alpha=2, noise=0.1, scale=0.01)


def test_a_start_beyond_the_drop_has_no_half_time():
    with pytest.raises(InputError, match="start must be below"):
        plateau.half_time(20, 2, 0.1, 0.9)
