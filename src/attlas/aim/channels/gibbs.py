"""Hardmax of three and more tokens: posterior means by Gibbs sampling of truncated Gaussians.

Given y the indices are Gaussian, independent, and confined: in each row a the entry j_a is the largest. One sweep draws
every pair a <= b from its one-dimensional truncated normal. The true h is itself a draw from the posterior, so in the state
evolution a chain that starts there is stationary from the first step.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from attlas.aim.channels.channel import Array, doubling, symmetric_normal
from attlas.errors import InputError
from attlas.numerics import stream

SWEEPS = 60
BURN_IN = 20
SMALLEST = 1e-3  # of V/Q: below it only one sample in thirty is near a boundary, and tells anything


def score(largest: NDArray[np.int64], omega: Array, V: float) -> Array:
    """Return (E[h | y, omega] - omega) / (V (1 + delta)), a Gibbs average with a relative error of about 1/sqrt(SWEEPS)."""
    T = largest.shape[1]
    rng = stream(0, "gibbs")
    h = start(largest) * np.sqrt(V)
    total = np.zeros_like(h)
    for sweep in range(BURN_IN + SWEEPS):
        _sweep(h, largest, omega, V, rng)
        if sweep >= BURN_IN:
            total += h
    return np.asarray((total / SWEEPS - omega) / (V * doubling(T)))


def start(largest: NDArray[np.int64]) -> Array:
    """Return symmetric matrices whose largest entry of row a is j_a, or raise `InputError` if there are none.

    Along a -> j_a the largest entries cannot fall, so a cycle of three or more is impossible. On the way to a cycle the
    largest entry of a row is minus its distance from there.
    """
    n, T = largest.shape
    at = np.tile(np.arange(T), (n, 1))
    depth = np.full((n, T), T)
    for step in range(T):
        following = np.take_along_axis(largest, at, axis=1)
        closed = np.take_along_axis(largest, following, axis=1) == at
        depth = np.where((depth == T) & closed, step, depth)
        at = following
    if np.any(depth == T):
        raise InputError("no symmetric indices have these largest entries: y has a cycle of three or more rows")
    h = np.full((n, T, T), -float(T) - 1)
    rows, tokens = np.indices((n, T))
    h[rows, tokens, largest] = h[rows, largest, tokens] = -depth
    return h


@cache
def information_table(T: int, samples: int = 6_000) -> tuple[Array, Array, float]:
    """Return log(V/Q), log(V G2) there, and the largest relative standard error.

    G2 = sum_{a<=b} E[(h - omega)(h' - omega)] / (V^2 (1 + delta)) over two replicas: the truth and the mean of a chain that
    starts from it. The same random numbers are used at every V, so that the curve is smooth.
    """
    nodes = np.linspace(np.log(SMALLEST), 0, 16)
    values, errors = [], []
    upper = np.triu_indices(T)
    for node in nodes:
        V = float(np.exp(node))
        rng = stream(T, "hardmax information")
        omega = np.sqrt((1 - V) * doubling(T)) * symmetric_normal(samples, T, rng)
        h = omega + np.sqrt(V * doubling(T)) * symmetric_normal(samples, T, rng)
        truth, largest, total = h.copy(), h.argmax(-1), np.zeros_like(h)
        for sweep in range(BURN_IN + SWEEPS):
            _sweep(h, largest, omega, V, rng)
            if sweep >= BURN_IN:
                total += h
        product = (truth - omega) * (total / SWEEPS - omega) / (V * doubling(T))
        each = product[:, upper[0], upper[1]].sum(-1)
        values.append(np.log(each.mean()))
        errors.append(each.std() / np.sqrt(samples) / each.mean())
    return nodes, np.array(values), float(max(errors))


def _sweep(h: Array, largest: NDArray[np.int64], omega: Array, V: float, rng: np.random.Generator) -> None:
    """Draw every pair a <= b anew from its truncated normal, in place."""
    from scipy.special import ndtr, ndtri

    n, T = largest.shape
    for a in range(T):
        for b in range(a, T):
            low, high = np.full(n, -np.inf), np.full(n, np.inf)
            for row, column in {(a, b), (b, a)}:
                others = np.delete(h[:, row], column, axis=1).max(axis=1)
                is_top = largest[:, row] == column
                low = np.where(is_top, np.maximum(low, others), low)
                top = h[np.arange(n), row, largest[:, row]]
                high = np.where(is_top, high, np.minimum(high, top))
            sigma = np.sqrt(V * (1 + (a == b)))
            left, right = (low - omega[:, a, b]) / sigma, (high - omega[:, a, b]) / sigma
            flip = left > 0  # draw in the lower tail, where the distribution function keeps its digits
            left, right = np.where(flip, -right, left), np.where(flip, -left, right)
            lower, upper = ndtr(left), ndtr(right)
            z = ndtri(lower + rng.random(n) * (upper - lower))
            z = np.clip(np.where(np.isfinite(z), z, right), left, right)
            h[:, a, b] = h[:, b, a] = omega[:, a, b] + sigma * np.where(flip, -z, z)
