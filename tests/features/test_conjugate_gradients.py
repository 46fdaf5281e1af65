"""Conjugate gradients against a dense solution, and what they say of how they ended."""

import numpy as np
import pytest

from attlas.errors import ConvergenceError
from attlas.features.conjugate_gradients import Nystrom, conjugate_gradients
from attlas.numerics import Status

rng = np.random.default_rng(0)
PHI = rng.normal(size=(80, 50)) * np.geomspace(1, 1e-3, 50)
K, Y, PENALTY = PHI @ PHI.T, rng.normal(size=(80, 3)), 1e-4
NYSTROM = Nystrom.of(K[:, :20], np.arange(20))


def test_it_is_the_dense_solution():
    events = []
    found = conjugate_gradients(K.__matmul__, Y, PENALTY, NYSTROM, tol=1e-10, progress=events.append)
    np.testing.assert_allclose(found.value, np.linalg.solve(K + PENALTY * np.eye(80), Y), rtol=1e-6)
    assert found.converged
    assert len(found.history) == found.steps + 1 == len(events) + 1
    assert events[-1].value == found.residual <= 1e-10


def test_a_preconditioner_saves_steps():
    none = Nystrom(np.zeros((80, 1)), np.zeros(1))
    steps = [conjugate_gradients(K.__matmul__, Y, PENALTY, one).steps for one in (NYSTROM, none)]
    assert steps[0] < steps[1] / 2


def test_it_says_how_it_ended():
    stopped = conjugate_gradients(K.__matmul__, Y, PENALTY, NYSTROM, max_steps=3, throw=False)
    assert (stopped.status, stopped.steps) == (Status.OUT_OF_STEPS, 3)
    lost = conjugate_gradients(lambda V: V * np.nan, Y, PENALTY, NYSTROM, throw=False)
    assert lost.status is Status.DIVERGED
    with pytest.raises(ConvergenceError, match="conjugate gradients did not converge"):
        conjugate_gradients(K.__matmul__, Y, PENALTY, NYSTROM, max_steps=3)
