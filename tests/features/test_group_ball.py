"""The set of the norm-constrained estimator, and the certificate of its minimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from attlas.errors import ConvergenceError
from attlas.features.group_ball import CHECK, GroupBall, huber, minimise
from attlas.numerics import Status

BALLS = [GroupBall(1.0), GroupBall(1.0, 0.3), GroupBall(1.5, 0.25), GroupBall(50.0, 0.5), GroupBall(50.0)]


def norms(V):
    return np.linalg.norm(V, axis=1)


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("seed", range(3))
def test_the_projection_is_the_nearest_point(ball, seed):
    """Against a general solver, on the norms: directions do not change."""
    V = np.random.default_rng(seed).normal(size=(6, 3))
    found = ball.project(V)
    assert norms(found).sum() <= ball.radius * (1 + 1e-12)
    assert (found**2).sum() <= ball.energy * (1 + 1e-12)
    a = norms(V)
    constraints = [{"type": "ineq", "fun": lambda b: ball.radius - b.sum()}]
    if np.isfinite(ball.energy):
        constraints.append({"type": "ineq", "fun": lambda b: ball.energy - b @ b})
    peer = minimize(
        lambda b: 0.5 * np.sum((a - b) ** 2),
        np.full(6, 0.01),
        bounds=[(0, None)] * 6,
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(norms(found), peer.x, atol=1e-5)
    np.testing.assert_allclose(found * a[:, None], V * norms(found)[:, None], atol=1e-12)


@pytest.mark.parametrize("ball", BALLS)
def test_the_support_function_is_reached_and_never_passed(ball):
    rng = np.random.default_rng(0)
    G = rng.normal(size=(6, 3))
    inside = [ball.project(rng.normal(size=(6, 3)) * 10) for _ in range(200)]
    top = ball.support(G)
    assert max(np.sum(G * V) for V in inside) <= top * (1 + 1e-9)
    V = np.zeros_like(G)
    for _ in range(3000):
        V = ball.project(V + 0.05 * G)
    assert np.sum(G * V) == pytest.approx(top, rel=1e-5)


@pytest.mark.parametrize("n", [12, 60])  # fewer and more samples than numbers
def test_the_certificate_holds(n):
    rng = np.random.default_rng(n)
    F, y, ball = rng.normal(size=(n, 20)), rng.normal(size=n), GroupBall(1.2, 0.5)
    found = minimise(F, y, ball, 5, 0.1, tol=1e-7, max_steps=20000)
    assert found.residual <= 1e-7
    assert norms(found.value).sum() <= 1.2 * (1 + 1e-9)

    def risk(V):
        return huber(F @ V.ravel() - y, 0.1).mean()

    assert risk(found.value) == pytest.approx(found.risk, rel=1e-12)
    for scale in (1e-3, 0.1, 1.0):  # nothing in the set, near or far, is better by more than the gap
        for _ in range(100):
            assert risk(ball.project(found.value + scale * rng.normal(size=(5, 4)))) >= found.risk - found.residual
    # and stopped early the bound still contains the truth
    early = minimise(F, y, ball, 5, 0.1, tol=1e-9, max_steps=20, throw=False)
    assert early.risk - early.residual <= found.risk <= early.risk


def test_it_says_how_it_ended_and_how_far_it_has_come():
    rng = np.random.default_rng(0)
    problem = rng.normal(size=(30, 20)), rng.normal(size=30), GroupBall(1.2, 0.5), 5, 0.1
    events = []
    found = minimise(*problem, tol=1e-3, progress=events.append)
    assert found.status is Status.CONVERGED
    assert [event.step for event in events] == [CHECK * i for i in range(len(found.history))]
    assert [event.value for event in events] == found.history.tolist()
    assert found.history[-1] == found.residual <= 1e-3
    stopped = minimise(*problem, tol=1e-12, max_steps=15, throw=False)
    assert (stopped.status, stopped.steps) == (Status.OUT_OF_STEPS, 15)
    with pytest.raises(ConvergenceError, match="max_steps"):
        minimise(*problem, tol=1e-12, max_steps=15)
