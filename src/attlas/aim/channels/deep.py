"""Two stacked attention layers on two tokens, in the diagonal approximation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas import layers
from attlas.aim.channels.channel import Array
from attlas.aim.channels.defaults import ChannelDefaults
from attlas.aim.channels.softmax import Softmax
from attlas.errors import InputError
from attlas.inputs import integer, real

# Covariance, over V, of (h_11 - h_12, h_22 - h_12), which is all that a softmax of two tokens sees of h
_M = np.array([[3.0, 1.0], [1.0, 3.0]])
_PRECISION = np.linalg.inv(_M)
_ROOT = np.linalg.cholesky(_M)

_STAGES = (17, 25, 37, 55, 83, 125, 187)  # nodes of one dimension; each grid is laid where the last found weight
_REACH = 8.5  # standard deviations of the prior
_DEPTH = 34.0  # of a logarithmic weight below the top that still counts
_BATCHES = 8


@dataclass(frozen=True)
class Deep(ChannelDefaults):
    """y = softmax(beta B h2 B^T), B = skip I + softmax(beta h1): the second of two attention layers.

    h1 and h2 are the indices of the two layers on the first layer's tokens, of independent teachers S_1 and S_2. Arrays of
    indices have shape (2, n, 2, 2); V and Q have one entry per layer. y fixes B h2 B^T up to a common shift, so given
    (omega_1, omega_2) the posterior is an integral over the two differences u = (h1_11 - h1_12, h1_22 - h1_12): with
    lambda = skip - 1 + sigma(beta u_1) + sigma(beta u_2), the second eigenvalue of B, and p, r the logits of y_11, y_22,

        k(u) = ((skip + sigma_2) p + (1 - sigma_1) r, (1 - sigma_2) p + (skip + sigma_1) r) / ((1 + skip) lambda^2),
        Z ∝ E_u |lambda|^-3 N(k(u); (omega2_11 - omega2_12, omega2_22 - omega2_12), V_2 [[3, 1], [1, 3]]).

    It is a sum over u_1 - u_2 of sums over u_1 + u_2, each on grids that are refined where they find weight.

    **Diagonal approximation**: the effective noises of the two layers are correlated, by G_12 of `information`; state
    evolution and message passing use G_11 and G_22 and drop G_12, because no closed form of the joint denoiser is known.
    They are then not exactly Bayes-optimal.

    Parameters
    ----------
    tokens : int, default 2
        Two; no other number is derived.
    beta : float, default 1
        Inverse temperature of both layers.
    skip : float, default 1
        Strength of the residual connection, not negative.
    samples : int, default 1024
        Quasi-Monte Carlo points behind `information` and the errors, in 8 independent batches.
    accuracy : float, default 1e-3
        Of each sample's log Z, and of its posterior means against their spread. A sample that needs more than 187 nodes in
        one dimension is left at those; `information_error` shows if that matters.

    References
    ----------
    boncoraglio2025bayes, deep attention; the reduction to two dimensions is ours.
    """

    tokens: int = 2
    beta: float = 1.0
    skip: float = 1.0
    samples: int = 1024
    accuracy: float = 1e-3

    layers = 2
    floor = 1e-6

    def __post_init__(self) -> None:
        if integer(self.tokens, "tokens") != 2:
            raise InputError(f"deep attention is derived for two tokens; got tokens = {self.tokens}")
        object.__setattr__(self, "beta", real(self.beta, "beta", above=0))
        object.__setattr__(self, "skip", real(self.skip, "skip", least=0))
        object.__setattr__(self, "samples", integer(self.samples, "samples", least=64))
        object.__setattr__(self, "accuracy", real(self.accuracy, "accuracy", above=0))

    @property
    def score_error(self) -> float:
        """A tenth of `accuracy`, which is what the quadrature of the score can settle."""
        return 0.1 * self.accuracy

    def respond(self, X: Array, S: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Return the outputs of both layers on tokens."""
        return layers.deep_attention(X, S, self.beta, self.skip)

    def output(self, h: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Return the outputs (n, 2, 2) of indices (2, n, 2, 2)."""
        B = self.skip * np.eye(2) + layers.softmax(h[0], self.beta)
        return layers.softmax(B @ h[1] @ B.transpose(0, 2, 1), self.beta)

    def check(self, y: ArrayLike) -> Array:
        """Return y if softmax can produce it."""
        return Softmax(2, self.beta).check(y)

    def score(self, y: Array, omega: Array, V: Array) -> Array:
        """Return g_l = d log Z / d omega_l of both layers, shape (2, n, 2, 2)."""
        _, s = self._posterior(self._logits(y), _differences(omega), V)
        g = np.empty((2, len(y), 2, 2))
        g[..., 0, 0], g[..., 1, 1] = s[..., 0], s[..., 1]
        g[..., 0, 1] = g[..., 1, 0] = -s.sum(-1)
        return g

    def log_partition(self, y: Array, omega: Array, V: Array) -> Array:
        """Return log Z of each sample, up to a function of y."""
        return self._posterior(self._logits(y), _differences(omega), V)[0]

    def information(self, V: ArrayLike, Q: ArrayLike) -> Array:
        """Return G_lm = sum_{a <= b} (1 + delta_ab) E[g_l,ab g_m,ab] as a 2 x 2 matrix.

        omega_l has variance (Q_l - V_l)(1 + delta_ab), and the layers' omega the covariance sqrt(rho_1 rho_2)(1 + delta_ab),
        rho = Q - 1, because the prior means of S are not zero.
        """
        return np.asarray(self.information_batches(V, Q).mean(0))

    def information_batches(self, V: ArrayLike, Q: ArrayLike) -> Array:
        """Return `information` from each of 8 independent batches of its points."""
        return _batches(self, *(tuple(part) for part in _per_layer(V, Q)))[0]

    def information_error(self, V: ArrayLike, Q: ArrayLike) -> tuple[Array, Array]:
        """Return the standard errors of `information`, and by how many the Nishimori identity is missed in each layer.

        A miss well above 3 says that the quadrature does not resolve the posterior.
        """
        G, nishimori = _batches(self, *(tuple(part) for part in _per_layer(V, Q)))
        root = np.sqrt(len(G))
        miss = np.diagonal(G, axis1=1, axis2=2) - nishimori
        return G.std(0, ddof=1) / root, np.abs(miss.mean(0)) / (miss.std(0, ddof=1) / root)

    def bayes_error(self, V: ArrayLike, Q: ArrayLike) -> float:
        """Return E ||y - E[y | omega]||^2, by two replicas."""
        first, second = (_logistic(self._observe(*pair)) for pair in _replicas(V, Q, 8 * self.samples)[:2])
        return float(np.mean(np.sum((first - second) ** 2, axis=-1)))

    def plugin_error(self, V: ArrayLike, Q: ArrayLike) -> float:
        """Return E ||y - y(omega)||^2."""
        first, _, centre = (_logistic(self._observe(*pair)) for pair in _replicas(V, Q, 8 * self.samples))
        return 2 * float(np.mean(np.sum((first - centre) ** 2, axis=-1)))

    def _logits(self, y: Array) -> Array:
        """Return (p, r), the logits of y_11 and y_22 over beta."""
        return np.stack([np.log(y[:, 0, 0] / y[:, 0, 1]), np.log(y[:, 1, 1] / y[:, 1, 0])], axis=-1) / self.beta

    def _observe(self, u: Array, k: Array) -> Array:
        """Return beta (p, r) from the differences of both layers: the inverse of k(u; p, r)."""
        first, second = (_logistic(self.beta * u[:, i]) for i in (0, 1))
        scale = self.beta * (self.skip - 1 + first + second)
        p = scale * ((self.skip + first) * k[:, 0] - (1 - first) * k[:, 1])
        r = scale * ((self.skip + second) * k[:, 1] - (1 - second) * k[:, 0])
        return np.stack([p, r], axis=-1)

    def _posterior(self, logits: Array, omega: Array, V: Array) -> tuple[Array, Array]:
        """Return log Z (n,) and its gradients by the differences of omega (2, n, 2).

        With s, v = beta (u_1 +- u_2)/2, which are independent a priori, the integral over v is a sum of integrals over s.
        """
        V = np.asarray(V, dtype=float)
        log_z, s = np.empty(len(logits)), np.empty((2, len(logits), 2))
        for start in range(0, len(logits), 64):
            rows = slice(start, start + 64)
            problem = _Problem(self, logits[rows], omega[:, rows], V)
            centre = self.beta * (omega[0, rows, 0] - omega[0, rows, 1]) / 2
            reach = np.full(len(centre), _REACH * self.beta * np.sqrt(V[0]))
            found = _zoom(problem.over_s, centre - reach, centre + reach, self.accuracy)
            log_z[rows] = found[:, 0]
            for layer in (0, 1):  # means of sum and difference of u - m, and of k - kappa
                plus, minus = found[:, 1 + 2 * layer], found[:, 2 + 2 * layer]
                away = np.column_stack([plus + minus, plus - minus]) / 2
                s[layer, rows] = away @ _PRECISION / V[layer]
        return log_z, s


@dataclass(frozen=True)
class _Problem:
    """The integrals of a block of samples."""

    channel: Deep
    logits: Array
    omega: Array
    V: Array

    def over_s(self, rows: NDArray[np.intp], v: Array) -> tuple[Array, Sequence[Array]]:
        """Return the logarithm of the integral over s at nodes v (rows, nodes), and the four means there."""
        beta, skip = self.channel.beta, self.channel.skip
        sample, flat = np.repeat(rows, v.shape[1]), v.ravel()
        centre = beta * self.omega[0, sample].sum(1) / 2
        reach = _REACH * beta * np.sqrt(2 * self.V[0])
        if skip >= 1:
            parts = [_zoom(partial(self._integrand, sample, flat, 0.0), centre - reach, centre + reach, self.accuracy)]
        else:
            # B is singular at s0: k has a pole there, and on either side log |s - s0| is the scale
            s0 = _log_root(1 - skip, 1 + skip, flat)
            high = np.log(np.abs(centre - s0) + reach)
            parts = [
                _zoom(partial(self._integrand, sample, flat, sign), np.full_like(high, -20.0), high, self.accuracy)
                for sign in (1.0, -1.0)
            ]
        log_z = np.logaddexp.reduce([part[:, 0] for part in parts])
        means = sum(np.exp(part[:, 0] - log_z)[:, None] * part[:, 1:] for part in parts)
        return log_z.reshape(v.shape), [column.reshape(v.shape) for column in np.asarray(means).T]

    @property
    def accuracy(self) -> float:
        return 0.1 * self.channel.accuracy

    def _integrand(
        self, sample: NDArray[np.intp], v: Array, sign: float, rows: NDArray[np.intp], x: Array
    ) -> tuple[Array, list[Array]]:
        """Return the logarithm of prior times likelihood at nodes x, and sums and differences of u - m and k - kappa.

        x is s itself (sign 0), or log |s - s0| on one side of the singular s0. With b = sigma_1 - sigma_2,
        k_1 + k_2 = (p + r)/lambda^2 and k_1 - k_2 = (lambda (p - r) - b (p + r))/((1 + skip) lambda^2).
        """
        beta, c = self.channel.beta, self.channel.skip
        sample, v = sample[rows], v[rows, None]
        s = x if sign == 0 else _log_root(1 - c, 1 + c, v) + sign * np.exp(x)
        log_jacobian = 0 * x if sign == 0 else x
        first, second = _logistic(s + v), _logistic(s - v)
        eigenvalue = c - 1 + first + second
        size = np.maximum(eigenvalue * eigenvalue, 1e-60)
        p, r = self.logits[sample, :1], self.logits[sample, 1:]
        plus = (p + r) / size
        minus = (eigenvalue * (p - r) - (first - second) * (p + r)) / ((1 + c) * size)
        away = []
        for a, b, centre in ((2 * s / beta, 2 * v / beta, self.omega[0, sample]), (plus, minus, self.omega[1, sample])):
            away += [a - centre.sum(1)[:, None], b - (centre[:, :1] - centre[:, 1:])]
        log_weight = log_jacobian - 1.5 * np.log(size)
        for (a, b), V in zip((away[:2], away[2:]), self.V, strict=True):  # variances 8 V and 4 V
            log_weight = log_weight - a * a / (16 * V) - b * b / (8 * V)
        return log_weight, away


def _zoom(
    integrand: Callable[[NDArray[np.intp], Array], tuple[Array, Sequence[Array]]],
    low: Array,
    high: Array,
    accuracy: float,
) -> Array:
    """Return the logarithm of the integral of exp(log weight), and the weighted means, of every row: (rows, 5).

    Trapezoidal sums, geometrically convergent for weights that vanish at both ends. Each grid covers what the last one found
    to count; rows stop when logarithm and means change by less than `accuracy`, means against their spread.
    """
    found, todo = np.full((len(low), 5), np.inf), np.arange(len(low))
    low, high = low.copy(), high.copy()
    for nodes in _STAGES:
        line = np.linspace(0, 1, nodes)
        x = low[todo, None] + (high - low)[todo, None] * line
        log_weight, values = integrand(todo, x)
        top = log_weight.max(1)
        log_weight = log_weight - top[:, None]
        weight = np.exp(log_weight)
        total = weight.sum(1)
        step = (high - low)[todo] / (nodes - 1)
        means = [(weight * value).sum(1) / total for value in values]
        spreads = [np.sqrt((weight * value * value).sum(1) / total) + 1e-300 for value in values]
        fresh = np.column_stack([np.log(total * step) + top, *means])
        change = np.abs(fresh - found[todo]) / np.column_stack([np.ones_like(total), *spreads])
        found[todo] = fresh
        heavy = log_weight > -_DEPTH
        low[todo] = x[np.arange(len(x)), heavy.argmax(1)] - step
        high[todo] = x[np.arange(len(x)), nodes - 1 - heavy[:, ::-1].argmax(1)] + step
        todo = todo[(change > accuracy).any(1)]
        if not len(todo):
            break
    return found


def _log_root(a: float, rest: float, v: Array) -> Array:
    """Return s such that sigma(s + v) + sigma(s - v) = a = 2 - rest, a <= 1."""
    D = 2 * np.cosh(v)
    return np.asarray(np.log(2 * a / (D * (1 - a) + np.sqrt((D * (1 - a)) ** 2 + 4 * a * rest))))


def _differences(h: Array) -> Array:
    """Return (h_11 - h_12, h_22 - h_12)."""
    return np.asarray(np.stack([h[..., 0, 0] - h[..., 0, 1], h[..., 1, 1] - h[..., 0, 1]], axis=-1))


def _logistic(x: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(x))


@lru_cache(maxsize=4096)
def _batches(channel: Deep, V: tuple[float, ...], Q: tuple[float, ...]) -> tuple[Array, Array]:
    """Return G of every batch (8, 2, 2), and E[s . (u - m)]/V (8, 2), which equals its diagonal.

    Message passing visits the same V for every data set of one size, so they are kept.
    """
    exact, _, omega = _replicas(V, Q, channel.samples)
    logits = channel._observe(exact[0], exact[1]) / channel.beta
    _, s = channel._posterior(logits, omega, np.asarray(V))
    G = np.einsum("lni,ij,mnj->nlm", s, _M, s).reshape(_BATCHES, -1, 2, 2).mean(1)
    nishimori = (np.einsum("lni,lni->nl", s, exact - omega) / np.asarray(V)).reshape(_BATCHES, -1, 2).mean(1)
    for kept in (G, nishimori):
        kept.flags.writeable = False
    return G, nishimori


def _per_layer(V: ArrayLike, Q: ArrayLike) -> tuple[Array, Array]:
    return np.broadcast_to(np.asarray(V, dtype=float), 2), np.broadcast_to(np.asarray(Q, dtype=float), 2)


@lru_cache(maxsize=4)
def _normals(samples: int, dimensions: int) -> Array:
    """Return normal points (samples, dimensions), in `_BATCHES` independently scrambled Sobol sets."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    power = int(np.ceil(np.log2(max(samples // _BATCHES, 1))))
    points = [qmc.Sobol(dimensions, seed=batch).random_base2(power) for batch in range(_BATCHES)]
    return np.asarray(ndtri(np.concatenate(points)))


def _replicas(V: ArrayLike, Q: ArrayLike, samples: int) -> tuple[Array, Array, Array]:
    """Return the differences (2, n, 2) of two replicas of h that share omega, and of omega."""
    V, Q = _per_layer(V, Q)
    shared = np.sqrt(np.prod(Q - 1))
    overlap = np.array([[Q[0] - V[0], shared], [shared, Q[1] - V[1]]])
    values, vectors = np.linalg.eigh(overlap)  # singular at V = 1, where omega is the prior mean's
    root = vectors * np.sqrt(np.maximum(values, 0))
    z = _normals(samples, 12).reshape(-1, 6, 2) @ _ROOT.T
    omega = np.einsum("lm,nmi->lni", root, z[:, :2])
    noise = np.sqrt(V)[:, None, None] * z[:, 2:].reshape(-1, 2, 2, 2).transpose(1, 2, 0, 3)
    return omega + noise[0], omega + noise[1], omega
