"""The frozen weights of random-feature attention and of the random-feature MLP."""

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import integer, real
from attlas.numerics import Seed, generator


def attention_heads(n_heads: int, d: int, seed: Seed, bias: float = 0.0) -> NDArray[np.float64]:
    """Draw frozen query-key matrices W_m = b [[I, 0], [0, 0]] + N(0, 1/4).

    b = 0 is RFA; b > 0 is BRFA, whose bias favours keys aligned with the query. For tokens on the unit sphere
    the score xt_0^T W_m xt_i is then N(b <x_0, x_i>, 1), because |xt|^2 = 2.

    Parameters
    ----------
    n_heads, d : int
    seed : int or numpy.random.Generator
    bias : float, default 0
        The strength b.

    Returns
    -------
    array of shape (n_heads, d + 1, d + 1)

    Examples
    --------
    >>> from attlas import features
    >>> features.attention_heads(10, 4, seed=0).shape  # d + 1: tokens carry a last coordinate of one
    (10, 5, 5)

    References
    ----------
    fu2023random, equation (4) for RFA and section 3.3 for BRFA; the scale 1/4 is theirs, b is ours to vary.
    """
    D = integer(d, "d") + 1
    heads = generator(seed).standard_normal((integer(n_heads, "n_heads"), D, D)) / 2
    diagonal = np.arange(d)
    heads[:, diagonal, diagonal] += real(bias, "bias")
    return heads


def mlp_neurons(n_neurons: int, tokens: int, d: int, seed: Seed) -> NDArray[np.float64]:
    """Draw frozen neurons w ~ N(0, I / (tokens + 1)) acting on [x_0; ..; x_N; 1], tokens = N + 1.

    For tokens on the unit sphere the preactivation is N(0, 1). M heads of attention in dimension d have as many
    trained numbers as M (d + 1) neurons.

    Parameters
    ----------
    n_neurons, tokens, d : int
    seed : int or numpy.random.Generator

    Returns
    -------
    array of shape (n_neurons, tokens * d + 1)

    Examples
    --------
    >>> from attlas import features
    >>> features.mlp_neurons(10, 4, 3, seed=0).shape  # four tokens of dimension three, and one
    (10, 13)
    """
    size = (integer(n_neurons, "n_neurons"), integer(tokens, "tokens") * integer(d, "d") + 1)
    neurons = generator(seed).standard_normal(size)
    neurons /= np.sqrt(tokens + 1)
    return neurons
