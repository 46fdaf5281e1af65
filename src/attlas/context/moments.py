"""Exact moments of a sequence, and with them the exact error of any layer, without test data.

With v = |w|^2/d + noise, for tasks w of equal weight:

    A = <w [w; v]^T>,      B = [[ (1 + 1/l) <w w^T> + (d/l) <v> I,  (1 + 2/l) <v w> ],  [ . ,  (1 + 2/l) <v^2> ]],
    error(Gamma) = <v> - (2/d) tr Gamma A^T + (1/d) tr Gamma B Gamma^T.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.context.spectra import eigenvalues
from attlas.errors import InputError
from attlas.inputs import array, integer, real

Array = NDArray[np.float64]


class Moments(NamedTuple):
    """Moments of what the layer sees: A = d E[y x h^T], B = E[h h^T], power = E[y^2]."""

    A: Array
    B: Array
    power: float

    def error(self, Gamma: ArrayLike) -> float:
        """Return E (y - x^T Gamma h)^2 of a (d, d + 1) matrix, or of a (d, d) one that does not use the label energy."""
        d = len(self.A)
        G = array(Gamma, "Gamma", ("d", "d + 1"), (d, None))
        if G.shape[1] not in (d, d + 1):
            raise InputError(f"Gamma must be of shape ({d}, {d + 1}), or ({d}, {d}) without the column; got {G.shape}")
        A, B = self.A[:, : G.shape[1]], self.B[: G.shape[1], : G.shape[1]]
        return self.power - float(np.sum(G * (2 * A - G @ B))) / d


def task_moments(W: ArrayLike, noise: float, length: int) -> Moments:
    """Return the moments of sequences of the given tasks, each as likely as any other.

    Parameters
    ----------
    W : array of shape (k, d)
    noise : float
        Variance of the label noise.
    length : int
        Examples of a context.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> context.task_moments(np.ones((3, 4)), noise=0.1, length=8).B.shape
    (5, 5)
    """
    W = array(W, "W", ("k", "d")).astype(np.float64, copy=False)
    noise, length = real(noise, "noise", least=0), integer(length, "length")
    k, d = W.shape
    v = np.einsum("kd,kd->k", W, W) / d + noise
    R, vw = W.T @ W / k, v @ W / k
    return _moments(R, vw, float(v.mean()), float(np.mean(v * v)), length)


def fresh_moments(d: int, noise: float, length: int, spectrum: ArrayLike | None = None) -> Moments:
    """Return the moments of sequences that each have a new task from N(0, diag(spectrum)), by default ones.

    Examples
    --------
    >>> from attlas import context
    >>> context.fresh_moments(4, noise=0.1, length=8).B.shape
    (5, 5)
    """
    d, noise, length = integer(d, "d"), real(noise, "noise", least=0), integer(length, "length")
    c = np.ones(d) if spectrum is None else eigenvalues(spectrum, "spectrum", d)
    v = float(c.mean()) + noise
    return _moments(np.diag(c), np.zeros(d), v, v * v + 2 * float(np.sum(c * c)) / d**2, length)


def _moments(R: Array, vw: Array, v: float, v2: float, length: int) -> Moments:
    d = len(R)
    A, B = np.empty((d, d + 1)), np.empty((d + 1, d + 1))
    A[:, :d], A[:, d] = R, vw
    B[:d, :d] = (1 + 1 / length) * R + d / length * v * np.eye(d)
    B[d, :d] = B[:d, d] = (1 + 2 / length) * vw
    B[d, d] = (1 + 2 / length) * v2
    return Moments(A, B, v)
