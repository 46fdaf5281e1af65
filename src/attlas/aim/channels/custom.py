"""A channel of one's own: any output function, with Gaussian noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attlas.aim.channels.channel import Array, doubling, outputs, symmetric_normal
from attlas.aim.channels.defaults import ChannelDefaults
from attlas.errors import InputError
from attlas.inputs import integer, plain, real
from attlas.numerics import stream


@dataclass(frozen=True)
class Custom(ChannelDefaults):
    """y = function(h) + sqrt(noise) xi, the noise independent on each entry of y; score and G2 by quadrature.

    Posterior means are sums over nodes of the T (T + 1)/2 standard normals behind h: trapezoidal for one and two
    tokens, Sobol points for more. G2 is a quasi-Monte Carlo mean over `samples` points, tabulated over V once for every Q;
    `information_error` gives the standard error of as many independent draws, which bounds its own, and by how much the
    Nishimori identity is missed, which tells if the nodes are too few for so little noise.

    Parameters
    ----------
    function : callable
        Maps indices of shape (n, T, T) to outputs of the same shape, row by row of n.
    tokens : int
    noise : float
        Variance, positive.
    nodes : int, optional
        Nodes per dimension: 257 for one token, 27 for two; 2^12 points in all for more. Enough while the noise is not
        small against what one standard deviation of an index changes.
    samples : int, default 4000

    Examples
    --------
    >>> channel = Custom(np.tanh, tokens=1, noise=0.1)
    >>> float(channel.information(1.0, 1.5)) > 0
    True
    """

    function: Callable[[Array], Array]
    tokens: int
    noise: float
    nodes: int | None = None
    samples: int = 4000

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", integer(self.tokens, "tokens"))
        object.__setattr__(self, "noise", real(self.noise, "noise", above=0))
        object.__setattr__(self, "samples", integer(self.samples, "samples", least=100))
        if self.nodes is not None:
            object.__setattr__(self, "nodes", integer(self.nodes, "nodes", least=3))
        if not callable(self.function):
            raise InputError(f"function must be callable; got {self.function!r}")
        h = symmetric_normal(50, self.tokens, stream(0, "custom probe"))
        with np.errstate(all="ignore"):
            probe = plain(self.function(h), "what function returns", "an array (n, T, T)")
        if probe.shape != h.shape:
            raise InputError(
                f"function must map (n, T, T) to (n, T, T), T = {self.tokens}; it maps {h.shape} to {probe.shape}"
            )
        if probe.dtype.kind not in "fiub" or not np.isfinite(probe).all():
            raise InputError("function must give finite real numbers; it does not for standard normal indices")

    def output(self, h: Array, rng: np.random.Generator) -> Array:
        """Draw y."""
        return np.asarray(self.mean(h) + np.sqrt(self.noise) * rng.standard_normal(h.shape))

    def mean(self, h: Array) -> Array:
        """Return function(h)."""
        return np.asarray(self.function(h))

    def check(self, y: ArrayLike) -> Array:
        """Return y if its shape is right."""
        return outputs(y, self.tokens)

    def score(self, y: Array, omega: Array, V: float) -> Array:
        """Return d log Z / d omega."""
        return self._posterior(y, omega, V)[1]

    def log_partition(self, y: Array, omega: Array, V: float) -> Array:
        """Return log Z of each sample."""
        return self._posterior(y, omega, V)[0]

    def information(self, V: ArrayLike, Q: ArrayLike) -> Array:
        """Return G2(V), a Monte Carlo mean with the same draws at every V, interpolated between 24 Chebyshev nodes in log V.

        Below V = 1e-6 Q the noise limits G2, which is taken as constant.
        """
        return self._look_up(V, Q)[0]

    def information_error(self, V: ArrayLike, Q: ArrayLike) -> tuple[Any, Any]:
        """Return the standard error of G2, and by how much the Nishimori identity is missed, in standard errors.

        Both are known at the nodes of the table, and taken along straight lines in log V between them.
        """
        G, relative, missed = self._look_up(V, Q)
        return relative * G, missed

    def _look_up(self, V: ArrayLike, Q: ArrayLike) -> tuple[Array, Array, Array]:
        """Return G2, its standard error over itself, and the miss of the Nishimori identity."""
        V, Q = np.broadcast_arrays(np.asarray(V, dtype=float), np.asarray(Q, dtype=float))
        G, relative, missed = (np.empty(V.shape) for _ in range(3))
        for q in np.unique(Q):
            rows, table = q == Q, self._table(float(q))
            x = np.log(np.clip(V[rows], 1e-6 * q, q))
            G[rows] = np.exp(table.log_information(x))
            relative[rows], missed[rows] = (np.interp(x, table.log_V, y) for y in (table.relative, table.missed))
        return G, relative, missed

    def _table(self, Q: float) -> "_Table":
        """Return the table of one Q, made once."""
        from scipy.interpolate import BarycentricInterpolator

        if Q not in self._tables:
            high, low = np.log(Q), np.log(1e-6 * Q)
            nodes = (high + low) / 2 + (high - low) / 2 * np.cos(np.pi * np.arange(24) / 23)
            values, errors, missed = np.array([self._information(float(np.exp(node)), Q) for node in nodes]).T
            if not np.isfinite(values).all() or np.any(values < 0):
                raise InputError("the output function has no finite information at some indices; check it for NaN")
            values = np.maximum(values, 1e-300)
            interpolator = BarycentricInterpolator(nodes, np.log(values), rng=0)
            self._tables[Q] = _Table(interpolator, nodes[::-1], (errors / values)[::-1], missed[::-1])
        return self._tables[Q]

    @cached_property
    def _tables(self) -> "dict[float, _Table]":
        return {}

    def _information(self, V: float, Q: float) -> tuple[float, float, float]:
        scale, (before, within, noise) = doubling(self.tokens), self._normals
        omega = np.sqrt(max(Q - V, 0.0) * scale) * before
        h = omega + np.sqrt(V * scale) * within
        g = self.score(np.asarray(self.function(h)) + np.sqrt(self.noise) * noise, omega, V)
        weight = np.triu(doubling(self.tokens))
        squares = (weight * g * g).sum((1, 2))
        nishimori = squares - (np.triu(g * (h - omega)) / V).sum((1, 2))
        root = np.sqrt(len(h))
        missed = abs(nishimori.mean()) / max(nishimori.std() / root, 1e-300)
        return float(squares.mean()), float(squares.std() / root), float(missed)

    @cached_property
    def _normals(self) -> tuple[Array, Array, Array]:
        """Normal Sobol points behind omega, h - omega and the noise of the output; at least `samples` of them."""
        from scipy.special import ndtri
        from scipy.stats import qmc

        T = self.tokens
        pairs = T * (T + 1) // 2
        points = qmc.Sobol(2 * pairs + T * T, seed=0).random_base2(int(np.ceil(np.log2(self.samples))))
        z = ndtri(points)
        rows, columns = np.triu_indices(T)
        matrices = np.empty((2, len(z), T, T))
        for part, own in zip(matrices, (z[:, :pairs], z[:, pairs : 2 * pairs]), strict=True):
            part[:, rows, columns] = part[:, columns, rows] = own
        return matrices[0], matrices[1], z[:, 2 * pairs :].reshape(-1, T, T)

    def _posterior(self, y: Array, omega: Array, V: float) -> tuple[Array, Array]:
        xi, log_weight = self._nodes
        T, K = self.tokens, len(xi)
        scale = np.sqrt(V * doubling(T))
        log_z, g = np.empty(len(y)), np.empty_like(y, dtype=float)
        block = max(1, (1 << 21) // (K * T * T))
        for start in range(0, len(y), block):
            rows = slice(start, start + block)
            h = omega[rows, None] + scale * xi
            mean = np.asarray(self.function(h.reshape(-1, T, T))).reshape(h.shape)
            log_likelihood = -0.5 / self.noise * ((y[rows, None] - mean) ** 2).sum((2, 3)) + log_weight
            top = log_likelihood.max(1, keepdims=True)
            weight = np.exp(log_likelihood - top)
            total = weight.sum(1)
            log_z[rows] = np.log(total) + top[:, 0] - 0.5 * T * T * np.log(2 * np.pi * self.noise)
            g[rows] = np.tensordot(weight, xi, axes=(1, 0)) / total[:, None, None] / scale
        return log_z, g

    @cached_property
    def _nodes(self) -> tuple[Array, Array]:
        """Symmetric matrices of standard normals, and the logarithms of their weights."""
        T = self.tokens
        pairs = T * (T + 1) // 2
        if pairs <= 3:
            # a trapezoidal sum converges geometrically for smooth posteriors, whatever their place; Gauss-Hermite does not
            x = np.linspace(-8, 8, self.nodes or 257) if pairs == 1 else np.linspace(-5.5, 5.5, self.nodes or 27)
            w = np.exp(-0.5 * x * x)
            grid: Any = np.stack(np.meshgrid(*[x] * pairs, indexing="ij"), axis=-1).reshape(-1, pairs)
            weight: Any = np.prod(np.stack(np.meshgrid(*[w / w.sum()] * pairs, indexing="ij"), -1), -1).ravel()
            keep = weight > 1e-12 * weight.max()
            grid, weight = grid[keep], weight[keep]
        else:
            from scipy.special import ndtri
            from scipy.stats import qmc

            grid = ndtri(qmc.Sobol(pairs, seed=0).random(self.nodes or 4096))
            weight = np.full(len(grid), 1 / len(grid))
        xi = np.zeros((len(grid), T, T))
        rows, columns = np.triu_indices(T)
        xi[:, rows, columns] = xi[:, columns, rows] = grid
        return xi, np.log(weight)


class _Table(NamedTuple):
    """log G2 as a function of log V at one Q; and at its nodes, ascending, the relative standard error and the miss."""

    log_information: Any
    log_V: Array
    relative: Array
    missed: Array
