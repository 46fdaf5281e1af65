"""What message passing asks of one data set: indices, scores, the way back, and the noise that theory gives them."""

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.aim import roots
from attlas.aim.channels import ChannelDefaults
from attlas.aim.channels.channel import doubling
from attlas.aim.projections import back_projection, distance, indices, squared_norms
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import described
from attlas.numerics import Event, Progress

Array = NDArray[np.float64]

AT_FLOOR = 1e-3  # change over V that counts as settled at the floor of V: it leaves an error of a few hundred V at most
_RECOVERED = 100.0  # times V: how far from its rank an estimate may be whose error is said to be V
_LEAST_NORM = 1e-3  # of ||X_ab||^2 over its mean: a sample without any tells nothing, instead of everything


class Sensing:
    """Tokens X and outputs y of a channel, for teachers of these widths; matrices, indices and V have an axis for layers.

    Attributes
    ----------
    spread : array
        Variance of every index over V: 2 ||X_ab||^2/d of its sample where the score takes one, else the mean 1 + delta_ab.
    """

    def __init__(self, X: Array, y: Array, channel: ChannelDefaults, rhos: Array) -> None:
        self.X, self.y, self.channel, self.rhos = X, y, channel, rhos
        self.d = X.shape[2]
        self.alpha = len(X) / self.d**2
        double = doubling(channel.tokens)
        self._norms: Any = np.maximum(squared_norms(X) / double, _LEAST_NORM) if channel.variance_per_sample else 1.0
        self.spread: Array = self._norms * double

    def prior_mean(self) -> Array:
        """Return sqrt(rho) I of every layer."""
        return np.sqrt(self.rhos)[:, None, None] * np.eye(self.d)

    def indices(self, S: Array) -> Array:
        """Return the attention indices of S."""
        return np.stack([indices(self.X, own) for own in S])

    def back(self, g: Array) -> Array:
        """Return (2/d) sum_mu (X^T H X - Tr(H) I)/sqrt(d), H the scores with their off-diagonal entries halved."""
        return np.stack([2 / self.d * back_projection(self.X, own) for own in g])

    def score(self, omega: Array, V: Array) -> Array:
        """Return the scores at omega; a channel of one layer knows of no axis for it."""
        if self.channel.layers > 1:
            g = self.channel.score(self.y, omega, V)
        else:
            g = self.channel.score(self.y, omega[0], float(V[0]) * self._norms)[None]
        if not np.isfinite(g).all() and np.isfinite(omega).all():
            raise InputError(f"the score of {described(self.channel)} is not finite; check it for NaN and overflow")
        return g

    def noise(self, V: Array) -> Array:
        """Return Delta = 1/(2 alpha G2(V)) of every layer."""
        if self.channel.layers > 1:
            G = self.channel.information(V, 1 + self.rhos).diagonal()
        else:
            G = np.array([float(self.channel.information(float(V[0]), float(1 + self.rhos[0])))])
        return np.asarray(1 / (2 * self.alpha * G))

    def error(self, noise: Array) -> Array:
        """Return F(Delta) of every layer."""
        return np.array([float(mmse(own, rho)) for own, rho in zip(noise, self.rhos, strict=True)])

    def known(self, S: Array, which: NDArray[np.bool_]) -> bool:
        """Return whether S, of the layers `which`, can be the teacher to within V = floor, as far as its rank rho d tells.

        Where outputs are few, other matrices fit all of them, of larger rank. The squared distance of S to the rank of the
        teacher is a lower bound of its error.
        """
        for own, rho in zip(S[which], self.rhos[which], strict=True):
            beyond = np.linalg.eigvalsh(own)[: max(self.d - int(np.ceil(rho * self.d - 1e-6)), 0)]
            if np.sum(beyond**2) / self.d > _RECOVERED * self.channel.floor:
                return False
        return True

    def limit(self) -> float:
        """Return the fixed point of V of one layer, which the prior mean as a start leads to; the data do not enter."""
        return float(roots.largest(self.channel, np.array(self.alpha), self.rhos[0]))


class Course:
    """What is recorded of every step: V, the true error if the teacher is known, and who wants to hear of it.

    The true error is that of the estimate that would be returned, were this step the last. It stays here: no algorithm
    reads it.
    """

    def __init__(self, V: Array, S: Array, truth: Array | None, max_steps: int, progress: Progress | None) -> None:
        self._truth, self._most, self._progress = truth, max_steps, progress
        self._V, self._mse = [V], [] if truth is None else [distances(truth, S)]

    @property
    def steps(self) -> int:
        """Steps made."""
        return len(self._V) - 1

    @property
    def over(self) -> bool:
        """Whether no step is left."""
        return self.steps >= self._most

    def add(self, V: Array, S: Array) -> None:
        """Record a step."""
        self._V.append(V)
        if self._truth is not None:
            self._mse.append(distances(self._truth, S))
        if self._progress is not None:
            value, text = float(V.max()), f"step {self.steps}, estimated error {V.max():.4g}"
            true_error = float(self._mse[-1].max()) if self._mse else nan
            self._progress(Event(self.steps, self._most, text, value, true_error))

    def arrays(self) -> tuple[Array, Array]:
        """Return V and the true errors of all steps, of shape (steps + 1, L)."""
        return np.array(self._V), np.array(self._mse).reshape(-1, len(self._V[0]))


def distances(A: Array, B: Array) -> Array:
    """Return ||A - B||^2 / d of every layer."""
    return np.array([distance(a, b) for a, b in zip(A, B, strict=True)])
