"""The proximal method of multipliers: the fixed point of message passing by another way, where its own does not settle.

At fixed V, with D = 1/(2 alpha G2(V)) and s = sqrt(rho), the fixed points of message passing are the stationary points of

    sum_mu -L(y_mu, (A S)_mu) + (d/2) Tr[s S - rho log S + log(S + s D)],

L the logarithm of the likelihood of the indices A S, smoothed by the channel at V. Message passing finds them one mode at a
time with a determinant equal to the slope of the denoiser, and so not where that exceeds one, nor where a few samples make
large spikes. Here the multipliers p, which are scores, are taken at the new S, which is stable there too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.aim.channels.channel import doubling
from attlas.aim.denoiser import positive_root
from attlas.aim.sensing import AT_FLOOR, Course, Sensing
from attlas.numerics import Status

Array = NDArray[np.float64]

_MEMORY = 17  # steps that are mixed
_WORSE = 10.0  # times the smallest residual: back to there, with half the step
_NEAR = 1.5  # times its limit: V is put there


class State(NamedTuple):
    """An estimate S, its indices z = A S and the multipliers p, each with one layer."""

    S: Array
    z: Array
    p: Array


class Settled(NamedTuple):
    """The estimate with the smallest residual, that residual times V, and how the search ended."""

    S: Array
    status: Status
    residual: float


def settle(data: Sensing, course: Course, S: Array, p: Array, V: float, limit: float, tol: float) -> Settled:
    """Return the fixed point at V = `limit`, to a residual below `tol`; V falls there as in message passing.

    Steps are mixed by Anderson's method while V stays. V waits while the residual exceeds one. At the channel's floor a
    residual below 1e-3 is all that is asked, and the rank of the teacher.
    """
    largest, floor = _step_size(data), data.channel.floor
    k = largest
    limit, tol = (limit, tol) if limit > floor else (floor, max(tol, AT_FLOOR))
    V = limit if _NEAR * limit >= V else V
    here, mixing = State(S, data.indices(S), p), Mixing()
    best, least, start, bound = S, np.inf, here, np.inf
    while not course.over:
        noise = float(data.noise(np.array([V]))[0])
        there = _step(data, here, V, noise, k)
        change = _scaled(data, here, there, V, noise, k)
        residual = float(change @ change) / (data.d * V) * largest / k  # a smaller step is no smaller gradient
        done = residual < tol and limit == V and data.known(there.S, np.array([floor >= V]))
        if done or residual < least:
            best, least, start, bound = there.S, residual, here, _WORSE * residual
        course.add(np.array([V]), best)
        if done:
            return Settled(best, Status.CONVERGED, residual * V)
        if not residual <= bound:
            if np.isinf(least):
                return Settled(best, Status.DIVERGED, residual)
            here, mixing, k, bound = start, Mixing(), k / 2, _WORSE * bound
        elif limit < V and (residual < 1 or V > 0.5):
            error = float(data.error(np.array([noise]))[0])
            V = (error + V) / 2
            V = limit if _NEAR * limit >= V else V
            here, mixing, least, bound = there, Mixing(), np.inf, np.inf
        else:
            here = mixing.add(there, change)
    return Settled(best, Status.OUT_OF_STEPS, least * V)


def _step_size(data: Sensing) -> float:
    """Return (1 + 1/sqrt(gamma))^-2, gamma the numbers seen over the free ones of S: what the largest mode of A allows."""
    T = data.channel.tokens
    seen = data.alpha * (T * T + T if data.channel.count is None else data.channel.count)
    return float((1 + 1 / np.sqrt(seen)) ** -2)


def _step(data: Sensing, here: State, V: float, noise: float, k: float) -> State:
    """Return the next state: a proximal step in S, the last term of its potential linearised, then the multipliers."""
    s, rho, V_ = np.sqrt(data.rhos[0]), float(data.rhos[0]), np.array([V])
    shifted = here.z - V * data.spread * here.p
    values, vectors = np.linalg.eigh(here.S[0])
    potential = (vectors * (noise / (np.maximum(values, 0) + s * noise))) @ vectors.T
    target = here.S[0] + k * (noise * data.back(data.score(shifted, V_))[0] - potential)
    values, vectors = np.linalg.eigh(target)
    f = positive_root(values - k * noise * s, k * noise * rho)
    S = ((vectors * f) @ vectors.T)[None]
    z = data.indices(S)
    return State(S, z, data.score(z - V * data.spread * here.p, V_))


def _scaled(data: Sensing, here: State, there: State, V: float, noise: float, k: float) -> Array:
    """Return the change of (S, p) in units in which its square is ||dS||^2/k + (2 V D/d) sum_{a <= b} spread dp^2."""
    weight = V * noise / data.d * doubling(data.channel.tokens) * data.spread  # a pair stands twice in p
    dS, dp = (there.S - here.S) / np.sqrt(k), (there.p - here.p) * np.sqrt(weight)
    return np.concatenate([dS.ravel(), dp.ravel()])


class Mixing:
    """Anderson's mixing: the weighted mean of past images, with the weights that make the mean change smallest."""

    def __init__(self) -> None:
        self._images: list[State] = []
        self._changes: list[Array] = []
        self._products = np.empty((0, 0))

    def add(self, image: State, change: Array) -> State:
        """Return the mean of the images so far; z is linear in S, so the same weights serve it."""
        self._images, self._changes = [*self._images, image][-_MEMORY:], [*self._changes, change][-_MEMORY:]
        count = len(self._images)
        products = np.empty((count, count))
        products[:-1, :-1] = self._products[-(count - 1) :, -(count - 1) :] if count > 1 else 0
        products[-1] = products[:, -1] = [float(own @ change) for own in self._changes]
        self._products = products
        weights = np.linalg.solve(products + 1e-12 * np.trace(products) / count * np.eye(count), np.ones(count))
        weights /= weights.sum()
        return State(
            *(
                sum(w * part for w, part in zip(weights, parts, strict=True))
                for parts in zip(*self._images, strict=True)
            )
        )
