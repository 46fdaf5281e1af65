"""The body that slabs and half-spaces make: exact for one head, its proxy against a general solver."""

import numpy as np

from attlas import layers, tokens
from attlas.layers import softmax
from attlas.numerics import stream
from attlas.recovery import Body, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import carve

THETA, W = planted_layer(2, 6, stream(0, "teacher"), 3.0)
X = tokens.boolean(5000, 2, 6, stream(0, "data"))
DATA = Examples.of(X, layers.multi_head_attention(X, THETA, W))


def test_one_head_carves_exact_slabs():
    """With one head every row agrees: patterns are its attention, slabs pass through it, the proxy is it."""
    data = Examples.of(X[:500], layers.multi_head_attention(X[:500], THETA[:1], W[:1]))
    body = carve(data, W[0])
    assert body.scores.max() < 1e-9
    P = softmax((body.rows.queries @ THETA[0]) @ body.rows.X.transpose(0, 2, 1))
    assert (np.sort(P[:, 0], axis=1)[:, -2] > 0.05).all()  # weights that small give no slab
    np.testing.assert_allclose(np.einsum("sab,ab->s", body.slabs, THETA[0]), body.levels, atol=1e-8)
    assert (np.einsum("sab,ab->s", body.sides, THETA[0]) <= body.limits + 1e-9).all()
    assert body.rank == 36
    np.testing.assert_allclose(body.proxy(1e-9), THETA[0], atol=1e-4)
    assert body.width(np.eye(6), 0.01) < 1.0


def test_the_half_spaces_hold_at_the_proxy():
    """The constrained least squares against a general solver, on a small body."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    body = Body(
        rng.normal(size=(8, 2, 2)), rng.normal(size=8), np.ones(8), rng.normal(size=(4, 2, 2)), rng.normal(size=4) - 0.5,
        DATA.take(slice(0, 1)), np.ones((1, 2)) / 2, np.zeros(1),
    )  # fmt: skip
    G, S = body.slabs.reshape(8, 4), body.sides.reshape(4, 4)
    peer = minimize(
        lambda x: np.sum((G @ x - body.levels) ** 2) + 1e-3 * x @ x,
        np.zeros(4),
        constraints={"type": "ineq", "fun": lambda x: body.limits - S @ x},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    mine = body.proxy().ravel()
    assert (S @ mine <= body.limits + 1e-8).all()
    np.testing.assert_allclose(mine, peer.x, atol=1e-4)
