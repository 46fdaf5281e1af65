"""Channels of a user's own: those of `docs/extending.md`, one that says as little as it may, and one of two layers."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from attlas import aim
from attlas.aim.channels.channel import doubling, symmetric_normal
from attlas.aim.channels.defaults import complete
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()


def shown(file):
    """Return the names that a file shown on the page defines."""
    (block,) = re.findall(rf"```python\n(# {file}\n.*?)```", PAGE, re.DOTALL)
    names = {"__name__": file.removesuffix(".py")}
    exec(compile(block, file, "exec"), names)
    return names


NoisyTanh, Quantised = shown("noisy_tanh.py")["NoisyTanh"], shown("quantised.py")["Quantised"]
CHANNELS = {
    "tanh T=1": NoisyTanh(),
    "tanh T=2": NoisyTanh(gain=0.5, tokens=2),
    "sign T=1": Quantised(levels=2),
    "four levels T=2": Quantised(tokens=2),
}


def draw(channel, V, Q, n, seed=0):
    rng, scale = np.random.default_rng(seed), doubling(channel.tokens)
    omega = np.sqrt((Q - V) * scale) * symmetric_normal(n, channel.tokens, rng)
    h = omega + np.sqrt(V * scale) * symmetric_normal(n, channel.tokens, rng)
    return omega, h, channel.output(h, rng)


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("V", [1.0, 0.2])
def test_score_and_information_against_monte_carlo(name, V):
    """Both sides of the Nishimori identity are G2, within four standard errors of all that was drawn."""
    channel = CHANNELS[name]
    omega, h, y = draw(channel, V, 1.5, 8000, seed=1)
    g = channel.score(channel.check(y), omega, V)
    G, own = float(channel.information(V, 1.5)), float(complete(channel).information_error(V, 1.5)[0])
    for each in (np.triu(doubling(channel.tokens) * g * g), np.triu(g * (h - omega)) / V):
        each = each.sum((1, 2))
        assert abs(each.mean() - G) < 4 * np.hypot(each.std() / np.sqrt(len(each)), own)


def likelihood(channel, y, h):
    """P(y | h) from the definition of the output."""
    if isinstance(channel, NoisyTanh):
        return np.exp(-((y - np.tanh(channel.gain * h) / channel.gain) ** 2) / (2 * channel.noise))
    half = channel.step / 2
    low = np.where(y == channel.values[0], -np.inf, y - half)
    high = np.where(y == channel.values[-1], np.inf, y + half)
    return ndtr((high - h) / np.sqrt(channel.noise)) - ndtr((low - h) / np.sqrt(channel.noise))


@pytest.mark.parametrize("name", CHANNELS)
def test_score_is_the_gradient_of_the_log_partition_function(name):
    channel, V, step = CHANNELS[name], 0.6, 1e-4
    omega, _, y = draw(channel, V, 1.5, 20)
    z = np.linspace(-9, 9, 1001)
    scale = np.sqrt(V * doubling(channel.tokens))[..., None]

    def log_z(omega):
        return np.log((likelihood(channel, y[..., None], omega[..., None] + scale * z) * np.exp(-z * z / 2)).sum(-1))

    expected = (log_z(omega + step) - log_z(omega - step)) / (2 * step)
    np.testing.assert_allclose(channel.score(y, omega, V), expected, atol=1e-6)


def test_limits():
    """A gentle tanh and a fine quantiser are linear; a sign that omega tells nothing about has a closed form."""
    alpha, rho = 0.4, 0.5
    linear = aim.state_evolution(aim.Linear(1, 0.25), alpha, rho, steps=0).value
    gentle = aim.state_evolution(NoisyTanh(gain=1e-3), alpha, rho, steps=0)
    assert 0 < abs(gentle.value - linear) < 3 * gentle.standard_error < 0.1
    omega, _, y = draw(NoisyTanh(gain=1e-3), 0.4, 1.5, 50)
    np.testing.assert_allclose(
        NoisyTanh(gain=1e-3).score(y, omega, 0.4), aim.Linear(1, 0.25).score(y, omega, 0.4), atol=1e-4
    )
    fine = Quantised(levels=60, step=0.25)
    assert aim.state_evolution(fine, alpha, rho, steps=0).value == pytest.approx(
        aim.state_evolution(aim.Linear(1, 0.25 + 0.25**2 / 12), alpha, rho, steps=0).value, rel=1e-3
    )
    assert float(Quantised(levels=2).information(1.5, 1.5)) == pytest.approx(4 / (np.pi * (3.0 + 0.25)), rel=1e-12)


def test_tanh_is_the_built_in_quadrature_of_tanh():
    """For one token `Custom` is the same channel, with other nodes and other draws."""
    own, built = NoisyTanh(), aim.Custom(np.tanh, 1, 0.25, samples=2000)
    omega, _, y = draw(own, 0.5, 1.5, 50)
    np.testing.assert_allclose(own.score(y, omega, 0.5), built.score(y, omega, 0.5), atol=1e-9)
    for V in (1.2, 0.3):
        error = np.hypot(own.information_error(V, 1.5)[0], built.information_error(V, 1.5)[0])
        assert abs(float(own.information(V, 1.5)) - float(built.information(V, 1.5))) < 4 * error


@pytest.mark.parametrize("name", CHANNELS)
def test_message_passing_follows_the_state_evolution(name):
    """d = 40, 4 seeds: three standard errors, that of the theory, and 20 % for the size."""
    channel, rho = CHANNELS[name], 0.5
    alpha = 0.5 / channel.tokens**2
    theory = aim.state_evolution(channel, alpha, rho, steps=0)
    assert aim.recovery_threshold(channel, rho) is None
    errors = []
    for seed in range(4):
        task = aim.sample(channel, 40, alpha, rho, seed)
        found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, tol=1e-4, max_steps=60, throw=False)
        errors.append(found.mse[-1] / found.mse[0])
    slack = 3 * np.std(errors, ddof=1) / 2 + 3 * theory.standard_error + 0.2 * theory.value
    assert abs(np.mean(errors) - theory.value) < slack


@pytest.mark.parametrize("name", CHANNELS)
def test_pullback_is_the_derivative_of_the_mean(name):
    """Against differences, which are the default; and the mean is that of the outputs."""
    channel, rng = CHANNELS[name], np.random.default_rng(0)
    h = symmetric_normal(5, channel.tokens, rng)
    e = rng.standard_normal(h.shape)
    by_differences = aim.ChannelDefaults.pullback(channel, h, e)
    np.testing.assert_allclose(channel.pullback(h, e), by_differences, atol=1e-8)
    drawn = np.array([channel.output(h, rng) for _ in range(4000)])
    assert np.all(np.abs(drawn.mean(0) - channel.mean(h)) < 5 * (drawn.std(0) + 0.01) / np.sqrt(len(drawn)))


def test_descent_on_outputs():
    """A gentle tanh and a fine quantiser descend to where the linear channel does, on the same data but for the rounding."""
    d, rho, options = 24, 0.5, {"rank": 12, "decay": 0.05, "loss": "outputs", "tol": 1e-7, "max_steps": 4000}
    linear = aim.Linear(1, 0.01)
    task = aim.sample(linear, d, 0.8, rho, 0)
    best = aim.descend(task.X, task.y, linear, **options)
    gentle = aim.descend(task.X, task.y, NoisyTanh(gain=1e-3, noise=0.01), **options)
    np.testing.assert_allclose(gentle.value, best.value, atol=1e-3)
    fine = Quantised(levels=400, step=0.05, noise=0.01)
    y = fine.values[np.searchsorted(fine.edges[1:-1], task.y)]
    rounded = aim.descend(task.X, y, fine, **options)
    assert np.sum((rounded.value - best.value) ** 2) < 1e-3 * np.sum(best.value**2)


class Required:
    """The five members, and nothing else: y = sinh(h), a linear channel in disguise."""

    tokens = 2

    def output(self, h, rng):
        return np.sinh(h)

    def check(self, y):
        return np.asarray(y, dtype=float)

    def score(self, y, omega, V):
        return aim.Linear(2).score(np.arcsinh(y), omega, V)

    def information(self, V, Q):
        return aim.Linear(2).information(V, Q)


class Mean(aim.Linear):
    """A linear channel that is told the mean variance of its indices, not that of each sample."""

    variance_per_sample = False


class Invertible(Required):
    """The same, saying what more it can do."""

    index_noise = 0.0
    variance_per_sample = True

    def indices(self, y):
        return np.arcsinh(y)

    def mean(self, h):
        return np.sinh(h)


def test_five_members_are_a_channel():
    own, linear, alphas = Required(), aim.Linear(2), [0.05, 0.1, 0.12]
    assert isinstance(own, aim.Channel)
    assert aim.recovery_threshold(own, 0.5) == pytest.approx(aim.recovery_threshold(linear, 0.5), rel=1e-6)
    np.testing.assert_allclose(aim.curve(own, alphas)["mse"], aim.curve(linear, alphas)["mse"], rtol=1e-8)
    assert aim.phase_diagram(own, alphas, [0.5, 1.0])["converged"].values.all()
    assert len(aim.fixed_points(own, 0.1, 0.5)) == 1
    task, same = (aim.sample(channel, 24, 0.2, 0.5, 0) for channel in (own, linear))
    np.testing.assert_array_equal(task.y, np.sinh(same.y))
    found, expected = (
        aim.message_passing(t.X, t.y, channel, 0.5, max_steps=20, throw=False)
        for t, channel in ((task, own), (same, Mean(2)))
    )
    np.testing.assert_allclose(found.S_hat, expected.S_hat, atol=1e-8)


def test_an_inverse_opens_training():
    own, linear = Invertible(), aim.Linear(2)
    task, same = (aim.sample(channel, 16, 0.2, 0.5, 0) for channel in (own, linear))
    assert aim.trained(own, 0.1, 0.5, 0.05).value == aim.trained(linear, 0.1, 0.5, 0.05).value
    assert aim.best_decay(own, 0.05, 0.5).decay == pytest.approx(aim.best_decay(linear, 0.05, 0.5).decay, rel=1e-6)
    for learn in (
        lambda t, channel: aim.minimise(t.X, t.y, channel, 0.1),
        lambda t, channel: aim.descend(t.X, t.y, channel, rank=8, max_steps=100, throw=False),
        lambda t, channel: aim.message_passing(t.X, t.y, channel, 0.5, max_steps=5, throw=False),
    ):
        np.testing.assert_allclose(learn(task, own).value, learn(same, linear).value, atol=1e-8)
    # E[sinh(h) sinh(h')] = exp(v) sinh(v c) for variance v and correlation c = q/Q: 2Q on the diagonal, Q off it
    V, Q = 0.1, 0.3
    exact = sum(
        count * (np.exp(v) * np.sinh(v) - np.exp(v) * np.sinh(v * (1 - V / Q))) for v, count in ((2 * Q, 2), (Q, 2))
    )
    assert complete(own).bayes_error(V, Q) == pytest.approx(exact, rel=0.02)
    assert complete(own).bayes_error(V, Q) < complete(own).plugin_error(V, Q)


TASK = aim.sample(Required(), 8, 0.2, 0.5, 0)
ARGUMENTS = (TASK.X, TASK.y, Required())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.bayes_error(Required(), 0.1, 0.5), r"needs a method mean\(h\)"),
        (lambda: aim.descend(*ARGUMENTS, rank=4), r"needs a method indices\(y\); gradient descent can do without"),
        (lambda: aim.descend(*ARGUMENTS, rank=4, loss="outputs"), r"needs a method mean\(h\)"),
        (lambda: aim.minimise(*ARGUMENTS, 0.1), r"needs a method indices\(y\)"),
        (lambda: aim.trained(Required(), 0.1, 0.5, 0.1), "index_noise"),
        (lambda: aim.state_evolution(type("Half", (), {"tokens": 2, "check": 0})(), 0.1, 0.5), "no output, score, info"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_mistake_in_a_member_is_not_taken_for_its_absence():
    class Mistaken(Required):
        @property
        def count(self):
            return self.noise  # there is none

    with pytest.raises(AttributeError, match="noise"):
        aim.recovery_threshold(Mistaken(), 0.5)


def test_a_channel_reports_its_own_accuracy():
    class Rough(Required):
        missed, score_error, floor = 0.0, 0.5, 1e-9

        def information_error(self, V, Q):
            return 0.05 * self.information(V, Q), self.missed

    theory = aim.state_evolution(Rough(), 0.1, 0.5)
    low, high = (aim.state_evolution(aim.Linear(2), 0.1 * factor, 0.5).value for factor in (1.05, 0.95))
    assert theory.standard_error == pytest.approx((high - low) / 2, rel=1e-6)
    task = aim.sample(Required(), 16, 0.1, 0.5, 0)
    quick, full = (aim.message_passing(task.X, task.y, channel, 0.5, throw=False) for channel in (Rough(), Required()))
    assert quick.steps < full.steps
    Rough.missed = 7.0
    assert aim.state_evolution(Rough(), 0.1, 0.5, throw=False).status is Status.INACCURATE
    with pytest.raises(ConvergenceError, match="more nodes or samples"):
        aim.bayes_error(Rough(), 0.1, 0.5)
    assert not aim.curve(Rough(), [0.1])["converged"].values.any()


@dataclass(frozen=True)
class Apart:
    """Two layers on two tokens: y_11 shows h_11 of the first and y_22 shows h_22 of the second, with noise."""

    noise: float = 0.25
    tokens: int = 2
    layers = 2

    def output(self, h, rng):
        y = np.zeros(h.shape[1:])
        for layer in (0, 1):
            y[:, layer, layer] = h[layer, :, layer, layer] + np.sqrt(self.noise) * rng.standard_normal(len(y))
        return y

    def check(self, y):
        return np.asarray(y, dtype=float)

    def score(self, y, omega, V):
        g = np.zeros(omega.shape)
        for layer in (0, 1):
            at = (layer, slice(None), layer, layer)
            g[at] = (y[:, layer, layer] - omega[at]) / (self.noise + 2 * V[layer])
        return g

    def information(self, V, Q):
        return np.diag(2 / (self.noise + 2 * np.asarray(V)))


def test_several_layers_of_ones_own():
    """Each is a linear channel of one token: the same fixed points, and the same estimates while V falls."""
    channel, linear, alpha, rhos = Apart(), Mean(1, 0.25), 0.5, (0.5, 1.0)
    found = aim.state_evolution(channel, alpha, rhos)
    assert found.value.tolist() == pytest.approx([aim.state_evolution(linear, alpha, r).value for r in rhos], rel=1e-3)
    np.testing.assert_array_equal(found.standard_error, [0, 0])
    task = aim.sample(channel, 24, alpha, rhos, 0)
    amp = aim.message_passing(task.X, task.y, channel, rhos, S=task.S, max_steps=3, throw=False)
    assert amp.mse.shape == amp.history.shape == (4, 2)
    for layer, rho in enumerate(rhos):
        one = slice(layer, layer + 1)
        X, y = task.X[:, one], task.y[:, one, one]
        alone = aim.message_passing(X, y, linear, rho, S=task.S[layer], max_steps=3, throw=False)
        np.testing.assert_allclose(amp.S_hat[layer], alone.S_hat, atol=1e-10)
        np.testing.assert_allclose(amp.mse[:, layer], alone.mse, atol=1e-10)


class Wrapped:
    """A channel that answers through another one, as a wrapper that counts or logs would."""

    def __init__(self, channel):
        self._channel = channel

    def __getattr__(self, name):
        return getattr(self._channel, name)


def test_a_wrapper_keeps_the_optional_parts():
    """They are asked for, not listed: a wrapped quadrature that is too coarse still says so."""
    coarse = aim.Custom(np.tanh, 1, 1e-6, nodes=15, samples=500)
    assert aim.state_evolution(Wrapped(coarse), 0.1, 0.5, throw=False).status is Status.INACCURATE
    assert aim.recovery_threshold(Wrapped(aim.Softmax(2)), 0.5) == aim.recovery_threshold(aim.Softmax(2), 0.5)


def test_a_score_that_is_not_finite_is_named():
    class Broken(aim.Linear):
        def score(self, y, omega, V):
            return np.full_like(y, np.nan)

    task = aim.sample(aim.Linear(1, 0.1), 8, 0.5, 0.5, 0)
    with pytest.raises(InputError, match=r"the score of .* is not finite"):
        aim.message_passing(task.X, task.y, Broken(1, 0.1), 0.5)


class Mute:
    def __repr__(self):
        raise RuntimeError("it does not show itself")


def test_a_thing_that_cannot_be_shown_is_named_by_its_class():
    with pytest.raises(InputError, match=r"channel must be a channel .*; got a Mute$"):
        aim.state_evolution(Mute(), 0.3, 0.5)
