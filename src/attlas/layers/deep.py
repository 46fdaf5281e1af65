"""Several attention layers, one after the other, of which only the last is seen."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array, real
from attlas.layers.activations import softmax
from attlas.layers.blocks import blocks
from attlas.layers.indices import centred_indices, symmetric

Array = NDArray[Any]


def deep_attention(X: ArrayLike, S: ArrayLike, beta: float = 1.0, skip: float = 1.0) -> Array:
    """Return the softmax output of the last of L stacked attention layers.

    With x^(1) = x, B_1 = I and c = `skip`, for l = 1..L,

        H^(l)_ab = (x^(l)_a^T S_l x^(l)_b - Tr(S_l) (B_l B_l^T)_ab) / sqrt(d),
        A_l = softmax(beta H^(l)),   x^(l+1) = (c I + A_l) x^(l),   B_{l+1} = (c I + A_l) B_l,

    and the output is A_L. One layer gives ``softmax(attention_indices(X, S), beta)``.

    Parameters
    ----------
    X : array of shape (n, T, d)
    S : array of shape (L, d, d)
        One symmetric matrix per layer, the first layer first.
    beta : float, default 1
        Inverse temperature, positive.
    skip : float, default 1
        Strength c of the residual connection.

    Returns
    -------
    array of shape (n, T, T)

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import layers, tokens
    >>> X, S = tokens.gaussian(1, 2, 3, seed=0), np.array([np.eye(3), np.eye(3)])  # two layers
    >>> layers.deep_attention(X, S).sum(axis=-1).round(12).tolist()
    [[1.0, 1.0]]

    References
    ----------
    boncoraglio2025bayes, deep attention.
    """
    X = array(X, "X", ("n", "T", "d"))
    n, T, d = X.shape
    layers = [symmetric(matrix, d) for matrix in array(S, "S", ("L", "d", "d"), (None, d, d))]
    real(skip, "skip")
    output = np.empty((n, T, T), dtype=X.dtype)
    for rows in blocks(n, T * (3 * d + 4 * T)):
        tokens, mixing = X[rows], np.broadcast_to(np.eye(T), (len(X[rows]), T, T))
        for depth, matrix in enumerate(layers):
            gram = mixing @ mixing.transpose(0, 2, 1)
            attention = softmax(centred_indices(tokens, matrix, gram), beta)
            if depth + 1 < len(layers):
                step = skip * np.eye(T) + attention
                tokens, mixing = step @ tokens, step @ mixing
        output[rows] = attention
    return output
