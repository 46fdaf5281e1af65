"""Two attention layers learned from the outputs of the second: state evolution and message passing, diagonal approximation.

Each layer has an effective observation R_l = S_l + sqrt(Delta_l) GOE, 1/Delta_l = 2 alpha G_ll(V). The noises of the two are
correlated, by G_12, and the best joint denoiser is not known; each is denoised on its own.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Deep
from attlas.aim.denoiser import denoise
from attlas.aim.model import widths
from attlas.aim.projections import back_projection, distance, indices
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.layers import symmetric
from attlas.numerics import Solution, Status

Array = NDArray[np.float64]

_FLOOR = 1e-6  # of V


@dataclass(frozen=True)
class LayersFixedPoint(Solution[Array]):
    """The fixed point of the state evolution of two layers.

    Attributes
    ----------
    value : array of shape (2,)
        V of the first and the second layer, in the diagonal approximation.
    standard_error : array of shape (2,)
        Standard errors of V from the quasi-Monte Carlo mean behind G.
    q : array of shape (2,)
        Overlaps Q - V.
    qhat : array of shape (2, 2)
        Precision of the effective observations. The off-diagonal entry is what the approximation drops.
    history : array of shape (steps, 2)
    """

    standard_error: Array = field(default_factory=lambda: np.full(2, np.nan))
    q: Array = field(default_factory=lambda: np.full(2, np.nan))
    qhat: Array = field(default_factory=lambda: np.full((2, 2), np.nan))


def state_evolution(channel: Deep, alpha: float, rho: ArrayLike, max_steps: int = 200) -> LayersFixedPoint:
    """Return V of both layers, started at the prior mean.

    V_l <- F(1/(2 alpha G_ll(V))) falls from V = 1. It is hastened by Aitken's extrapolation, taken only where the map still
    points down in both layers, so that no fixed point is jumped over.
    """
    alpha, rhos = real(alpha, "alpha", least=0), widths(rho)
    if alpha == 0:
        return LayersFixedPoint(
            np.ones(2), Status.CONVERGED, 0.0, 0, np.ones((1, 2)), np.zeros(2), rhos, np.zeros((2, 2))
        )
    V, history, residual = np.ones(2), [np.ones(2)], np.inf
    status = Status.OUT_OF_STEPS
    for step in range(max_steps):
        image = _step(channel, alpha, rhos, V)
        residual = float(np.max(np.abs(image - V) / V))
        history.append(image)
        if residual < 1e-4 or np.all(image <= _FLOOR):
            V, status = image, Status.CONVERGED
            break
        V = image
        if step % 3 == 2:
            guess = _aitken(*history[-3:])
            if np.all(_step(channel, alpha, rhos, guess) <= guess):
                V = guess
    qhat = 2 * alpha * channel.information(V, 1 + rhos)
    error = _standard_error(channel, alpha, rhos, V)
    return LayersFixedPoint(V, status, residual, len(history) - 1, np.array(history), error, 1 + rhos - V, qhat)


@dataclass(frozen=True)
class LayersEstimate(Solution[Array]):
    """What message passing found.

    Attributes
    ----------
    value, S_hat : array of shape (2, d, d)
        The estimates of S_1 and S_2.
    history : array of shape (steps + 1, 2)
        V of both layers, as the algorithm believes it.
    mse : array of shape (steps + 1, 2)
        ||S_l - S_hat_l||^2 / d, if S was given.
    """

    mse: Array = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def S_hat(self) -> Array:
        """The estimates of S_1 and S_2."""
        return self.value


def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    channel: Deep,
    rho: ArrayLike,
    S: ArrayLike | None,
    damping: float,
    tol: float,
    max_steps: int,
) -> LayersEstimate:
    """Estimate both layers: the algorithm of `aim.message_passing` with one index, score and denoiser per layer."""
    X = array(X, "X", ("n", "T", "d"), (None, channel.tokens, None))
    y = channel.check(y)
    n, T, d = X.shape
    if len(y) != n:
        raise InputError(f"X has {n} sequences and y has {len(y)}")
    rhos, alpha, doubled = widths(rho), n / d**2, 1 + np.eye(T)
    tol = max(tol, 0.1 * channel.accuracy)  # what the quadrature of the score can settle
    truth = None if S is None else [symmetric(s, d) for s in array(S, "S", ("L", "d", "d"), (2, d, d))]
    S_hat = np.sqrt(rhos)[:, None, None] * np.eye(d)
    V, damped_V, g, omega = np.ones(2), np.ones(2), np.zeros((2, n, T, T)), np.zeros((2, n, T, T))
    history, mse = [V], [] if truth is None else [[distance(a, b) for a, b in zip(truth, S_hat, strict=True)]]
    status, change = Status.OUT_OF_STEPS, np.inf
    for step in range(integer(max_steps, "max_steps")):
        eta = damping if step else 0.0
        fresh = np.stack([indices(X, s) for s in S_hat]) - V[:, None, None, None] * doubled * g
        omega, damped_V = (1 - eta) * fresh + eta * omega, (1 - eta) * V + eta * damped_V
        g = channel.score(y, omega, damped_V)
        qhat = 2 * alpha * _information(channel, tuple(damped_V), tuple(1 + rhos)).diagonal()
        before = S_hat
        R = [s + 2 / (d * p) * back_projection(X, h) for s, p, h in zip(S_hat, qhat, g, strict=True)]
        S_hat = np.stack([denoise(r, 1 / p, width) for r, p, width in zip(R, qhat, rhos, strict=True)])
        V = np.maximum([float(mmse(1 / p, r)) for p, r in zip(qhat, rhos, strict=True)], _FLOOR)
        changes = np.array([distance(a, b) for a, b in zip(S_hat, before, strict=True)])
        history.append(V)
        if truth is not None:
            mse.append([distance(a, b) for a, b in zip(truth, S_hat, strict=True)])
        change = float(changes.max())
        if not np.isfinite(change):
            status = Status.DIVERGED
            break
        if np.all((changes < tol * V) | (V <= _FLOOR)):
            status = Status.CONVERGED
            break
    return LayersEstimate(S_hat, status, change, step + 1, np.array(history), np.array(mse))


def _step(channel: Deep, alpha: float, rhos: Array, V: Array) -> Array:
    G = _information(channel, tuple(V), tuple(1 + rhos)).diagonal()
    return np.maximum([float(mmse(1 / (2 * alpha * g), r)) for g, r in zip(G, rhos, strict=True)], _FLOOR)


@lru_cache(maxsize=4096)
def _information(channel: Deep, V: tuple[float, ...], Q: tuple[float, ...]) -> Array:
    """Return G; message passing visits the same V for every data set of one size, so it is kept."""
    return channel.information(V, Q)


def _aitken(a: Array, b: Array, c: Array) -> Array:
    """Return where three iterates of geometric decay lead, at most four fifths of the way to zero."""
    first, second = b - a, c - b
    bend = second - first
    limit = np.where(bend > 0, c - second**2 / np.where(bend > 0, bend, 1.0), c)
    return np.asarray(np.maximum(limit, c / 5))


def _standard_error(channel: Deep, alpha: float, rhos: Array, V: Array) -> Array:
    """Return the standard errors of V: those of G, carried through V = F(G(V), alpha) by its derivatives."""

    def image(G: Array) -> Array:
        return np.array([float(mmse(1 / (2 * alpha * g), r)) for g, r in zip(G, rhos, strict=True)])

    batches = np.diagonal(channel._batches(V, 1 + rhos)[0], axis1=1, axis2=2)
    G = batches.mean(0)
    slope = (image(1.001 * G) - image(0.999 * G)) / (0.002 * G)
    J = np.empty((2, 2))
    for layer in (0, 1):
        move = 0.02 * V * (np.arange(2) == layer)
        up, down = (channel.information(V + sign * move, 1 + rhos).diagonal() for sign in (1, -1))
        J[:, layer] = slope * (up - down) / (2 * move[layer])
    carried = np.linalg.solve(np.eye(2) - J, (slope * (batches - G)).T)
    return np.asarray(carried.std(1, ddof=1) / np.sqrt(len(batches)))
