"""Baseline searches: their gradient against differences, their starts, how they end."""

import numpy as np
import pytest

from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, stream
from attlas.recovery import parameter_error, planted_layer
from attlas.recovery.search import gradient_search, loss_and_gradient, random_start

from .tasks import examples

STEP = 1e-6


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


@pytest.mark.parametrize(("method", "goal"), [("lbfgs", 1e-6), ("adam", 1e-2)])
def test_peers_learn_too(method, goal):
    data, truth = examples(1, d=4, k=3, n=200, d_out=None)
    events = []
    fit = gradient_search(data, 1, method, stream(3, "start"), max_steps=2000, progress=events.append)
    assert 0 < parameter_error(fit, truth) < goal
    assert len(events) == fit.steps // 20 > 0
    assert f"{method}, start 1, gradient 20: error" in events[0].text


def test_how_a_search_ends():
    data, _ = examples(1, d=4, k=3, n=200, d_out=None)

    def search(method="lbfgs", seed=3, **options):
        return gradient_search(data, 1, method, stream(seed, "start"), **options)

    assert search().status is Status.CONVERGED
    assert search(max_steps=2).status is Status.OUT_OF_STEPS
    for method in ("lbfgs", "adam"):
        assert search(method, max_seconds=1e-9).status is Status.OUT_OF_TIME
        with pytest.raises(ConvergenceError, match=f"{method} did not converge: out of steps"):
            search(method, max_steps=3, throw=True)
    several = search(max_starts=4, max_steps=3)
    assert len(several.history) == 4
    with pytest.raises(InputError, match="method must be one of lbfgs, adam"):
        search("newton")
