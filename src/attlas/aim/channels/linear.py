"""y = h + noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attlas.aim.channels.channel import Array, doubling, outputs, symmetric_normal
from attlas.aim.channels.defaults import ChannelDefaults
from attlas.errors import InputError
from attlas.inputs import integer, real


@dataclass(frozen=True)
class Linear(ChannelDefaults):
    """The indices themselves, with Gaussian noise: y_ab = h_ab + sqrt(D) xi_ab for a <= b, y symmetric.

    T = 1 is the quadratic network of maillard2024quadratic.

    Parameters
    ----------
    tokens : int, default 1
    noise : float, default 0
        The variance D.
    """

    tokens: int = 1
    noise: float = 0.0

    variance_per_sample = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", integer(self.tokens, "tokens"))
        object.__setattr__(self, "noise", real(self.noise, "noise", least=0))

    @property
    def count(self) -> float | None:
        """T (T + 1) without noise."""
        return None if self.noise else float(self.tokens * (self.tokens + 1))

    @property
    def index_noise(self) -> float:
        """D."""
        return self.noise

    def output(self, h: Array, rng: np.random.Generator) -> Array:
        """Draw y."""
        return np.asarray(h + np.sqrt(self.noise) * symmetric_normal(len(h), self.tokens, rng))

    def check(self, y: ArrayLike) -> Array:
        """Return y if it is symmetric."""
        y = outputs(y, self.tokens)
        if np.abs(y - y.transpose(0, 2, 1)).max() > 1e-8 * max(1.0, np.abs(y).max()):
            raise InputError("y of a linear channel must be symmetric in its last two axes, as the indices are")
        return y

    def score(self, y: Array, omega: Array, V: float) -> Array:
        """Return (y - omega) / (D + V (1 + delta))."""
        return (y - omega) / (self.noise + V * doubling(self.tokens))

    def log_partition(self, y: Array, omega: Array, V: float) -> Array:
        """Return log Z for each sample."""
        variance = self.noise + V * doubling(self.tokens)
        terms = -0.5 * (y - omega) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
        return np.asarray(np.triu(terms).sum((1, 2)))

    def information(self, V: ArrayLike, Q: ArrayLike) -> Array:  # noqa: ARG002
        """Return 2 T / (D + 2 V) + T (T - 1) / (2 (D + V))."""
        V, T = np.asarray(V, dtype=float), self.tokens
        return 2 * T / (self.noise + 2 * V) + T * (T - 1) / (2 * (self.noise + V))

    def bayes_error(self, V: float, Q: float) -> float:  # noqa: ARG002
        """Return T (T + 1) V, of the clean indices."""
        return float(self.tokens * (self.tokens + 1) * V)

    def plugin_error(self, V: float, Q: float) -> float:
        """Return the same: the posterior mean of h is the best estimate of h."""
        return self.bayes_error(V, Q)

    def mean(self, h: Array) -> Array:
        """Return h."""
        return h

    def pullback(self, h: Array, e: Array) -> Array:  # noqa: ARG002
        """Return e."""
        return e

    def indices(self, y: Array) -> Array:
        """Return y."""
        return y
