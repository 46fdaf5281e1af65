"""Every channel passes the same suite: score, Nishimori identity, limits; and each its own exact values."""

import numpy as np
import pytest
from scipy import stats

from attlas import aim
from attlas.aim.channels import gibbs, rows
from attlas.aim.channels import hardmax as hardmax_channel
from attlas.aim.channels.channel import doubling, symmetric_normal
from attlas.errors import InputError
from attlas.layers import hardmax, softmax
from attlas.numerics.bivariate import log_bivariate_cdf

mp = pytest.importorskip("mpmath")

CHANNELS = {
    "linear T=1": aim.Linear(1, 0.25),
    "linear T=3": aim.Linear(3, 0.5),
    "linear noiseless": aim.Linear(2),
    "softmax T=2": aim.Softmax(2),
    "softmax T=4 beta=3": aim.Softmax(4, 3.0),
    "hardmax T=2": aim.Hardmax(2),
    "hardmax T=3": aim.Hardmax(3),
    "custom tanh T=1": aim.Custom(np.tanh, 1, 0.2),
    "custom sine T=2": aim.Custom(lambda h: np.sin(h / 2), 2, 1.0, samples=128),
}  # fmt: skip
EXACT = [name for name in CHANNELS if name != "hardmax T=3"]


def draw(channel, V, Q, n, seed=0):
    rng = np.random.default_rng(seed)
    scale = doubling(channel.tokens)
    omega = np.sqrt((Q - V) * scale) * symmetric_normal(n, channel.tokens, rng)
    h = omega + np.sqrt(V * scale) * symmetric_normal(n, channel.tokens, rng)
    return omega, h, channel.output(h, rng)


@pytest.mark.parametrize("name", EXACT)
def test_score_is_the_gradient_of_the_log_partition_function(name):
    channel, V, Q = CHANNELS[name], 0.6, 1.5
    omega, _, y = draw(channel, V, Q, 20)
    g, step = channel.score(y, omega, V), 1e-5
    for a in range(channel.tokens):
        for b in range(a, channel.tokens):
            moved = np.zeros((channel.tokens, channel.tokens))
            moved[a, b] = moved[b, a] = step
            up, down = (channel.log_partition(y, omega + sign * moved, V) for sign in (1, -1))
            np.testing.assert_allclose(g[:, a, b], (up - down) / (2 * step), atol=1e-6 * max(1, np.abs(g).max()))


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("V", [1.0, 0.2])
def test_nishimori_identity(name, V):
    """E[g (h - omega)] = V (1 + delta) E[g^2], within four standard errors, summed over pairs."""
    channel = CHANNELS[name]
    omega, h, y = draw(channel, V, 1.5, 700 if "T=3" in name or "custom" in name else 6000, seed=1)
    g = channel.score(y, omega, V)
    scale = doubling(channel.tokens)
    difference = np.triu(g * (h - omega) / V - scale * g * g).sum((1, 2))
    tolerance = (
        4 * difference.std() / np.sqrt(len(h)) + 1e-12
    )  # without noise the two sides are equal, sample by sample
    if "hardmax T=3" in name:  # squares of Gibbs averages are too large by their own variance
        tolerance += 2 / gibbs.SWEEPS * channel.tokens**2 / V
    assert abs(difference.mean()) < tolerance


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("V", [1.5, 0.4])
def test_information_is_the_mean_square_of_the_score(name, V):
    """Also at V = Q, where omega tells nothing."""
    channel = CHANNELS[name]
    omega, h, y = draw(channel, V, 1.5, 700 if "T=3" in name or "custom" in name else 6000, seed=2)
    # E[g (h - omega)]/V is free of the bias that an average over few sweeps gives to g^2
    each = np.triu(channel.score(y, omega, V) * (h - omega)).sum((1, 2)) / V
    assert abs(each.mean() - float(channel.information(V, 1.5))) < 4 * each.std() / np.sqrt(len(each)) * (
        2 if "custom" in name or "T=3" in name else 1
    )


@pytest.mark.parametrize("name", CHANNELS)
def test_little_uncertainty(name):
    """V -> 0: errors vanish and scores stay finite."""
    channel = CHANNELS[name]
    assert channel.bayes_error(0.0, 1.5) == pytest.approx(0, abs=1e-12)
    omega, _, y = draw(channel, 1e-4, 1.5, 50)
    assert np.isfinite(channel.score(y, omega, 1e-4)).all()


@pytest.mark.parametrize("name", CHANNELS)
def test_errors_are_those_of_samples(name):
    """Bayes and plug-in errors against two independent replicas and the output at omega, four standard errors."""
    channel, V, Q, n = CHANNELS[name], 0.5, 1.5, 40_000
    function = hardmax if "hardmax" in name else channel.mean
    omega, h, _ = draw(channel, V, Q, n, seed=3)
    again = omega + np.sqrt(V * doubling(channel.tokens)) * symmetric_normal(
        n, channel.tokens, np.random.default_rng(4)
    )
    for found, samples in (
        (channel.bayes_error(V, Q), 0.5 * ((function(h) - function(again)) ** 2).sum((1, 2))),
        (channel.plugin_error(V, Q), ((function(h) - function(omega)) ** 2).sum((1, 2))),
    ):
        slack = 2 if "custom" in name else 1
        assert abs(samples.mean() - found) < slack * 4 * samples.std() / np.sqrt(n) + 1e-4 * found
    assert channel.bayes_error(V, Q) <= channel.plugin_error(V, Q) * (1 + 1e-9)


def test_gibbs_agrees_with_the_exact_score():
    """For two tokens both are known: the mean over samples of the difference is noise."""
    channel, V = aim.Hardmax(2), 0.5
    omega, _, y = draw(channel, V, 1.5, 4000)
    difference = gibbs.score(y.argmax(-1), omega, V) - channel.score(y, omega, V)
    assert np.abs(difference.mean(0)).max() < 4 * difference.std() / np.sqrt(4000)


def test_gibbs_information_agrees_with_the_exact_one():
    nodes, values, error = gibbs.information_table(2, samples=4000)
    exact = np.log(aim.Hardmax(2).information(np.exp(nodes), 1.0) * np.exp(nodes))
    assert np.all(np.abs(values - exact)[nodes > np.log(0.02)] < 0.25)
    assert abs(np.mean((values - exact)[nodes > np.log(0.1)])) < 0.05
    assert error < 0.5


def test_hardmax_limits():
    """V = Q in closed form; V -> 0 as 1.4413/sqrt(V Q)."""
    channel = aim.Hardmax(2)
    plus, minus = (0.25 + s * np.arcsin(1 / 3) / (2 * np.pi) for s in (1, -1))
    assert float(channel.information(1.0, 1.0)) == pytest.approx((2 / plus + 1 / minus) / (3 * np.pi), rel=1e-8)
    assert float(channel.information(1e-12, 2.0)) * np.sqrt(2e-12) == pytest.approx(1.4413, abs=5e-5)


def test_hardmax_table_is_as_exact_as_it_says():
    """Between its nodes, against the quadrature it is made of."""
    channel = aim.Hardmax(2)
    for ratio in (0.9, 0.37, 0.05, 1e-4):
        exact = hardmax_channel._scaled_information(ratio)
        assert float(channel.information(ratio, 1.0)) * ratio == pytest.approx(exact, rel=hardmax_channel.INTERPOLATION)


def test_bivariate_normal_in_the_bulk_and_in_the_tails():
    rng = np.random.default_rng(0)
    for r in (1 / 3, -1 / 3):
        a, b = rng.normal(size=(2, 20))
        law = {"mean": [0, 0], "cov": [[1, r], [r, 1]], "abseps": 1e-12, "releps": 1e-12}
        expected = [stats.multivariate_normal.cdf([x, y], **law) for x, y in zip(a, b, strict=True)]
        np.testing.assert_allclose(np.exp(log_bivariate_cdf(a, b, r)), expected, atol=1e-9)
    with mp.workdps(40):
        for a, b, r in [
            (-8.0, -7.0, -1 / 3),
            (-20.0, 3.0, 1 / 3),
            (-25.0, -25.0, -1 / 3),
            (5.0, -30.0, 1 / 3),
            (2.0, 9.0, 1 / 3),
        ]:
            c = mp.sqrt(1 - mp.mpf(r) ** 2)
            a, b = sorted(
                (a, b)
            )  # the law is symmetric; x < a is then the steep tail, resolved by halving steps towards it
            points = sorted(
                {mp.mpf(a) - t for t in (0, *(40 * mp.mpf(2) ** -k for k in range(14)))} | {min(mp.mpf(a), mp.mpf(0))}
            )
            value = mp.quad(lambda x: mp.npdf(x) * mp.ncdf((b - r * x) / c), points)  # noqa: B023
            assert float(log_bivariate_cdf(a, b, r)) == pytest.approx(float(mp.log(value)), abs=1e-10)


def test_softmax_error_of_two_tokens_against_mpmath_and_quasi_monte_carlo():
    V, Q = 0.39219602, 1.5
    for beta in (1.0, 6.0):
        mean, error = rows.replica_error_with_error(2, V, Q, beta)
        assert abs(aim.Softmax(2, beta).bayes_error(V, Q) - mean) < 4 * error + 1e-9
    assert aim.Softmax(2).bayes_error(V, Q) == pytest.approx(0.120853, abs=6e-7)
    # a steep softmax is a hardmax
    assert aim.Softmax(2, 2000.0).bayes_error(0.3, 1.5) == pytest.approx(aim.Hardmax(2).bayes_error(0.3, 1.5), rel=2e-3)


def test_softmax_inverts_whatever_beta():
    rng = np.random.default_rng(0)
    h = symmetric_normal(10, 5, rng)
    for beta in (0.01, 1.0, 20.0):
        channel = aim.Softmax(5, beta)
        found = channel.indices(softmax(h, beta)) - h
        np.testing.assert_allclose(found, found.mean((1, 2), keepdims=True) + 0 * found, atol=1e-11)


def test_hardmax_start_is_feasible_for_every_output():
    rng = np.random.default_rng(0)
    for T in (2, 3, 5):
        largest = symmetric_normal(500, T, rng).argmax(-1)
        np.testing.assert_array_equal(gibbs.start(largest).argmax(-1), largest)
    with pytest.raises(InputError, match="cycle of three"):
        gibbs.start(np.array([[1, 2, 0]]))


ONE_HOT = hardmax(np.random.default_rng(0).normal(size=(3, 2, 2)))
ROWS = softmax(symmetric_normal(3, 2, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.Softmax(1), "tokens must be an integer of at least 2"),
        (lambda: aim.Softmax(2, 0.0), "beta must be"),
        (lambda: aim.Linear(2, -0.1), "noise must be"),
        (lambda: aim.Hardmax(1), "at least 2"),
        (lambda: aim.Custom(np.tanh, 2, 0.0), "noise must be"),
        (lambda: aim.Custom(lambda h: h[:, 0], 2, 0.1), "function must map"),
        (lambda: aim.Softmax(2).check(ONE_HOT), "one-hot rows, which softmax never gives; use Hardmax"),
        (lambda: aim.Softmax(2).check(2 * ROWS), "rows that sum to one"),
        (lambda: aim.Softmax(3).check(softmax(np.random.default_rng(1).normal(size=(3, 3, 3)))), "no softmax attention"),
        (lambda: aim.Softmax(2).check(ROWS * np.nan), "not finite"),
        (lambda: aim.Softmax(3).check(ROWS), r"y: axis 1 \(T\) must be 3; got 2"),
        (lambda: aim.Hardmax(2).check(ROWS), "one-hot rows; use Softmax"),
        (lambda: aim.Linear(2).check(np.random.default_rng(0).normal(size=(3, 2, 2))), "must be symmetric"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("beta", [5.0, 50.0])
def test_plugin_error_of_steep_softmax(beta):
    """Against Monte Carlo, four standard errors: the output at omega is as steep as beta."""
    channel, V = aim.Softmax(2, beta), 0.392
    omega, h, y = draw(channel, V, 1.5, 200_000, seed=7)
    samples = ((y - softmax(omega, beta)) ** 2).sum((1, 2))
    assert abs(samples.mean() - channel.plugin_error(V, 1.5)) < 4 * samples.std() / np.sqrt(len(h))
