"""Several heads, their number unknown: isolated, as in a pure attention layer, inside one linear cell of the network.

Scaled tokens [z b + u/z; z b] have the logits of [b + u; b], and y stays in the cell of z b while u is short against z^2.
There z (answer - G(z b)) = D(u) J, so that what `isolate` does with a layer can be done with a block, its long u included.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.block.asking import Asking
from attlas.recovery.block.network import Network
from attlas.recovery.isolate import separate
from attlas.recovery.oracle import CountingOracle, Lost, Task
from attlas.recovery.view import View

Array = NDArray[np.float64]

# z while steps are searched, for saturated values, and for Theta: rounding of logits grows with z^2, reach with it, too
_SCALES = (3e5, 1.7e4, 1e3)
_LONG = 1e8
_NOISE = 1e-11  # that rounding at these scales looks like
_ATTEMPTS = (1.0, 1.0, 10.0, 10.0, 1.0, 1.0)  # at what multiple of z; u is then longer by its square, for flat heads


class CellView(View):
    """What is seen of the heads with the final token z b, in its cell: D(u) J for [z b + u/z; z b].

    `total` is sum_i V_i J.
    """

    def __init__(
        self, ask: CountingOracle, network: Network, z: float, b: Array, total: Array, noise: float, long: float
    ) -> None:
        super().__init__(ask, b, total, noise, long)
        self.network, self.z = network, z
        self.signs = np.sign(network.places(z * b))

    def __call__(self, u: Array, copies: int = 1) -> Task:
        """Return the u that arithmetic made of it, and D(u) J."""
        last = self.z * self.b
        first = last + u / self.z
        answer = yield np.array([*[first] * copies, last])
        return self.z * (first - last), self.z * (answer - self.network(last))

    def moved(self, by: Array) -> "CellView":
        """Return the view with the final token z (b + by), if it is in the same cell."""
        found = self._like(self.z, self.b + by)
        if np.any(found.signs != self.signs):
            raise Lost("this final token is in another cell")
        return found

    def scaled(self, z: float) -> "CellView":
        """Return the view with another z."""
        return self._like(z, self.b)

    def _like(self, z: float, b: Array) -> "CellView":
        return CellView(self.ask, self.network, z, b, self.total, self.noise, self.long)


def isolated_heads(
    ask: Asking, network: Network, S: Array, total: Array, rng: np.random.Generator
) -> Iterator[Array | str]:
    """Yield the Theta (m, d, d) that each attempt found, or why it found none.

    Parameters
    ----------
    ask : Asking
    network : Network
    S, total : arrays of shape (d, s)
        What the network sees, and sum_i V_i S.
    rng : numpy.random.Generator
    """
    for larger in _ATTEMPTS:
        b = _deep(network, rng)
        slope = S.T @ network.slope(1e6 * b)
        noise = max(_NOISE, 1e3 * ask.eps)  # of z (answer - G(z b)), relative to u
        view = CellView(ask.oracle, network, larger * _SCALES[0], b, total @ slope, noise, larger**2 * _LONG)
        try:
            yield separate(view, view.scaled(larger * _SCALES[1]), view.scaled(_SCALES[2]), rng).Theta
        except Lost as why:
            yield str(why)


def _deep(network: Network, rng: np.random.Generator) -> Array:
    """Return a unit vector deep in an unbounded cell where the network is not flat: one of the ten best of many."""
    b = rng.standard_normal((3000, network.d))
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    sides = b @ network.U.T
    steep = np.linalg.norm(network.slope_of(np.sign(sides)), axis=(1, 2))
    depth = np.abs(sides).min(1, initial=1.0)
    best = np.argsort(depth * np.minimum(1.0, 2 * steep / max(float(steep.max()), 1e-300)))[-10:]
    return np.asarray(b[rng.choice(best)])
