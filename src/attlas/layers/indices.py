"""Attention indices: the scores of attention-indexed models, centred and scaled to be Gaussian in the limit."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer
from attlas.layers.blocks import blocks, times

Array = NDArray[Any]


def attention_indices(X: ArrayLike, S: ArrayLike) -> Array:
    """Return the attention indices h_ab = (x_a^T S x_b - delta_ab Tr S) / sqrt(d).

    For Gaussian tokens they are, as d grows, jointly Gaussian with variance Q (1 + delta_ab), Q = Tr S^2 / d, and
    uncorrelated for different pairs a <= b.

    Parameters
    ----------
    X : array of shape (n, T, d)
    S : array of shape (d, d)
        Symmetric.

    Returns
    -------
    array of shape (n, T, T)
        Exactly symmetric.

    Examples
    --------
    >>> from attlas import layers
    >>> X = [[[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]]  # one sequence of two tokens
    >>> layers.attention_indices(X, [[1, 1, 0, 0], [1, 3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]).tolist()
    [[[-1.5, 1.0], [1.0, 4.0]]]

    References
    ----------
    boncoraglio2025bayes, definition of the model.
    """
    X = array(X, "X", ("n", "T", "d"))
    return centred_indices(X, symmetric(S, X.shape[2]), np.eye(X.shape[1]))


def symmetric(S: ArrayLike, d: int, name: str = "S") -> Array:
    """Return S as a (d, d) array, or raise `InputError` unless it is symmetric to rounding.

    Examples
    --------
    >>> from attlas import layers
    >>> layers.symmetric([[1, 2], [2, 5]], d=2).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    d = integer(d, "d")
    S = array(S, name, ("d", "d"), (d, d))
    if np.abs(S - S.T).max() > 1e3 * np.finfo(S.dtype).eps * np.abs(S).max():
        raise InputError(f"{name} must be symmetric; ({name} + {name}.T) / 2 is its symmetric part")
    return S


def centred_indices(X: Array, S: Array, gram: Array) -> Array:
    """Return (x_a^T S x_b - Tr(S) gram_ab) / sqrt(d), symmetrised so that rounding keeps it symmetric."""
    n, T, d = X.shape
    h = np.empty((n, T, T), dtype=X.dtype)
    for rows in blocks(n, T * (2 * d + T)):
        np.matmul(times(X[rows], S), X[rows].transpose(0, 2, 1), out=h[rows])
    h -= np.trace(S) * gram
    h += h.transpose(0, 2, 1).copy()
    h *= 0.5 / np.sqrt(d)
    return h
