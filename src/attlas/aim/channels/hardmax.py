"""y = one-hot of the largest index in each row."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attlas import layers
from attlas.aim.channels import gibbs
from attlas.aim.channels.channel import Array, outputs
from attlas.aim.channels.defaults import ChannelDefaults
from attlas.aim.channels.rows import replica_error
from attlas.errors import InputError
from attlas.inputs import integer
from attlas.numerics.bivariate import log_bivariate_cdf

_SMALLEST = 1e-10  # of V/Q in the table; below it G2 follows its power law
INTERPOLATION = 1e-9  # relative error of G2 between the nodes of the table of two tokens, at most


@dataclass(frozen=True)
class Hardmax(ChannelDefaults):
    """Attention with hardmax rows: y_ab = 1 where h_ab is the largest of its row.

    For T = 2 everything is exact: u_i = h_ii - h_12 are Gaussian given omega, with variance 3 V and correlation 1/3, and y
    gives their signs. For T >= 3 posterior means are Gibbs averages over the truncated Gaussian (`gibbs`), and G2 carries a
    Monte Carlo error, which `information_error` gives.

    Parameters
    ----------
    tokens : int
        At least 2.
    """

    tokens: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", integer(self.tokens, "tokens", least=2))

    @property
    def score_error(self) -> float:
        """1e-3 for three and more tokens, which is what scores by Gibbs averages can settle."""
        return 1e-3 if self.tokens > 2 else 0.0

    def output(self, h: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Return one-hot rows."""
        return layers.hardmax(h)

    def check(self, y: ArrayLike) -> Array:
        """Return y if its rows are one-hot and some symmetric h has these largest entries."""
        y = outputs(y, self.tokens)
        if not np.all((y == 0) | (y == 1)) or not np.all(y.sum(-1) == 1):
            raise InputError("y of a hardmax channel must have one-hot rows; use Softmax for rows of positive weights")
        gibbs.start(y.argmax(-1))
        return y

    def score(self, y: Array, omega: Array, V: float) -> Array:
        """Return d log Z / d omega."""
        if self.tokens > 2:
            return gibbs.score(y.argmax(-1), omega, V)
        signs, a = _signs(y), _means(omega, V)
        log_z = _log_probability(signs, a)
        root = np.sqrt(3 * V)
        g = np.zeros_like(y)
        for i in (0, 1):
            g[:, i, i] = signs[:, i] / root * np.exp(_log_edge(signs, a, i) - log_z)
        g[:, 0, 1] = g[:, 1, 0] = -(g[:, 0, 0] + g[:, 1, 1])
        return g

    def log_partition(self, y: Array, omega: Array, V: float) -> Array:
        """Return log Z of each sample; T = 2 only."""
        if self.tokens > 2:
            raise InputError("the probability of hardmax outputs is computed for two tokens only")
        return _log_probability(_signs(y), _means(omega, V))

    def information(self, V: ArrayLike, Q: ArrayLike) -> Array:
        """Return G2(V); V G2 is a function of V/Q, tabulated once by Chebyshev interpolation in log(V/Q)."""
        V = np.asarray(V, dtype=float)
        ratio = np.clip(V / np.asarray(Q, dtype=float), 1e-300, 1.0)
        covered = np.maximum(ratio, _SMALLEST if self.tokens == 2 else gibbs.SMALLEST)
        return np.asarray(np.exp(_table(self.tokens)(np.log(covered))) * np.sqrt(ratio / covered) / V)

    def information_error(self, V: ArrayLike, Q: ArrayLike) -> tuple[Any, Any]:
        """Return the standard error of G2, from its largest relative one in the table; 0 for two tokens."""
        if self.tokens == 2:
            return 0.0, 0.0
        return gibbs.information_table(self.tokens)[2] * self.information(V, Q), 0.0

    def bayes_error(self, V: float, Q: float) -> float:
        """Return 1 - (2/pi) arcsin(q/Q) for two tokens; T times the chance that two replicas differ in a row."""
        if self.tokens == 2:
            return float(1 - 2 / np.pi * np.arcsin(min(1.0, (Q - V) / Q)))
        return replica_error(self.tokens, V, Q, np.inf)

    def plugin_error(self, V: float, Q: float) -> float:
        """Return (4/pi) arccos sqrt(q/Q) for two tokens."""
        if self.tokens == 2:
            return float(4 / np.pi * np.arccos(min(1.0, np.sqrt(max(Q - V, 0.0) / Q))))
        return replica_error(self.tokens, V, Q, np.inf, plugin=True)


def _signs(y: Array) -> Array:
    """Return the signs of u_i = h_ii - h_12."""
    return 2 * np.stack([y[:, 0, 0], y[:, 1, 1]], axis=-1) - 1


def _means(omega: Array, V: float) -> Array:
    """Return the mean of u_i over its standard deviation."""
    return np.asarray(np.stack([omega[:, i, i] - omega[:, 0, 1] for i in (0, 1)], axis=-1) / np.sqrt(3 * V))


def _log_probability(signs: Array, a: Array) -> Array:
    """Return log Phi2(s1 a1, s2 a2; s1 s2/3)."""
    result, same = np.empty(len(a)), signs[:, 0] == signs[:, 1]
    for rows, r in ((same, 1 / 3), (~same, -1 / 3)):
        if rows.any():
            x = signs[rows] * a[rows]
            result[rows] = log_bivariate_cdf(x[:, 0], x[:, 1], r)
    return result


def _log_edge(signs: Array, a: Array, i: int) -> Array:
    """Return log of phi(a_i) Phi((s_j a_j - r s_i a_i)/sqrt(1 - r^2)), r = s1 s2/3."""
    from scipy.special import log_ndtr

    j, r = 1 - i, signs[:, 0] * signs[:, 1] / 3
    z = (signs[:, j] * a[:, j] - r * signs[:, i] * a[:, i]) / np.sqrt(8 / 9)
    return np.asarray(-0.5 * a[:, i] ** 2 - 0.5 * np.log(2 * np.pi) + log_ndtr(z))


@cache
def _table(tokens: int) -> Any:
    """Return log(V G2) as a Chebyshev interpolant of log(V/Q)."""
    if tokens > 2:
        nodes, values, _ = gibbs.information_table(tokens)
        return np.polynomial.Chebyshev.fit(nodes, values, 5)
    return np.polynomial.Chebyshev.interpolate(
        lambda log_ratio: np.log([_scaled_information(float(np.exp(x))) for x in log_ratio]),
        40,
        domain=[np.log(_SMALLEST), 0],
    )


def _scaled_information(ratio: float) -> float:
    """Return V G2 for two tokens at V/Q, by quadrature over (a_1, a_2) ~ N(0, (q/V) [[1, 1/3], [1/3, 1]]).

    V G2 = (1/3) sum_s E[(6 A^2 + 2 A B)/Z], where A and B are the edge terms of the score. A confines a_1 to a few units,
    while a_2 spreads as sqrt(q/V): its integral is cut into panels about the origin.
    """
    spread = (1 - ratio) / ratio
    if spread < 1e-12:
        spread = 0.0
    end = min(9 * np.sqrt(spread), 9.5)
    a1, weight1 = _normal_panels(np.sqrt(spread), [-end, end], 48)
    end = 9 * np.sqrt(8 / 9 * spread)
    cuts = [cut for cut in (3.0, 7.0, 13.0, 40.0) if cut < 0.8 * end] or [end / 3]
    panels = sorted({-end, *(-cut for cut in cuts), *cuts, end})
    eta, weight2 = _normal_panels(np.sqrt(8 / 9 * spread), panels, 24)
    first = np.repeat(a1, len(eta))
    second = first / 3 + np.tile(eta, len(a1))
    weight = np.outer(weight1, weight2).ravel()
    a, total = np.stack([first, second], axis=-1), 0.0
    for pattern in ((1.0, 1.0), (1.0, -1.0)):  # the other two are these with every sign reversed
        signs = np.broadcast_to(np.array(pattern), a.shape)
        log_z = _log_probability(signs, a)
        one, two = (_log_edge(signs, a, i) for i in (0, 1))
        terms = 6 * np.exp(2 * one - log_z) + 2 * pattern[1] * np.exp(one + two - log_z)
        total += 2 * float(weight @ terms)
    return total / 3


def _normal_panels(sigma: float, edges: list[float], count: int) -> tuple[Array, Array]:
    """Return nodes and weights for N(0, sigma^2), `count` Gauss-Legendre nodes between consecutive edges."""
    if sigma == 0:
        return np.zeros(1), np.ones(1)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    left, half = np.array(edges[:-1])[:, None], np.diff(edges)[:, None] / 2
    x = (left + half * (nodes + 1)).ravel()
    return x, (half * weights).ravel() * np.exp(-0.5 * (x / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
