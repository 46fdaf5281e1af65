"""One block of a transformer: attention, a ReLU network behind it, and the residuals around both."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, flag
from attlas.layers.blocks import blocks, times
from attlas.layers.multi_head import multi_head_attention

Array = NDArray[Any]


def transformer_block(
    X: ArrayLike,
    Theta: ArrayLike,
    W: ArrayLike,
    A: ArrayLike,
    a0: ArrayLike,
    B: ArrayLike,
    b0: ArrayLike,
    attention_residual: bool = True,
    network_residual: bool = False,
) -> Array:
    """Return g(a(X)), a(X) = r_a X + sum_i softmax(X Theta_i X^T) X W_i, g(z) = r_g z + B relu(A z + a0) + b0.

    Parameters
    ----------
    X : array of shape (n, k, d)
    Theta : array of shape (m, d, d)
        Query-key matrices.
    W : array of shape (m, d, d)
        Value matrices.
    A, a0 : arrays of shape (h, d) and (h,)
        The hidden neurons of the network.
    B, b0 : arrays of shape (d_out, h) and (d_out,)
        Its outputs.
    attention_residual, network_residual : bool
        r_a and r_g: whether tokens are added to what attention makes of them, and that to what the network makes of it,
        which needs d_out = d.

    Returns
    -------
    array of shape (n, k, d_out)

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import layers
    >>> X = np.array([[[1.0, -2.0]]])  # a single token attends to itself
    >>> one, none = np.eye(2), np.zeros(2)
    >>> layers.transformer_block(X, np.zeros((1, 2, 2)), one[None], one, none, one, none).tolist()
    [[[2.0, 0.0]]]

    References
    ----------
    bhattamishra2026provably.
    """
    X = array(X, "X", ("n", "k", "d"))
    n, k, d = X.shape
    W = array(W, "W", ("m", "d", "d"), (None, d, d))
    A = array(A, "A", ("h", "d"), (None, d))
    h = len(A)
    a0 = array(a0, "a0", ("h",), (h,))
    B = array(B, "B", ("d_out", "h"), (None, h))
    b0 = array(b0, "b0", ("d_out",), (len(B),))
    if flag(network_residual, "network_residual") and len(B) != d:
        raise InputError(
            f"a residual around the network needs as many outputs as entries of a token, {d}; got {len(B)}"
        )
    a = multi_head_attention(X, Theta, W)
    if flag(attention_residual, "attention_residual"):
        a = a + X
    output = np.empty((n, k, len(B)), dtype=np.result_type(a, A, B))
    for rows in blocks(n, k * (h + len(B))):
        output[rows] = times(np.maximum(times(a[rows], A.T) + a0, 0), B.T) + b0
    return output + a if network_residual else output
