"""Layers to be recovered."""

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import integer, real
from attlas.numerics import Seed, generator


def planted_layer(
    heads: int, d: int, seed: Seed, scale: float = 2.0, d_out: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw the parameters (Theta, W) of a generic layer: Theta entries N(0, (s/d)^2), W entries N(0, 1/d).

    On tokens of {-1, +1}^d, or standard Gaussian ones, the logits x^T Theta x' of two different tokens then have
    standard deviation s = `scale`.

    Parameters
    ----------
    heads, d : int
    seed : int or numpy.random.Generator
        Draw the initial guess of a learner from another stream.
    scale : float, default 2
    d_out : int, optional
        Output dimension; d if not given.

    Returns
    -------
    Theta : array of shape (heads, d, d)
    W : array of shape (heads, d, d_out)

    Examples
    --------
    >>> from attlas import recovery
    >>> Theta, W = recovery.planted_layer(heads=2, d=4, seed=0)
    >>> Theta.shape, W.shape
    ((2, 4, 4), (2, 4, 4))
    """
    rng = generator(seed)
    size = (integer(heads, "heads"), integer(d, "d"))
    Theta = rng.standard_normal((*size, d)) * (real(scale, "scale", least=0) / d)
    W = rng.standard_normal((*size, d if d_out is None else integer(d_out, "d_out"))) / np.sqrt(d)
    return Theta, W
