"""Sculpting, phase by phase, against the truth and against chance."""

import numpy as np
import pytest

from attlas import layers, recovery, tokens
from attlas.errors import InputError
from attlas.layers import softmax
from attlas.numerics import stream
from attlas.recovery import planted_layer, sculpt
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import Body, carve, search, value_sum

THETA, W = planted_layer(2, 6, stream(0, "teacher"), 3.0)
X = tokens.boolean(5000, 2, 6, stream(0, "data"))
DATA = Examples.of(X, layers.multi_head_attention(X, THETA, W))


@pytest.fixture(scope="module")
def found():
    return sculpt(X, DATA.Y, 2, seed=0)


def test_the_sum_of_values_is_found_roughly_then_better(found):
    true = W.sum(0)
    crude = np.linalg.norm(value_sum(DATA) - true) / np.linalg.norm(true)
    assert crude < 0.2
    assert np.linalg.norm(found.value_sum - true) / np.linalg.norm(true) < crude


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


def test_slabs_are_not_repeated(found):
    flat = found.body.rows.queries[:, 0, 0] < 0
    keys = {
        (-r if f else r).tobytes() + b"".join(sorted((-t if f else t).tobytes() for t in x))
        for r, x, f in zip(found.body.rows.queries[:, 0], found.body.rows.X, flat, strict=True)
    }
    assert len(keys) == len(found.body.scores)


def test_the_body_knows_more_than_chance_before_any_polish(found):
    rng = stream(0, "null")
    proxy = rng.standard_normal((6, 6))
    proxy *= np.linalg.norm(found.proxy) / np.linalg.norm(proxy)
    span = np.linalg.qr(rng.standard_normal((36, 1)))[0].T.reshape(1, 6, 6)
    null = search(DATA, proxy, span, 2, 0)[1]
    assert 1e-6 < found.residual < 0.3
    assert null > 0.4
    assert found.gap > 1.5
    difference = (THETA[1] - THETA[0]).ravel()
    assert abs(found.span.ravel() @ difference) / np.linalg.norm(difference) > 0.8


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


def test_learning_from_a_sculpted_start(found):
    result = recovery.learn(X[:2500], DATA.Y[:2500], 2, method="sculpt")
    assert result.certificate.met
    assert result.certificate.source == "sculpted"
    assert result.certificate.gap > 1
    assert 0 < recovery.parameter_error(result.layer, recovery.Layer(THETA, W)) < 1e-9


def test_what_cannot_be_sculpted_is_said():
    with pytest.raises(InputError, match="outputs of all tokens"):
        recovery.learn(X[:100], DATA.Y[:100, -1], 2, method="sculpt")
    with pytest.raises(InputError, match="agree on"):
        sculpt(X[:3], DATA.Y[:3], 2)
    with pytest.raises(InputError, match="heads"):
        sculpt(X, DATA.Y, 0)


def test_a_section_of_the_body_can_be_drawn(found, tmp_path):
    """The true heads lie along the flattest direction, on both sides of the proxy."""
    figure = found.draw(recovery.Layer(THETA, W))
    figure.savefig(tmp_path / "body.png")
    (axis,) = figure.axes
    true = next(line for line in axis.lines if line.get_label() == "true heads")
    assert np.ptp(true.get_xdata()) > 3 * np.ptp(true.get_ydata())
    assert len(axis.lines) > 100
