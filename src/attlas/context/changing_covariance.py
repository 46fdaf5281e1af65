"""Prompts whose covariance differs: one layer has one step for all of them, and only depth reaches Bayes.

x = f mu + N(0, I) and y = f, f ~ N(0, 1), with |mu|^2 = m of each prompt its own. The Bayes prediction is mu.x/(1 + m).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import integer, numbers, real
from attlas.numerics import Seed, Solution, Status, generator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrainedStep(Solution[float]):
    """The step that training finds.

    Attributes
    ----------
    value : float
        The step eta.
    excess : float
        Mean over prompts of the error beyond Bayes, long contexts.
    limit : float
        What eta tends to for many layers, 2/(2 + m_min + m_max).
    """

    excess: float = np.nan
    limit: float = np.nan


def trained_step(layers: int, strengths: ArrayLike) -> TrainedStep:
    """Return the step eta of T equal layers that minimises the mean excess over prompts, for long contexts.

    T steps w <- w + eta (h - S w) from 0 leave

        excess = m/(1 + m) (1 - eta (1 + m))^(2 T)

    beyond the Bayes error: zero for one m only, if T = 1. It falls as ((m_max - m_min)/(2 + m_min + m_max))^(2 T).

    Parameters
    ----------
    layers : int
        T.
    strengths : array_like
        m = |mu|^2 of prompts that are equally likely.

    Examples
    --------
    >>> from attlas import context
    >>> found = context.trained_step(layers=4, strengths=[0.5, 1.0, 4.0])
    >>> round(found.value, 3), found.excess < context.trained_step(layers=1, strengths=[0.5, 1.0, 4.0]).excess
    (0.287, True)

    References
    ----------
    barnfield2026multi for the situation, as its summary tells it; the formulas are derived here.
    """  # fmt: skip
    from scipy.optimize import brentq

    layers, m = integer(layers, "layers"), numbers(strengths, "strengths", above=0).ravel()
    low, high = 1 / (1 + m.max()), 1 / (1 + m.min())
    limit = 2 / (2 + m.min() + m.max())
    eta, residual = low, 0.0
    if low < high:

        def slope(eta: float) -> float:
            left = 1 - eta * (1 + m)
            return float(np.mean(m * (left / np.abs(left).max()) ** (2 * layers - 1)))  # the scale has no sign

        eta = float(brentq(slope, low, high, xtol=1e-15, rtol=1e-14))
        residual = abs(slope(eta))
    return TrainedStep(
        eta, Status.CONVERGED, residual, 0, excess=float(np.mean(step_excess(eta, layers, m))), limit=float(limit)
    )


def step_excess(eta: float, layers: int, strengths: ArrayLike) -> Array:
    """Return the error beyond Bayes of T steps eta at every m, for long contexts.

    Examples
    --------
    >>> from attlas import context
    >>> context.step_excess(0.5, layers=2, strengths=[0.5, 1.0]).round(4).tolist()
    [0.0013, 0.0]
    """
    m = numbers(strengths, "strengths", above=0)
    return np.asarray(m / (1 + m) * (1 - real(eta, "eta", above=0) * (1 + m)) ** (2 * integer(layers, "layers")))


def drawn_excess(
    eta: float, layers: int, strengths: ArrayLike, length: int, dimension: int = 8, seed: Seed = 0
) -> Array:
    """Return the error beyond Bayes of T steps eta on a drawn context for every m, exact in the query.

    Parameters
    ----------
    eta : float
    layers : int
    strengths : array of shape (n,)
        m of n prompts.
    length : int
        Examples of a context.
    dimension : int, default 8
    seed : int or Generator

    Examples
    --------
    >>> from attlas import context
    >>> context.drawn_excess(0.3, layers=4, strengths=[1.0, 2.0], length=1000, seed=0).shape
    (2,)
    """
    m = numbers(strengths, "strengths", above=0).ravel()
    eta, layers = real(eta, "eta", above=0), integer(layers, "layers")
    length, dimension = integer(length, "length"), integer(dimension, "dimension", least=2)
    rng = generator(seed)
    found = np.empty(len(m))
    for i, strength in enumerate(m):
        mu = rng.standard_normal(dimension)
        mu *= np.sqrt(strength) / np.linalg.norm(mu)
        f = rng.standard_normal(length)
        X = f[:, None] * mu + rng.standard_normal((length, dimension))
        S, h, w = X.T @ X / length, X.T @ f / length, np.zeros(dimension)
        for _ in range(layers):
            w = w + eta * (h - S @ w)
        off = w - mu / (1 + strength)
        found[i] = off @ off + (mu @ off) ** 2
    return found
