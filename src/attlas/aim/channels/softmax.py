"""y = softmax(beta h), row by row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attlas import layers
from attlas.aim.channels.channel import Array, doubling, outputs
from attlas.aim.channels.defaults import ChannelDefaults
from attlas.aim.channels.rows import replica_error
from attlas.errors import InputError
from attlas.inputs import integer, real


@dataclass(frozen=True)
class Softmax(ChannelDefaults):
    """Attention with softmax rows, without noise.

    y fixes h up to one common shift of all entries, so it holds T (T + 1)/2 - 1 numbers: softmax of T tokens at alpha is a
    noiseless quadratic network at alpha (T^2 + T - 2)/2, whatever beta.

    Parameters
    ----------
    tokens : int
        At least 2.
    beta : float, default 1
        Inverse temperature.
    """

    tokens: int = 2
    beta: float = 1.0

    centred = True
    variance_per_sample = True
    index_noise = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", integer(self.tokens, "tokens", least=2))
        object.__setattr__(self, "beta", real(self.beta, "beta", above=0))

    @property
    def count(self) -> float:
        """T^2 + T - 2."""
        return float(self.tokens**2 + self.tokens - 2)

    def output(self, h: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Return softmax(beta h)."""
        return self.mean(h)

    def check(self, y: ArrayLike) -> Array:
        """Return y if its rows are positive, sum to one and come from symmetric indices."""
        y = outputs(y, self.tokens)
        if np.all((y == 0) | (y == 1)) and np.all(y.sum(-1) == 1):
            raise InputError("y has one-hot rows, which softmax never gives; use Hardmax for them")
        if y.min() <= 0 or np.abs(y.sum(-1) - 1).max() > 1e-6:
            raise InputError("y must have positive rows that sum to one; a zero means that softmax underflowed")
        h = self.indices(y)
        if np.abs(h - h.transpose(0, 2, 1)).max() > 1e-6 * max(1.0, np.abs(h).max()):
            raise InputError("no softmax attention can produce this y: its logits are not symmetric up to row shifts")
        return y

    def score(self, y: Array, omega: Array, V: float) -> Array:
        """Return (e - its mean) / (V (1 + delta)), e the inverted indices less omega.

        The common shift is estimated with weights 1/(V (1 + delta)) over a <= b, which for one V is the plain mean of all
        T^2 entries.
        """
        e = self.indices(y) - omega
        if np.ndim(V) == 0:
            e -= e.mean((1, 2), keepdims=True)
        else:
            # each pair a < b is counted twice, each diagonal with half the weight
            weight = np.broadcast_to(1 / V, e.shape)
            e -= (weight * e).sum((1, 2), keepdims=True) / weight.sum((1, 2), keepdims=True)
        return np.asarray(e / (V * doubling(self.tokens)))

    def log_partition(self, y: Array, omega: Array, V: float) -> Array:
        """Return log Z of each sample up to a constant: the common shift integrated out."""
        e = self.indices(y) - omega
        e -= e.mean((1, 2), keepdims=True)
        return np.asarray(-0.25 / V * (e**2).sum((1, 2)))

    def information(self, V: ArrayLike, Q: ArrayLike) -> Array:  # noqa: ARG002
        """Return (T^2 + T - 2) / (2 V)."""
        return self.count / (2 * np.asarray(V, dtype=float))

    def bayes_error(self, V: float, Q: float) -> float:
        """Return E ||y - E[y | omega]||^2."""
        return replica_error(self.tokens, V, Q, self.beta)

    def plugin_error(self, V: float, Q: float) -> float:
        """Return E ||y - softmax(beta omega)||^2."""
        return replica_error(self.tokens, V, Q, self.beta, plugin=True)

    def mean(self, h: Array) -> Array:
        """Return softmax(beta h)."""
        return layers.softmax(h, self.beta)

    def pullback(self, h: Array, e: Array) -> Array:
        """Return beta y_ab (e_ab - sum_c e_ac y_ac)."""
        y = self.mean(h)
        return np.asarray(self.beta * y * (e - (e * y).sum(-1, keepdims=True)))

    def indices(self, y: Array) -> Array:
        """Return h up to a common shift: u = log y / beta, h0_ab = u_ab + u_1a - u_a1."""
        u = np.log(y) / self.beta
        return np.asarray(u + (u[:, 0, :] - u[:, :, 0])[:, :, None])
