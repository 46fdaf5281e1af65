"""Several softmax heads, each with a query-key matrix and a value matrix."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array
from attlas.layers.activations import softmax
from attlas.layers.blocks import blocks, times

Array = NDArray[Any]


def multi_head_attention(X: ArrayLike, Theta: ArrayLike, W: ArrayLike) -> Array:
    """Return F(X) = sum_i softmax(X Theta_i X^T) X W_i, the softmax along each row.

    Parameters
    ----------
    X : array of shape (n, k, d)
    Theta : array of shape (m, d, d)
        Query-key matrices.
    W : array of shape (m, d, d_out)
        Value matrices.

    Returns
    -------
    array of shape (n, k, d_out)

    References
    ----------
    chen2024provably, equation (1).
    """
    X = array(X, "X", ("n", "k", "d"))
    n, k, d = X.shape
    Theta = array(Theta, "Theta", ("m", "d", "d"), (None, d, d))
    W = array(W, "W", ("m", "d", "d_out"), (len(Theta), d, None))
    output = np.zeros((n, k, W.shape[2]), dtype=np.result_type(X, Theta, W))
    for rows in blocks(n, k * (2 * d + 2 * k + W.shape[2])):
        tokens = X[rows]
        for theta, value in zip(Theta, W, strict=True):
            scores = times(tokens, theta) @ tokens.transpose(0, 2, 1)
            output[rows] += times(softmax(scores) @ tokens, value)
    return output
