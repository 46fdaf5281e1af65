"""Several softmax heads, each with a query-key matrix and a value matrix; with biases, masks and a second sequence."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, flag
from attlas.layers.activations import softmax
from attlas.layers.blocks import blocks, times
from attlas.layers.masks import allowed, masked_softmax, padding_mask

Array = NDArray[Any]


def multi_head_attention(
    X: ArrayLike,
    Theta: ArrayLike,
    W: ArrayLike,
    *,
    keys: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    output_bias: ArrayLike | None = None,
    causal: bool = False,
    padding: ArrayLike | None = None,
) -> Array:
    """Return F(X) = b + sum_i softmax(X Theta_i Z^T + 1 (Z u_i)^T) Z W_i, the softmax along each row.

    Z is X itself, or `keys` for cross-attention.

    Parameters
    ----------
    X : array of shape (n, k, d)
    Theta : array of shape (m, d, d_keys)
        Query-key matrices; d_keys is d unless there are keys of another dimension.
    W : array of shape (m, d_keys, d_out)
        Value matrices.
    keys : array of shape (n, l, d_keys), optional
        A second sequence Z, to which the tokens of X attend instead of each other.
    key_bias : array of shape (m, d_keys), optional
        u_i: what makes a key attended to, whoever looks.
    output_bias : array of shape (d_out,), optional
        b.
    causal : bool, default False
        Whether a token attends only to itself and to those before it.
    padding : array of bool of shape (n, k), or (n, l) with keys, optional
        True where a key is padding, to which nobody attends. A token with nothing to attend to gives b.

    Returns
    -------
    array of shape (n, k, d_out)

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import layers
    >>> X = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> layers.multi_head_attention(X, np.zeros((1, 2, 2)), np.eye(2)[None]).tolist()  # uniform attention
    [[[0.5, 0.5], [0.5, 0.5]]]

    References
    ----------
    chen2024provably, equation (1), without biases and masks.
    """
    X = array(X, "X", ("n", "k", "d"))
    n, k, d = X.shape
    Z = X if keys is None else array(keys, "keys", ("n", "l", "d_keys"), (n, None, None))
    if flag(causal, "causal") and keys is not None:
        raise InputError("a causal mask is for a sequence that attends to itself; leave out keys, or causal")
    length, e = Z.shape[1:]
    Theta = array(Theta, "Theta", ("m", "d", "d_keys"), (None, d, e))
    W = array(W, "W", ("m", "d_keys", "d_out"), (len(Theta), e, None))
    u = None if key_bias is None else array(key_bias, "key_bias", ("m", "d_keys"), (len(Theta), e))
    b = None if output_bias is None else array(output_bias, "output_bias", ("d_out",), (W.shape[2],))
    mask = allowed(k, length, causal, None if padding is None else padding_mask(padding, n, length))
    kinds = [X, Z, Theta, W, *(part for part in (u, b) if part is not None)]
    output = np.zeros((n, k, W.shape[2]), dtype=np.result_type(*kinds))
    for rows in blocks(n, k * (2 * d + 2 * length + W.shape[2])):
        tokens, others = X[rows], Z[rows]
        seen = None if mask is None else mask[rows] if len(mask) > 1 else mask
        for i, (theta, value) in enumerate(zip(Theta, W, strict=True)):
            scores = times(tokens, theta) @ others.transpose(0, 2, 1)
            if u is not None:
                scores += (others @ u[i])[:, None, :]
            weights = softmax(scores) if seen is None else masked_softmax(scores, seen)
            output[rows] += times(weights @ others, value)
    return output if b is None else output + b
