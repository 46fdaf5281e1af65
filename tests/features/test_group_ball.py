"""The norm-constrained estimator: its set, its certificate, what it keeps."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from attlas import tokens
from attlas.errors import InputError
from attlas.features import ConstrainedAttentionRegressor, targets
from attlas.features.group_ball import GroupBall, huber, minimise

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
    found = minimise(F, y, ball, 5, 0.1, 1e-7, 20000)
    assert found.gap <= 1e-7
    assert norms(found.V).sum() <= 1.2 * (1 + 1e-9)

    def risk(V):
        return huber(F @ V.ravel() - y, 0.1).mean()

    assert risk(found.V) == pytest.approx(found.risk, rel=1e-12)
    for scale in (1e-3, 0.1, 1.0):  # nothing in the set, near or far, is better by more than the gap
        for _ in range(100):
            assert risk(ball.project(found.V + scale * rng.normal(size=(5, 4)))) >= found.risk - found.gap
    # and stopped early the bound still contains the truth
    early = minimise(F, y, ball, 5, 0.1, 1e-9, 20)
    assert early.risk - early.gap <= found.risk <= early.risk


X = tokens.sphere(200, 5, 4, 0)
y = targets.KeyAverage(np.eye(4)[0], 2)(X)


def test_fewer_heads_are_kept_in_a_smaller_ball():
    def fitted(radius):
        return ConstrainedAttentionRegressor(50, radius=radius, random_state=0).fit(X, y)

    small, large = fitted(0.3), fitted(30.0)
    assert len(small.kept_heads_) < len(large.kept_heads_) <= 50
    assert norms(small.coef_).sum() == pytest.approx(0.3, rel=1e-3)
    assert small.risk_ > large.risk_
    order = norms(small.coef_)[small.kept_heads_]
    assert (np.diff(order) <= 0).all()
    assert (order > 0).all()


def test_a_bound_on_the_energy_spreads_the_values():
    free = ConstrainedAttentionRegressor(50, radius=1.0, random_state=0).fit(X, y)
    spread = ConstrainedAttentionRegressor(50, radius=1.0, energy=2.0, random_state=0).fit(X, y)
    assert (spread.coef_**2).sum() <= 2.0 / 50 * (1 + 1e-9) < (free.coef_**2).sum()


def test_it_learns_and_chooses_its_radius():
    model = ConstrainedAttentionRegressor(100, random_state=0).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.8
    assert model.gap_ <= 1e-4 * y.std()


def test_steps_that_run_out_say_so():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        ConstrainedAttentionRegressor(50, radius=1.0, max_iter=1, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"energy": 0}, "energy"),
        ({"delta": 0}, "delta"),
        ({"tol": -1e-3}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_heads": 0}, "n_heads"),
        ({"activation": "gelu"}, "activation"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(InputError, match=message):
        ConstrainedAttentionRegressor(**{"n_heads": 5, **options}).fit(X, y)


def test_one_target_at_a_time():
    with pytest.raises(InputError, match="one target"):
        ConstrainedAttentionRegressor(5).fit(X, np.stack([y, y], 1))


@pytest.mark.parametrize("value", [0.1, 1e6, 0.0])
def test_constants_are_learned_at_once(value):
    model = ConstrainedAttentionRegressor(10, random_state=0).fit(X[:30], np.full(30, value))
    np.testing.assert_allclose(model.predict(X[:5]), value, rtol=1e-9)
    assert model.n_iter_ < 100
