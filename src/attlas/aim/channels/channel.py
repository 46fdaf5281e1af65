"""What a channel must be able to do, and arrays that channels share. What else one may say is in `defaults`."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array

Array = NDArray[np.float64]


@runtime_checkable
class Channel(Protocol):
    """How the output y depends on the attention indices h, and what y tells about them.

    Given omega and V the indices are h_ab = omega_ab + sqrt(V (1 + delta_ab)) xi_ab, a <= b, with standard normal xi, and
    Z(y, omega, V) is the density of y. Matrices are symmetric and hold each pair twice.

    These five members are all that a channel needs; no base class is. `ChannelDefaults` lists what it may say besides,
    and what is assumed where it does not.
    """

    @property
    def tokens(self) -> int:
        """T, the tokens in a sequence."""

    def output(self, h: Array, rng: np.random.Generator) -> Array:
        """Draw y for indices h of shape (n, T, T)."""

    def check(self, y: ArrayLike) -> Array:
        """Return y as an array of shape (n, T, T), or raise `InputError` if this channel cannot produce it."""

    def score(self, y: Array, omega: Array, V: Any) -> Array:
        """Return g_ab = d log Z / d omega_ab = (E[h_ab | y, omega] - omega_ab) / (V (1 + delta_ab))."""

    def information(self, V: ArrayLike, Q: ArrayLike) -> Array:
        """Return G2(V) = sum_{a <= b} (1 + delta_ab) E[g_ab^2], with omega_ab ~ N(0, (Q - V) (1 + delta_ab)).

        V and Q are numbers or arrays of one shape, and so is G2. State evolution asks for V from 1e-300 to Q.
        """


def doubling(T: int) -> Array:
    """Return 1 + delta_ab as a T x T matrix."""
    return np.asarray(1 + np.eye(T))


def outputs(y: ArrayLike, T: int) -> Array:
    """Return y as a finite array of shape (n, T, T), or raise `InputError`."""
    return array(y, "y", ("n", "T", "T"), (None, T, T)).astype(float)


def symmetric_normal(n: int, T: int, rng: np.random.Generator) -> Array:
    """Draw n symmetric T x T matrices, each pair a <= b an independent N(0, 1)."""
    xi = rng.standard_normal((n, T, T))
    lower = np.tril_indices(T, -1)
    xi[:, lower[0], lower[1]] = xi[:, lower[1], lower[0]]
    return xi
