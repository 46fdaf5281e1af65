"""Features of frozen random heads pooled over a set: every token asks in turn, and the answers are averaged."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array, integer
from attlas.layers.activations import activation_of
from attlas.layers.blocks import BLOCK
from attlas.layers.random_features import as_precise, present_mask, with_one

Array = NDArray[Any]

_IN_CACHE = 16  # blocks are 16 times smaller, to stay in cache: each is read three times
_HEADS = 128  # used at a time


def pooled_feature_attention(
    X: ArrayLike,
    heads: ArrayLike,
    activation: str | Callable[[Array], Any] = "relu",
    present: ArrayLike | None = None,
    codes: int = 0,
) -> Array:
    """Return the features of random-feature attention averaged over queries: every token of a set asks all of them.

    With xt = [x; 1] and the k tokens x_1..x_k of a set,

        phi_m(X) = (1/k) sum_q (1/k) sum_i act(s_mqi) xt_i,    s_mqi = xt_q^T W_m xt_i,

    the average over q of `random_feature_attention` on (x_q; x_1, .., x_k). Neither the order of the tokens matters, nor
    whether one is called the query.

    Parameters
    ----------
    X : array of shape (n, tokens, d)
    heads : array of shape (M, d + 1, d + 1)
        The frozen W_m.
    activation : {"relu", "exp", "sigmoid", "erf", "tanh", "relu2", "softmax"} or function
        As for `random_feature_attention`; softmax is over the keys, for every query.
    present : boolean array of shape (n, tokens), optional
        Which tokens count, for sets of different size (default: all). The others may hold anything finite.
    codes : int, default 0
        How many of the last coordinates are codes of positions, which keys have and queries have not.

    Returns
    -------
    array of shape (n, M, d + 1)
        In the precision of `X`.

    Notes
    -----
    Costs k^2 M (d + 2) per set, k times what one query costs, in a scratch of at most `blocks.BLOCK`/16 numbers (or what one
    query of one set needs with 128 heads).

    Examples
    --------
    >>> from attlas import features, layers, tokens
    >>> X, heads = tokens.sphere(4, 3, 2, seed=0), features.attention_heads(5, 2, seed=1)
    >>> layers.pooled_feature_attention(X, heads).shape
    (4, 5, 3)
    """
    X = array(X, "X", ("n", "tokens", "d"))
    n, k, D = len(X), X.shape[1], X.shape[2] + 1
    W = as_precise(array(heads, "heads", ("M", "d + 1", "d + 1"), (None, D, D)), X, "heads")
    silent = integer(codes, "codes", 0, X.shape[2])
    act = activation_of(activation)
    mask = np.ones((n, k), dtype=bool) if present is None else present_mask(present, (n, k), "tokens")
    keys = with_one(X) * mask[:, :, None]
    queries = keys
    if silent:
        queries = keys.copy()
        queries[:, :, D - 1 - silent : D - 1] = 0
    features = np.empty((n, D, len(W)), dtype=X.dtype)
    for start in range(0, len(W), _HEADS):
        part = slice(start, start + _HEADS)
        columns = np.ascontiguousarray(W[part].transpose(1, 2, 0).reshape(D, -1))
        for rows, asked in _blocks(n, k, (2 * D + k) * columns.shape[1] // D):
            weights = _mean_weights(queries[rows, asked], keys[rows], columns, act, mask[rows], asked, activation)
            if asked.start == 0:
                features[rows, :, part] = 0
            features[rows, :, part] += keys[rows].transpose(0, 2, 1) @ weights
    return features.transpose(0, 2, 1)


def _mean_weights(
    queries: Array,
    keys: Array,
    columns: Array,
    act: Callable[[Array], Array],
    mask: NDArray[np.bool_],
    asked: slice,
    activation: Any,
) -> Array:
    """Return (1/k^2) sum_q act(s_mqi) over some queries of each set, (rows, keys, M)."""
    rows, k, D = keys.shape
    M = columns.shape[1] // D
    counts = mask.sum(1)
    # xt_q^T W_m, for every query and head at once
    projected = (queries.reshape(-1, D) @ columns).reshape(rows, -1, D, M)
    scores = (keys[:, None] @ projected).reshape(-1, k, M)
    share = mask[:, asked] / counts[:, None].astype(float) ** 2
    if isinstance(activation, str) and activation == "softmax":
        scores[np.repeat(~mask, projected.shape[1], axis=0)] = -np.inf
        share *= counts[:, None] / k  # the layer's softmax sums to the number of keys, padding included
    weights = act(scores).reshape(rows, -1, k * M)
    return np.asarray(share.astype(keys.dtype)[:, None] @ weights).reshape(rows, k, M)


def _blocks(n: int, k: int, numbers_per_query: int) -> list[tuple[slice, slice]]:
    """Cut n sets of k queries into blocks of whole sets, or of queries of one set where a set is too large."""
    at_a_time = max(1, BLOCK // (_IN_CACHE * numbers_per_query))
    if at_a_time < k:
        return [(slice(i, i + 1), slice(q, min(q + at_a_time, k))) for i in range(n) for q in range(0, k, at_a_time)]
    step = at_a_time // k
    return [(slice(i, min(i + step, n)), slice(0, k)) for i in range(0, n, step)]
