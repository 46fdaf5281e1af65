"""How token sequences are drawn: on the sphere, on the Boolean cube, from a Gaussian.

Every function returns float64 of shape (n, tokens, d): the batch first, then the sequence, then the token.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import integer
from attlas.numerics import Seed, generator

__all__ = ["boolean", "gaussian", "sphere"]


def sphere(n: int, tokens: int, d: int, seed: Seed) -> NDArray[np.float64]:
    """Draw tokens uniformly from the unit sphere of R^d: |x| = 1.

    The law of the random-feature papers.

    Parameters
    ----------
    n, tokens, d : int
        Sequences, tokens in each, dimension of a token.
    seed : int or numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import tokens
    >>> np.linalg.norm(tokens.sphere(2, 3, 4, seed=0), axis=-1).round(12).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References
    ----------
    fu2023random, section 2.
    """
    X = gaussian(n, tokens, d, seed)
    X /= np.linalg.norm(X, axis=-1, keepdims=True)  # a norm of exactly zero has probability zero
    return X


def boolean(n: int, tokens: int, d: int, seed: Seed) -> NDArray[np.float64]:
    """Draw tokens uniformly from {-1, +1}^d.

    The law under which recovery is proved.

    Parameters
    ----------
    n, tokens, d : int
    seed : int or numpy.random.Generator

    Examples
    --------
    >>> from attlas import tokens
    >>> X = tokens.boolean(2, 3, 4, seed=0)
    >>> X.shape, sorted(set(X.ravel().tolist()))
    ((2, 3, 4), [-1.0, 1.0])

    References
    ----------
    chen2024provably, section 1.
    """
    bits = generator(seed).integers(0, 2, size=_shape(n, tokens, d), dtype=np.int8)
    return 2 * bits.astype(np.float64) - 1


def gaussian(n: int, tokens: int, d: int, seed: Seed) -> NDArray[np.float64]:
    """Draw tokens with independent N(0, 1) entries.

    The law of attention-indexed models.

    Parameters
    ----------
    n, tokens, d : int
    seed : int or numpy.random.Generator

    Examples
    --------
    >>> from attlas import tokens
    >>> tokens.gaussian(2, 3, 4, seed=0).shape
    (2, 3, 4)

    References
    ----------
    boncoraglio2025bayes, equation for the input distribution.
    """
    return generator(seed).standard_normal(_shape(n, tokens, d))


def _shape(n: int, tokens: int, d: int) -> tuple[int, int, int]:
    return integer(n, "n"), integer(tokens, "tokens"), integer(d, "d")
