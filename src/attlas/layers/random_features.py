"""The attention layers that all three doors study, as plain functions on arrays.

Sequences come batch-first, (n, tokens, d). Every function works through the batch in blocks of at most
`BLOCK` numbers of scratch, so its memory is that of its input and output plus a constant (64 MB); no array of
n x d x d numbers is ever made.

References
----------
fu2023random (random-feature attention), chen2024provably (multi-head attention), boncoraglio2025bayes
(attention indices, deep attention).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, real

__all__ = [
    "attention_indices",
    "deep_attention",
    "hardmax",
    "multi_head_attention",
    "random_feature_attention",
    "random_feature_mlp",
    "softmax",
    "with_one",
]

BLOCK = 1 << 23
_IN_CACHE = 16  # of the random features: as much smaller are their blocks, for they are used three times

Array = NDArray[Any]


def random_feature_attention(
    X: ArrayLike, heads: ArrayLike, activation: str = "relu", present: ArrayLike | None = None
) -> Array:
    """Return the features of random-feature attention, one block of d + 1 numbers per frozen head.

    With xt = [x; 1], the query token x_0 and the keys x_1..x_N,

        phi_m(X) = (1/N) sum_i act(s_mi) xt_i,    s_mi = xt_0^T W_m xt_i,

    where act is relu or exp; for softmax, act(s_mi) = N exp(s_mi) / sum_j exp(s_mj). The order of the keys does
    not matter. A trained layer is f(X) = sum_m <v_m, phi_m(X)> for values v_m.

    Parameters
    ----------
    X : array of shape (n, 1 + N, d)
        Token 0 is the query.
    heads : array of shape (M, d + 1, d + 1)
        The frozen W_m.
    activation : {"relu", "exp", "softmax"}
    present : boolean array of shape (n, N), optional
        Which keys count, for sequences of different length; all, if not given. What the others hold does not matter.

    Returns
    -------
    array of shape (n, M, d + 1)
        In the precision of `X`.

    References
    ----------
    fu2023random, equations (3) and (4).
    """
    X = array(X, "X", ("n", "1 + keys", "d"))
    if X.shape[1] < 2:
        raise InputError("X holds the query token only; random-feature attention needs at least one key")
    D = X.shape[2] + 1
    W = _as_precise(array(heads, "heads", ("M", "d + 1", "d + 1"), (None, D, D)), X, "heads")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise InputError(f"activation must be one of {', '.join(_ACTIVATIONS)}; got {activation!r}")
    n, M, N = len(X), len(W), X.shape[1] - 1
    mask = None if present is None else _mask(present, (n, N))
    columns = np.ascontiguousarray(W.transpose(1, 2, 0).reshape(D, D * M))
    features = np.empty((n, D, M), dtype=X.dtype)
    for rows in _blocks(n, _IN_CACHE * (2 * D + N) * M):
        Xt = with_one(X[rows])
        keys, share = Xt[:, 1:], Xt.dtype.type(1 / N)
        projected = (Xt[:, 0] @ columns).reshape(-1, D, M)  # xt_0^T W_m, for every head at once
        if mask is not None:
            keys = keys * mask[rows][:, :, None]
            share = (1 / mask[rows].sum(1)).astype(Xt.dtype)[:, None, None]
        scores = keys @ projected  # (rows, N, M)
        if mask is not None and activation == "softmax":
            scores[~mask[rows]] = -np.inf
            weights = _ACTIVATIONS[activation](scores) * (1 / (share * N))
        else:
            weights = _ACTIVATIONS[activation](scores)
        np.matmul(keys.transpose(0, 2, 1) * share, weights, out=features[rows])
    return features.transpose(0, 2, 1)


def _mask(present: ArrayLike, shape: tuple[int, int]) -> NDArray[np.bool_]:
    mask = np.asarray(present)
    if mask.dtype != bool or mask.shape != shape:
        raise InputError(
            f"present must be a boolean array of shape (n, keys) = {shape}; got {mask.dtype} of {mask.shape}"
        )
    if not mask.any(1).all():
        raise InputError(f"present leaves no key in sequence {int(np.flatnonzero(~mask.any(1))[0])}")
    return mask


def random_feature_mlp(X: ArrayLike, neurons: ArrayLike) -> Array:
    """Return the features relu(<w_m, [x_0; ..; x_N; 1]>) of a random two-layer network on the same tokens.

    Parameters
    ----------
    X : array of shape (n, tokens, d)
    neurons : array of shape (M, tokens * d + 1)

    Returns
    -------
    array of shape (n, M)

    References
    ----------
    fu2023random, section 4.
    """
    X = array(X, "X", ("n", "tokens", "d"))
    w = array(neurons, "neurons", ("M", "tokens * d + 1"), (None, X.shape[1] * X.shape[2] + 1))
    w = _as_precise(w, X, "neurons")
    features: Array = X.reshape(len(X), -1) @ w[:, :-1].T + w[:, -1]
    return np.maximum(features, 0, out=features)


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
    for rows in _blocks(n, k * (2 * d + 2 * k + W.shape[2])):
        tokens = X[rows]
        for theta, value in zip(Theta, W, strict=True):
            scores = _times(tokens, theta) @ tokens.transpose(0, 2, 1)
            output[rows] += _times(softmax(scores) @ tokens, value)
    return output


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

    References
    ----------
    boncoraglio2025bayes, definition of the model.
    """
    X = array(X, "X", ("n", "T", "d"))
    return _centred_indices(X, symmetric(S, X.shape[2]), np.eye(X.shape[1]))


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

    References
    ----------
    boncoraglio2025bayes, deep attention.
    """
    X = array(X, "X", ("n", "T", "d"))
    n, T, d = X.shape
    layers = [symmetric(matrix, d) for matrix in array(S, "S", ("L", "d", "d"), (None, d, d))]
    real(skip, "skip")
    output = np.empty((n, T, T), dtype=X.dtype)
    for rows in _blocks(n, T * (3 * d + 4 * T)):
        tokens, mixing = X[rows], np.broadcast_to(np.eye(T), (len(X[rows]), T, T))
        for depth, matrix in enumerate(layers):
            gram = mixing @ mixing.transpose(0, 2, 1)
            attention = softmax(_centred_indices(tokens, matrix, gram), beta)
            if depth + 1 < len(layers):
                step = skip * np.eye(T) + attention
                tokens, mixing = step @ tokens, step @ mixing
        output[rows] = attention
    return output


def softmax(h: ArrayLike, beta: float = 1.0) -> Array:
    """Return exp(beta h_ab) / sum_c exp(beta h_ac), along the last axis, without overflow."""
    h = _rows_of_numbers(h)
    weights = real(beta, "beta", above=0) * (h - h.max(axis=-1, keepdims=True))
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights)


def hardmax(h: ArrayLike) -> Array:
    """Return one-hot rows: 1 where h is largest along the last axis (the first of equals), 0 elsewhere."""
    h = _rows_of_numbers(h)
    return np.asarray(np.arange(h.shape[-1]) == h.argmax(axis=-1)[..., None], dtype=np.float64)


def with_one(X: Array) -> Array:
    """Return xt = [x; 1]: a last coordinate of one appended to every token."""
    return np.concatenate([X, np.ones((*X.shape[:-1], 1), dtype=X.dtype)], axis=-1)


def symmetric(S: ArrayLike, d: int, name: str = "S") -> Array:
    """Return S as a (d, d) array, or raise `InputError` unless it is symmetric to rounding."""
    S = array(S, name, ("d", "d"), (d, d))
    if np.abs(S - S.T).max() > 1e3 * np.finfo(S.dtype).eps * np.abs(S).max():
        raise InputError(f"{name} must be symmetric; ({name} + {name}.T) / 2 is its symmetric part")
    return S


def _centred_indices(X: Array, S: Array, gram: Array) -> Array:
    """Return (x_a^T S x_b - Tr(S) gram_ab) / sqrt(d), symmetrised so that rounding keeps it symmetric."""
    n, T, d = X.shape
    h = np.empty((n, T, T), dtype=X.dtype)
    for rows in _blocks(n, T * (2 * d + T)):
        np.matmul(_times(X[rows], S), X[rows].transpose(0, 2, 1), out=h[rows])
    h -= np.trace(S) * gram
    h += h.transpose(0, 2, 1).copy()
    h *= 0.5 / np.sqrt(d)
    return h


def _as_precise(weights: Array, X: Array, name: str) -> Array:
    """Return the weights in the precision of X, or raise `InputError` if they do not fit."""
    with np.errstate(over="ignore"):
        converted = weights.astype(X.dtype, copy=False)
    if not np.isfinite(converted).all():
        raise InputError(f"{name} are too large for the precision of X, {X.dtype}; give X in float64")
    return converted


def _rows_of_numbers(h: ArrayLike) -> Array:
    h = np.asarray(h)
    if h.dtype.kind not in "fiub" or h.ndim == 0 or np.isnan(h).any():
        raise InputError(f"h must be an array of numbers without NaN; got shape {h.shape}, dtype {h.dtype}")
    return h if h.dtype.kind == "f" else h.astype(np.float64)


def _times(X: Array, matrix: Array) -> Array:
    """Return X @ matrix for a stack X, as one matrix product instead of one per sequence."""
    return (X.reshape(-1, X.shape[-1]) @ matrix).reshape(*X.shape[:-1], -1)


def _relu(scores: Array) -> Array:
    return np.maximum(scores, 0, out=scores)


def _exp(scores: Array) -> Array:
    with np.errstate(over="ignore"):
        np.exp(scores, out=scores)
    if not np.isfinite(scores).all():
        raise InputError("exp overflows on these tokens and heads; scale them down or use softmax")
    return scores


def _softmax_over_keys(scores: Array) -> Array:
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores *= scores.shape[1] / scores.sum(axis=1, keepdims=True)
    return scores


_ACTIVATIONS = {"relu": _relu, "exp": _exp, "softmax": _softmax_over_keys}


def _blocks(n: int, numbers_per_row: int) -> Iterator[slice]:
    """Cut n rows into slices whose scratch stays below `BLOCK` numbers (one row at the least)."""
    size = max(1, BLOCK // max(1, numbers_per_row))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
