"""Tokens and outputs in coordinates in which a search is well conditioned, and the way back.

Tokens are x = L z + mu, z white. Where the layer has biases, mu is the mean: x_r^T Theta x_c is then z_r^T L^T Theta L z_c
plus a key bias, and the mean output is an output bias, so that the search sees no mean at all. Where it has none, mu is
zero. Directions in which tokens do not vary are left as they are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.examples import Examples
from attlas.recovery.factors import Factors, Sizes

Array = NDArray[np.float64]

_FLAT = 1e-8  # of the largest variance: what varies less is not stretched


class Frame(NamedTuple):
    """x = stretch z + mu, and z = shrink (x - mu); y = scale (outputs of the search) + mean."""

    stretch: Array
    shrink: Array
    mu: Array
    scale: float
    mean: Array

    @classmethod
    def of(cls, data: Examples, biased: bool) -> "Frame":
        """Return the frame of some examples."""
        tokens, d, d_out = data.X.reshape(-1, data.X.shape[2]), data.X.shape[2], data.Y.shape[2]
        mu = tokens.mean(0) if biased else np.zeros(d)
        mean = data.Y.reshape(-1, d_out).mean(0) if biased else np.zeros(d_out)
        moment = (tokens - mu).T @ (tokens - mu) / len(tokens)
        values, vectors = np.linalg.eigh(moment)
        root = np.sqrt(np.where(values > _FLAT * values[-1], values, values[-1]))
        rest = data.Y - mean
        scale = float(np.sqrt(np.mean(rest**2))) or 1.0
        return cls((vectors * root) @ vectors.T, (vectors / root) @ vectors.T, mu, scale, mean)

    def see(self, data: Examples) -> Examples:
        """Return the same examples in these coordinates."""
        X, queries = ((tokens - self.mu) @ self.shrink for tokens in (data.X, data.queries))
        return Examples(X, queries, (data.Y - self.mean) / self.scale)

    def back(self, v: Array, sizes: Sizes) -> Array:
        """Return the factors of the layer that does to tokens what v does to them in these coordinates."""
        found = v.copy()
        here, there = Factors.of(v, sizes), Factors.of(found, sizes)
        for new, old in zip(there[:3], here[:3], strict=True):
            new[:] = old @ self.shrink
        there.O[:] = self.scale * here.O
        if sizes.biased:
            there.a[:] = here.a - there.A @ self.mu
            there.b[:] = self.scale * here.b + self.mean - there.O @ (there.V @ self.mu)
        return found
