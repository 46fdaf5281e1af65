"""Two attention layers: the same suite as every channel, independent integrals, and the learners."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from attlas import aim
from attlas.aim.channels.deep import _differences
from attlas.errors import ConvergenceError, InputError
from attlas.layers import attention_indices, deep_attention
from attlas.numerics import Status
from tests.aim.test_channels import doubling, symmetric_normal

EXACT = aim.Deep(accuracy=1e-9, samples=64)
CASES = {"skip 1": (1.0, (0.6, 0.4)), "skip 0.3": (0.3, (1.0, 1.0)), "skip 2, sharp": (2.0, (0.3, 0.01))}


def draw(channel, V, rho, n, seed=0):
    """Return omega, h and y: the layers' omega share sqrt(rho_1 rho_2), as prior means do."""
    rng = np.random.default_rng(seed)
    scale = doubling(2)
    root = np.linalg.cholesky(np.array([[1 + rho - V[0], rho], [rho, 1 + rho - V[1]]]) + 1e-12 * np.eye(2))
    z = np.stack([symmetric_normal(n, 2, rng) for _ in range(2)])
    omega = np.einsum("lm,mnab->lnab", root, z) * np.sqrt(scale)
    noise = np.stack([np.sqrt(v * scale) * symmetric_normal(n, 2, rng) for v in V])
    return omega, omega + noise, channel.output(omega + noise, rng)


@pytest.mark.parametrize("case", CASES)
def test_score_is_the_gradient_of_the_log_partition_function(case):
    skip, V = CASES[case]
    channel, V = aim.Deep(skip=skip, accuracy=1e-10), np.array(V)
    omega, _, y = draw(channel, V, 0.5, 12)
    g, step = channel.score(y, omega, V), 1e-4
    for layer in (0, 1):
        for a, b in ((0, 0), (0, 1), (1, 1)):
            moved = np.zeros((2, 1, 2, 2))
            moved[layer, :, a, b] = moved[layer, :, b, a] = step * np.sqrt(V[layer])
            up, down = (channel.log_partition(y, omega + sign * moved, V) for sign in (1, -1))
            slope = (up - down) / (2 * step * np.sqrt(V[layer]))
            np.testing.assert_allclose(g[layer, :, a, b], slope, atol=1e-6 * max(1, np.abs(g[layer]).max()))


@pytest.mark.parametrize(("skip", "V"), [(1.0, (1.0, 1.0)), (1.0, (0.4, 0.1)), (0.3, (1.0, 0.5))])
def test_posterior_against_an_integral_in_other_coordinates(skip, V):
    """From the definition of y, B and its Jacobian, on Gauss-Legendre panels in u."""
    channel, V = aim.Deep(skip=skip, accuracy=1e-9), np.array(V)
    omega, _, y = draw(channel, V, 0.5, 4, seed=5)
    g = channel.score(y, omega, V)
    M = np.array([[3.0, 1.0], [1.0, 3.0]])
    # y close to 1/2 means that B is nearly singular, which panels in u do not resolve (with 400 of them they agree)
    clear = np.flatnonzero(np.abs(y[:, 0, 0] - 0.5) > 0.02)
    assert len(clear) >= 3
    for i in clear:
        m, logit = _differences(omega)[0, i], np.log([y[i, 0, 0] / y[i, 0, 1], y[i, 1, 1] / y[i, 1, 0]])

        nodes, weights = np.polynomial.legendre.leggauss(16)
        edges = np.linspace(-7.5, 7.5, 41)
        line = np.concatenate([(a + b) / 2 + (b - a) / 2 * nodes for a, b in itertools.pairwise(edges)])
        line_weight = np.tile(weights * (edges[1] - edges[0]) / 2, 40)
        u = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2) * np.sqrt(3 * V[0]) + m
        s1, s2 = expit(u[:, 0]), expit(u[:, 1])
        B = skip * np.eye(2) + np.stack([np.stack([s1, 1 - s1], -1), np.stack([1 - s2, s2], -1)], 1)
        det = np.linalg.det(B)
        inverse = np.linalg.inv(B)
        e = inverse @ np.diag(logit) @ inverse.transpose(0, 2, 1) - omega[1, i]
        e -= e.mean((1, 2), keepdims=True)
        away = u - m
        log = -0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(M), away) / V[0]
        log += -0.5 / V[1] * ((e[:, 0, 0] ** 2 + e[:, 1, 1] ** 2) / 2 + e[:, 0, 1] ** 2) - 3 * np.log(np.abs(det))
        w = np.exp(log - log.max()) * np.outer(line_weight, line_weight).ravel()
        w /= w.sum()
        first = np.linalg.solve(M, w @ away) / V[0]
        np.testing.assert_allclose(g[0, i][[0, 1], [0, 1]], first, atol=2e-5 * max(1, np.abs(g[0]).max()))
        expected = np.tensordot(w, e, axes=(0, 0)) / (V[1] * doubling(2))
        np.testing.assert_allclose(g[1, i], expected, atol=2e-5 * max(1, np.abs(g[1]).max()))


def test_information_agrees_with_independent_monte_carlo():
    """8000 samples each (boncoraglio2025bayes' model, our own earlier integration): G_11, G_22, G_12 and their errors."""
    for skip, V, expected, error in (
        (1.0, (1, 1), (0.646, 1.605, 0.023), (0.010, 0.015, 0.010)),
        (1.0, (0.5, 0.2), (1.517, 6.654, 0.091), (0.023, 0.084, 0.031)),
        (0.3, (1, 1), (0.505, 1.152, 0.092), (0.008, 0.013, 0.009)),
    ):
        channel = aim.Deep(skip=skip, samples=512)
        G, own = channel.information(V, 1.5), channel.information_error(V, 1.5)[0]
        for (i, j), value, deviation in zip(((0, 0), (1, 1), (0, 1)), expected, error, strict=True):
            assert abs(G[i, j] - value) < 4 * np.hypot(deviation, own[i, j])


@pytest.mark.parametrize("V", [(1.0, 1.0), (0.3, 0.1)])
def test_nishimori_identity(V):
    V = np.array(V)
    omega, h, y = draw(EXACT, V, 0.5, 1500, seed=1)
    g = aim.Deep().score(y, omega, V)
    for layer in (0, 1):
        difference = np.triu(g[layer] * (h - omega)[layer] / V[layer] - doubling(2) * g[layer] ** 2).sum((1, 2))
        assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))


def test_a_first_layer_known_leaves_a_softmax():
    """V_1 -> 0: the second layer is a softmax channel, G = (T^2 + T - 2)/(2 V); and errors vanish with V."""
    G = aim.Deep(samples=1024).information((1e-6, 0.5), 1.5)
    assert G[1, 1] == pytest.approx(aim.Softmax(2).information(0.5, 1.5), rel=0.05)
    assert aim.Deep().bayes_error((0.0, 0.0), 1.5) == pytest.approx(0, abs=1e-20)


def test_errors_are_those_of_samples():
    channel, V, n = aim.Deep(), np.array([0.5, 0.3]), 40_000
    omega, _, y = draw(channel, V, 0.5, n, seed=3)
    rng = np.random.default_rng(4)
    again = omega + np.stack([np.sqrt(v * doubling(2)) * symmetric_normal(n, 2, rng) for v in V])
    for found, samples in (
        (channel.bayes_error(V, 1.5), 0.5 * ((y - channel.output(again, rng)) ** 2).sum((1, 2))),
        (channel.plugin_error(V, 1.5), ((y - channel.output(omega, rng)) ** 2).sum((1, 2))),
    ):
        assert abs(samples.mean() - found) < 4 * samples.std() / np.sqrt(n) + 0.005 * found


def test_the_channel_is_the_layer():
    """Outputs from indices are those of `deep_attention` from tokens."""
    channel = aim.Deep(beta=1.5, skip=0.7)
    task = aim.sample(channel, 10, 0.2, (0.5, 1.0), 0)
    assert task.S.shape == (2, 10, 10)
    h = np.stack([attention_indices(task.X, S) for S in task.S])
    np.testing.assert_allclose(channel.output(h, np.random.default_rng(0)), task.y, atol=1e-12)
    np.testing.assert_array_equal(deep_attention(task.X, task.S, 1.5, 0.7), task.y)


def test_state_evolution_and_message_passing():
    """The diagonal theory at alpha = 0.2 beside an independent one of 3 % Monte Carlo error, and message passing."""
    channel = aim.Deep(samples=256)
    theory = aim.state_evolution(channel, 0.2, 0.5)
    assert theory.converged
    assert theory.value.shape == (2,)
    for found, error, expected in zip(theory.value, theory.standard_error, (0.564, 0.212), strict=True):
        assert abs(found - expected) < 4 * np.hypot(error, 0.03 * expected)
    assert theory.value[1] < theory.value[0]
    np.testing.assert_allclose(theory.q, 1.5 - theory.value)
    task = aim.sample(channel, 30, 0.2, 0.5, 0)
    found = aim.message_passing(task.X, task.y, channel, 0.5, S=task.S, max_steps=15, throw=False)
    assert found.S_hat.shape == (2, 30, 30)
    assert found.mse.shape == (16, 2)
    assert found.mse[-1, 1] < found.mse[-1, 0] < 1.2
    assert aim.state_evolution(channel, 0.0, 0.5).value.tolist() == [1.0, 1.0]


def test_steps_are_told_and_too_few_are_an_error():
    channel, events = aim.Deep(samples=64), []
    with pytest.raises(ConvergenceError, match="the state evolution did not converge: out of steps after 2 steps"):
        aim.state_evolution(channel, 0.2, 0.5, max_steps=2, progress=events.append)
    assert [event.step for event in events] == [1, 2]
    found = aim.state_evolution(channel, 0.2, 0.5, max_steps=2, throw=False)
    assert found.status is Status.OUT_OF_STEPS
    assert events[-1].value == found.residual
    assert np.isfinite(aim.bayes_error(aim.Deep(samples=64), 0.0, 0.5))


def test_a_quadrature_too_coarse_is_told(monkeypatch):
    monkeypatch.setattr(aim.Deep, "information_error", lambda self, V, Q: (np.zeros((2, 2)), np.array([0.3, 7.0])))
    found = aim.state_evolution(aim.Deep(samples=64), 0.05, 0.5, throw=False)
    assert found.status is Status.INACCURATE


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.Deep(tokens=3), "derived for two tokens; got tokens = 3"),
        (lambda: aim.Deep(skip=-0.5), "skip must be"),
        (lambda: aim.Deep(beta=0.0), "beta must be"),
        (lambda: aim.curve(aim.Deep(), [0.1], 0.5), "curve is for one layer"),
        (lambda: aim.recovery_threshold(aim.Deep(), 0.5), "recovery_threshold is for one layer"),
        (lambda: aim.trained(aim.Deep(), 0.1, 0.5, 0.1), "the theory of training is for one layer"),
        (lambda: aim.descend(np.zeros((2, 2, 4)), np.ones((2, 2, 2)), aim.Deep(), 2), "descend is for one layer"),
        (lambda: aim.state_evolution(aim.Deep(), 0.1, (0.5, 0.5, 0.5)), "one for each of the 2 layers"),
        (lambda: aim.state_evolution(aim.Deep(), 0.1, (0.5, -1.0)), "rho must be"),
        (lambda: aim.message_passing(np.zeros((2, 2, 4)), np.eye(2)[None].repeat(2, 0), aim.Deep(), 0.5), "one-hot rows"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
