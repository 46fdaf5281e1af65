"""The squared error of a layer in factors and its gradient: O(n k d D) for n sequences of k tokens.

A block of b sequences is stored as (d, k, b), sequences last: projections are one matrix product, and the attention of a few
tokens to each other is a loop whose innermost part runs over sequences, at the speed of the machine's vector unit.

With residual R = F - Y, P the attention, o = P U, and G = O^T R,

    dO = R o^T,   dU_c = sum_r P_rc G_r,   l_rc = P_rc (G_r . U_c - G_r . o_r),
    dQ_r = sum_c l_rc K_c,   dK_c = sum_r l_rc Q_r.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attlas.recovery.examples import Examples
from attlas.recovery.factors import Factors, Sizes

Array = NDArray[Any]  # of single or double precision

_SEQUENCES = 250  # in a block; from 125 to 500 the speed is the same


class Block(NamedTuple):
    """Contexts (d, k, b), queries (d, q, b) and outputs (d_out, q, b)."""

    X: Array
    queries: Array
    Y: Array

    @classmethod
    def of(cls, data: Examples, rows: Any, dtype: Any) -> "Block":
        """Return these sequences, in this precision."""

        def turned(values: Array) -> Array:
            return np.ascontiguousarray(values[rows].transpose(2, 1, 0), dtype=dtype)

        X = turned(data.X)
        return cls(X, X if data.queries is data.X else turned(data.queries), turned(data.Y))


def blocks(data: Examples, dtype: Any, sequences: int = _SEQUENCES) -> list[Block]:
    """Return all examples in blocks."""
    return [Block.of(data, slice(at, at + sequences), dtype) for at in range(0, len(data.X), sequences)]


class Forward(NamedTuple):
    """What the backward pass needs: Q, K, U, o (H, rank, tokens, b), the attention P (H, q, k, b), and the output."""

    Q: Array
    K: Array
    U: Array
    P: Array
    o: Array
    output: Array


def forward(factors: Factors, sizes: Sizes, block: Block) -> Forward:
    """Return the output (d_out, q b) of a block, and what leads to it."""
    (d, k, b), q = block.X.shape, block.queries.shape[1]
    D, H, rank = sizes.width, sizes.heads, sizes.rank
    X = block.X.reshape(d, k * b)
    Q = factors.A @ block.queries.reshape(d, q * b)
    if sizes.biased:
        Q += factors.a[:, None]
    K, U = (np.concatenate([factors.B, factors.V]) @ X).reshape(2, H, rank, k, b)
    Q = Q.reshape(H, rank, q, b)
    P = np.empty((H, q, k, b), dtype=Q.dtype)
    _logits(Q, K, P)
    np.exp(P, out=P)
    o = np.empty_like(Q)
    _read(P, U, o)
    output = factors.O @ o.reshape(D, q * b)
    if sizes.biased:
        output += factors.b[:, None]
    return Forward(Q, K, U, P, o, output)


def loss_and_gradient(v: Array, sizes: Sizes, parts: list[Block]) -> tuple[float, Array]:
    """Return |F - Y|^2 over all blocks and its gradient by v, in the precision of the blocks."""
    dtype = parts[0].X.dtype
    factors = Factors.of(v.astype(dtype, copy=False), sizes)
    loss, total = 0.0, np.zeros(sizes.numbers)
    gradient = np.empty(sizes.numbers, dtype=dtype)
    for part in parts:
        loss += _of_block(factors, sizes, part, Factors.of(gradient, sizes))
        total += gradient
    return loss, total


def _of_block(factors: Factors, sizes: Sizes, block: Block, gradient: Factors) -> float:
    """Write the gradient of one block, and return its loss."""
    (d, k, b), q, D = block.X.shape, block.queries.shape[1], sizes.width
    Q, K, U, P, o, R = forward(factors, sizes, block)
    R -= block.Y.reshape(R.shape)
    slope = 2 * R
    gradient.O[:] = slope @ o.reshape(D, q * b).T
    G = (factors.O.T @ slope).reshape(o.shape)
    moves = np.zeros((2, *K.shape), dtype=Q.dtype)
    dQ = np.zeros_like(Q)
    _pull(P, Q, K, U, o, G, dQ, moves[0], moves[1])
    by_tokens = moves.reshape(2 * D, k * b) @ block.X.reshape(d, k * b).T
    gradient.A[:] = dQ.reshape(D, q * b) @ block.queries.reshape(d, q * b).T
    gradient.B[:], gradient.V[:] = by_tokens[:D], by_tokens[D:]
    if sizes.biased:
        gradient.a[:] = dQ.reshape(D, q * b).sum(1)
        gradient.b[:] = slope.sum(1)
    flat = R.reshape(-1)
    return float(flat @ flat)


def outputs(v: Array, sizes: Sizes, parts: list[Block]) -> Iterator[tuple[Forward, Block]]:
    """Yield the forward pass of every block."""
    factors = Factors.of(v.astype(parts[0].X.dtype, copy=False), sizes)
    for part in parts:
        yield forward(factors, sizes, part), part


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
def _logits(Q: Any, K: Any, P: Any) -> None:
    """P[h, r, c] = Q[h, :, r] . K[h, :, c], less the largest of the row."""
    H, rank, q, b = Q.shape
    k = K.shape[2]
    top = np.empty(b, dtype=P.dtype)
    P[:] = 0
    for h in range(H):
        for r in range(q):
            top[:] = -np.inf
            for c in range(k):
                logit = P[h, r, c]
                for f in range(rank):
                    query, key = Q[h, f, r], K[h, f, c]
                    for j in range(b):
                        logit[j] += query[j] * key[j]
                for j in range(b):
                    top[j] = max(top[j], logit[j])
            for c in range(k):
                logit = P[h, r, c]
                for j in range(b):
                    logit[j] -= top[j]


@njit(cache=True, nogil=True, fastmath=True)
def _read(P: Any, U: Any, o: Any) -> None:
    """Scale P to sum to one over tokens, and o[h, :, r] = sum_c P[h, r, c] U[h, :, c]."""
    H, rank, q, b = o.shape
    k = P.shape[2]
    total = np.empty(b, dtype=P.dtype)
    for h in range(H):
        for r in range(q):
            total[:] = P[h, r, 0]
            for c in range(1, k):
                weight = P[h, r, c]
                for j in range(b):
                    total[j] += weight[j]
            for j in range(b):
                total[j] = 1 / total[j]
            for c in range(k):
                weight = P[h, r, c]
                for j in range(b):
                    weight[j] *= total[j]
                for f in range(rank):
                    value, to = U[h, f, c], o[h, f, r]
                    if c == 0:
                        for j in range(b):
                            to[j] = weight[j] * value[j]
                    else:
                        for j in range(b):
                            to[j] += weight[j] * value[j]


@njit(cache=True, nogil=True, fastmath=True)
def _pull(P: Any, Q: Any, K: Any, U: Any, o: Any, G: Any, dQ: Any, dK: Any, dU: Any) -> None:
    """Add what the loss pulls on queries, keys and values."""
    H, rank, q, b = Q.shape
    k = K.shape[2]
    own, pull = np.empty(b, dtype=P.dtype), np.empty(b, dtype=P.dtype)
    for h in range(H):
        for r in range(q):
            own[:] = 0
            for f in range(rank):
                g, read = G[h, f, r], o[h, f, r]
                for j in range(b):
                    own[j] += g[j] * read[j]
            for c in range(k):
                weight = P[h, r, c]
                for j in range(b):
                    pull[j] = -own[j]
                for f in range(rank):
                    g, value, to = G[h, f, r], U[h, f, c], dU[h, f, c]
                    for j in range(b):
                        pull[j] += g[j] * value[j]
                        to[j] += weight[j] * g[j]
                for j in range(b):
                    pull[j] *= weight[j]
                for f in range(rank):
                    query, key, to_query, to_key = Q[h, f, r], K[h, f, c], dQ[h, f, r], dK[h, f, c]
                    for j in range(b):
                        to_query[j] += pull[j] * key[j]
                        to_key[j] += pull[j] * query[j]
