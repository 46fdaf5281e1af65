"""Features of frozen random heads, and of frozen random neurons on the same tokens."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, described, plain
from attlas.layers.activations import activation_of
from attlas.layers.blocks import blocks

_IN_CACHE = 16  # blocks are 16 times smaller, to stay in cache: each is read three times

Array = NDArray[Any]


def random_feature_attention(
    X: ArrayLike,
    heads: ArrayLike,
    activation: str | Callable[[Array], Any] = "relu",
    present: ArrayLike | None = None,
) -> Array:
    """Return the features of random-feature attention, one block of d + 1 numbers per frozen head.

    With xt = [x; 1], the query token x_0 and the keys x_1..x_N,

        phi_m(X) = (1/N) sum_i act(s_mi) xt_i,    s_mi = xt_0^T W_m xt_i,

    where act is a function of one score; for softmax, act(s_mi) = N exp(s_mi) / sum_j exp(s_mj). The order of the keys does
    not matter. A trained layer is f(X) = sum_m <v_m, phi_m(X)> for values v_m.

    Parameters
    ----------
    X : array of shape (n, 1 + N, d)
        Token 0 is the query.
    heads : array of shape (M, d + 1, d + 1)
        The frozen W_m.
    activation : {"relu", "exp", "sigmoid", "erf", "tanh", "relu2", "softmax"} or function
        A function takes an array of scores and returns one weight for each.
    present : boolean array of shape (n, N), optional
        Which keys count, for sequences of different length (default: all). The other keys may hold anything.

    Returns
    -------
    array of shape (n, M, d + 1)
        In the precision of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import features, layers, tokens
    >>> X, heads = tokens.sphere(4, 3, 2, seed=0), features.attention_heads(5, 2, seed=1)
    >>> phi = layers.random_feature_attention(X, heads)
    >>> phi.shape  # a block of d + 1 features from each head
    (4, 5, 3)
    >>> bool(np.allclose(phi, layers.random_feature_attention(X[:, [0, 2, 1]], heads)))  # the order of keys does not matter
    True

    References
    ----------
    fu2023random, equations (3) and (4).
    """
    X = array(X, "X", ("n", "1 + keys", "d"))
    if X.shape[1] < 2:
        raise InputError("X holds the query token only; random-feature attention needs at least one key")
    D = X.shape[2] + 1
    W = as_precise(array(heads, "heads", ("M", "d + 1", "d + 1"), (None, D, D)), X, "heads")
    act = activation_of(activation)
    n, M, N = len(X), len(W), X.shape[1] - 1
    mask = None if present is None else present_mask(present, (n, N), "keys")
    columns = np.ascontiguousarray(W.transpose(1, 2, 0).reshape(D, D * M))
    features = np.empty((n, M, D), dtype=X.dtype)
    for rows in blocks(n, _IN_CACHE * (2 * D + N) * M):
        Xt = with_one(X[rows])
        keys, share = Xt[:, 1:], Xt.dtype.type(1 / N)
        projected = (Xt[:, 0] @ columns).reshape(-1, D, M)  # xt_0^T W_m, for every head at once
        if mask is not None:
            keys = keys * mask[rows][:, :, None]
            share = (1 / mask[rows].sum(1)).astype(Xt.dtype)[:, None, None]
        scores = keys @ projected  # (rows, N, M)
        if mask is not None and activation == "softmax":
            scores[~mask[rows]] = -np.inf
            weights = act(scores) * (1 / (share * N))
        else:
            weights = act(scores)
        np.matmul(weights.transpose(0, 2, 1), keys * share, out=features[rows])
    return features


def random_feature_mlp(X: ArrayLike, neurons: ArrayLike) -> Array:
    """Return the features relu(<w_m, [x_0; ..; x_N; 1]>) of a random two-layer network on the same tokens.

    Parameters
    ----------
    X : array of shape (n, tokens, d)
    neurons : array of shape (M, tokens * d + 1)

    Returns
    -------
    array of shape (n, M)

    Examples
    --------
    >>> from attlas import features, layers, tokens
    >>> layers.random_feature_mlp(tokens.sphere(4, 3, 2, seed=0), features.mlp_neurons(10, 3, 2, seed=1)).shape
    (4, 10)

    References
    ----------
    fu2023random, section 4.
    """
    X = array(X, "X", ("n", "tokens", "d"))
    w = array(neurons, "neurons", ("M", "tokens * d + 1"), (None, X.shape[1] * X.shape[2] + 1))
    w = as_precise(w, X, "neurons")
    features: Array = X.reshape(len(X), -1) @ w[:, :-1].T + w[:, -1]
    return np.maximum(features, 0, out=features)


def with_one(X: Array) -> Array:
    """Return xt = [x; 1]: a last coordinate of one appended to every token.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import layers
    >>> layers.with_one(np.array([[[3.0, 4.0]]])).tolist()
    [[[3.0, 4.0, 1.0]]]
    """
    if not isinstance(X, np.ndarray) or X.ndim == 0 or X.dtype.kind not in "fiu":
        raise InputError(f"X must be an array of tokens, the last axis their coordinates; got {described(X)}")
    return np.concatenate([X, np.ones((*X.shape[:-1], 1), dtype=X.dtype)], axis=-1)


def present_mask(present: ArrayLike, shape: tuple[int, int], what: str) -> NDArray[np.bool_]:
    """Return which keys (or tokens, as `what` says) of each sequence count, at least one, or raise `InputError`."""
    mask = plain(present, "present", f"a boolean array of shape (n, {what}) = {shape}")
    if mask.dtype != bool or mask.shape != shape:
        raise InputError(
            f"present must be a boolean array of shape (n, {what}) = {shape}; got {mask.dtype} of {mask.shape}"
        )
    if not mask.any(1).all():
        raise InputError(f"present leaves none of the {what} in sequence {int(np.flatnonzero(~mask.any(1))[0])}")
    return mask


def as_precise(weights: Array, X: Array, name: str) -> Array:
    """Return the weights in the precision of X, or raise `InputError` if they do not fit."""
    with np.errstate(over="ignore"):
        converted = weights.astype(X.dtype, copy=False)
    if not np.isfinite(converted).all():
        raise InputError(f"{name} are too large for the precision of X, {X.dtype}; give X in float64")
    return converted
