"""The attention-indexed model: its teacher."""

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import Seed, generator


def teacher(d: int, rho: float, seed: Seed) -> NDArray[np.float64]:
    """Draw the query-key matrix S = W W^T / sqrt(r d), W of shape (d, r) with N(0, 1) entries, r = rho d.

    Its moments: E S = sqrt(r/d) I and E Tr S^2 / d = 1 + r/d + 1/d, so that Q = 1 + rho as d grows.

    Parameters
    ----------
    d : int
    rho : float
        Width r/d; r is rounded to the nearest integer and must be at least 1.
    seed : int or numpy.random.Generator

    Returns
    -------
    array of shape (d, d)
        Symmetric and positive semidefinite.

    References
    ----------
    boncoraglio2025bayes, the prior of the model.
    """
    width = round(real(rho, "rho", above=0) * integer(d, "d"))
    if width < 1:
        raise InputError(f"rho = {rho:g} at d = {d} leaves a width of zero; rho must be at least {0.5 / d:g}")
    W = generator(seed).standard_normal((d, width))
    W /= (width * d) ** 0.25
    return np.asarray(W @ W.T)
