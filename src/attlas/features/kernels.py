"""Kernels of infinitely many heads: what random-feature attention and the random-feature MLP become as M grows.

With t_ij = <xt_i, xt'_j>, c = <xt_0, xt'_0> and W = W_0 + N(0, 1/4), the scores s_i = xt_0^T W xt_i of two sequences are
jointly normal with means a_i = xt_0^T W_0 xt_i, variances |xt_0|^2 |xt_i|^2/4 and covariances c t_ij/4, and

    K(X, X') = (1/(N N')) sum_ij E[act(s_i) act(s'_j)] t_ij.

References
----------
fu2023random; cho2009kernel for the arc-cosine kernel of relu; the biased ones are derived in `docs/features.md`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features.kappa import SERIES, TERMS, arc_cosine, biased_relu, hermite_coefficients, same_relu
from attlas.features.position_codes import score_scale, widened, with_positions
from attlas.features.scoring import Scoring, scoring_of
from attlas.features.sequences import bias_matrix, sequences
from attlas.features.series_kernel import CLOSED, add_series, coefficients
from attlas.layers import with_one
from attlas.numerics import Event, Progress

Array = NDArray[np.float64]

_KEYS = 384  # on each side of a block of key pairs: a megabyte, which stays in the cache


@np.errstate(over="ignore", invalid="ignore")  # overflow raises an InputError
def attention_kernel(
    X: ArrayLike,
    X2: ArrayLike | None = None,
    *,
    bias: float | ArrayLike = 0.0,
    activation: str | Callable[[Array], Any] = "relu",
    positions: float = 0.0,
    progress: Progress | None = None,
) -> Array:
    """Return the kernel of random-feature attention with infinitely many heads.

    Parameters
    ----------
    X : array of shape (n, 1 + keys, d)
        Token 0 is the query. Rows of NaN pad missing keys.
    X2 : array of shape (n2, 1 + keys2, d), optional
        X itself if not given; only half of the kernel is then computed.
    bias : float or array of shape (d, d) or (d + 1, d + 1), default 0
        W_0: a strength b for b [[I, 0], [0, 0]], or the matrix itself.
    activation : {"relu", "exp", "sigmoid", "erf", "tanh", "relu2"} or function
        A function takes an array of scores and returns one weight for each. Softmax has no closed form, because its
        normaliser couples the keys.
    positions : float, default 0
        gamma^2, the squared length of one-hot position codes on the keys (`position_codes`).
    progress : callable, optional
        Called with an `Event` as rows of the kernel are finished.

    Returns
    -------
    array of shape (n, n2)
        Positive semidefinite to rounding. Arc-cosine functions without bias, exact to 1e-13 of the diagonal; with bias a
        Hermite series for small correlations and a quadrature for large ones, to 1e-11 for biases up to 4 and 1e-9 up to 8.
        Closed forms for erf and relu2 without bias; else the Hermite series, to 1e-10 for smooth functions. With a
        kink, as in relu2 with a bias, it is that good for correlations of scores up to 0.95 (and exactly 1).

    Examples
    --------
    >>> from attlas import features, tokens
    >>> K = features.attention_kernel(tokens.sphere(5, 4, 3, seed=0))
    >>> K.shape, bool((K.diagonal() > 0).all())
    ((5, 5), True)
    """
    if isinstance(activation, str) and activation == "softmax":
        raise InputError("activation 'softmax' has features only, no kernel: its normaliser couples the keys")
    scoring = scoring_of(activation, "activation of a kernel")
    checked = sequences(X, "X")
    other = None if X2 is None else sequences(X2, "X2", d=checked.shape[2])
    slots = max(part.shape[1] for part in (checked, other) if part is not None) - 1
    first = _Scores.of(checked, bias, positions, slots)
    second = first if other is None else _Scores.of(other, bias, positions, slots)
    fill = _filler(scoring, first, second)
    K = np.zeros((len(first.counts), len(second.counts)))
    buffer = np.empty(0)
    for rows in first.blocks():
        for columns in second.blocks():
            if X2 is None and columns.start > rows.start:
                break
            t, c, buffer = first.gram(second, rows, columns, buffer)
            block = K[rows, columns]
            fill(t, c, rows, columns, block)
            block /= first.counts[rows, None] * second.counts[columns]
            if X2 is None:
                K[columns, rows] = np.tril(block) + np.tril(block, -1).T if columns == rows else block.T
        if progress is not None:
            progress(Event(rows.stop, len(K), f"kernel: {rows.stop} of {len(K)} rows"))
    if not np.isfinite(K).all():
        raise InputError("the kernel overflows on these tokens; scale them, or the bias, down")
    return K


def _filler(
    scoring: Scoring, first: "_Scores", second: "_Scores"
) -> Callable[[Array, Array, slice, slice, Array], None]:
    """Return what fills a block of the kernel with sum_ij E[act act'] t_ij, given t, c, and which rows and columns."""
    biased = bool(np.any(first.mean) or np.any(second.mean))

    def laws(rows: slice, columns: slice) -> tuple[Array, Array]:
        return first.deviation[rows], second.deviation[columns]

    def means(rows: slice, columns: slice) -> tuple[Array, Array]:
        return first.mean[rows], second.mean[columns]

    if scoring.name == "exp":
        return lambda t, c, i, j, block: _add_exp(t, c, first.exponential[i], second.exponential[j], block)
    if scoring.name == "relu" and not biased:
        return lambda t, c, i, j, block: _add_relu(t, c, *laws(i, j), block)
    if scoring.name == "relu":
        return lambda t, c, i, j, block: _add_biased_relu(
            t, c, *laws(i, j), *means(i, j), first.series[i], second.series[j], block
        )
    if not biased and scoring.name in CLOSED:
        return lambda t, c, i, j, block: np.copyto(block, CLOSED[scoring.name](t, c, *laws(i, j)))
    own, square = coefficients(scoring, first.mean * first.deviation, first.deviation)
    other = own if second is first else coefficients(scoring, second.mean * second.deviation, second.deviation)[0]
    return lambda t, c, i, j, block: add_series(t, c, *laws(i, j), *means(i, j), own[i], other[j], square[i], block)


def mlp_kernel(X: ArrayLike, X2: ArrayLike | None = None) -> Array:
    """Return the kernel of the random-feature MLP with infinitely many neurons, on the same tokens, in order.

    K = sigma sigma' kappa(rho), sigma sigma' rho = (1 + sum_i <x_i, x'_i>)/(N + 2) over all N + 1 tokens.

    Parameters
    ----------
    X, X2 : arrays of shape (n, tokens, d)
        No token may be missing: a network on concatenated tokens has no way to leave one out.

    Examples
    --------
    >>> from attlas import features, tokens
    >>> features.mlp_kernel(tokens.sphere(5, 4, 3, seed=0)).shape
    (5, 5)
    """
    first = sequences(X, "X")
    second = first if X2 is None else sequences(X2, "X2", d=first.shape[2])
    if first.shape[1] != second.shape[1]:
        raise InputError(f"X has {first.shape[1]} tokens and X2 has {second.shape[1]}; an MLP needs the same number")
    if np.isnan(first).any() or np.isnan(second).any():
        raise InputError("X has missing tokens (NaN); the MLP kernel needs all of them")
    flat, other = (np.ascontiguousarray(part.reshape(len(part), -1)) for part in (first, second))
    scale = first.shape[1] + 1
    covariance = (1 + flat @ other.T) / scale
    sizes = [np.sqrt((1 + (part * part).sum(1)) / scale) for part in (flat, other)]
    size = sizes[0][:, None] * sizes[1]
    rho = covariance / size
    if X2 is None:
        np.fill_diagonal(rho, 1.0)
    return np.asarray(size * _arc_cosines(rho))


@dataclass(frozen=True)
class _Scores:
    """What a set of sequences contributes: queries and keys with their one, and the law of the scores.

    Missing keys are zero vectors; their deviation is 1, which divides safely. `mean` is in units of `deviation`.
    """

    queries: Array
    keys: Array
    counts: Array
    mean: Array
    deviation: Array

    @classmethod
    def of(cls, X: Array, bias: float | ArrayLike, positions: float, slots: int) -> "_Scores":
        W0, scale = bias_matrix(bias, X.shape[2]), score_scale(positions)
        if positions:
            X, W0 = with_positions(X, positions, slots), widened(W0, slots)
        present = ~np.isnan(X[:, 1:, 0])
        Xt = with_one(np.nan_to_num(X))
        queries, keys = np.ascontiguousarray(Xt[:, 0]), np.ascontiguousarray(Xt[:, 1:] * present[:, :, None])
        deviation = 0.5 * np.sqrt((queries**2).sum(1))[:, None] * np.sqrt((keys**2).sum(2))
        deviation *= scale
        deviation[~present] = 1.0
        mean = np.einsum("nd,nkd->nk", queries @ W0, keys) / deviation
        return cls(scale * queries, keys, present.sum(1).astype(float), mean, deviation)

    @cached_property
    def transposed(self) -> Array:
        """Coordinates by keys, (d + 1, n N): products of thin matrices are twice as fast in this order."""
        return np.ascontiguousarray(self.keys.reshape(-1, self.keys.shape[2]).T)

    @cached_property
    def series(self) -> Array:
        """Hermite coefficients of the means, (n, terms, keys)."""
        series = np.empty((len(self.mean), TERMS, self.mean.shape[1]))
        hermite_coefficients(self.mean, series)
        return series

    @cached_property
    def exponential(self) -> Array:
        """E[exp(s)]."""
        return np.asarray(np.exp(self.mean * self.deviation + 0.5 * self.deviation**2))

    def blocks(self) -> list[slice]:
        """Return slices of sequences with at most `_KEYS` keys together, or one."""
        step = max(1, _KEYS // self.keys.shape[1])
        return [slice(start, min(start + step, len(self.keys))) for start in range(0, len(self.keys), step)]

    def gram(self, other: "_Scores", rows: slice, columns: slice, buffer: Array) -> tuple[Array, Array, Array]:
        """Return t of all key pairs, (rows, N, columns, N'), c of all query pairs, and the buffer that t lies in."""
        left, N2 = self.keys[rows], other.keys.shape[1]
        shape = (*left.shape[:2], columns.stop - columns.start, N2)
        size = math.prod(shape)
        if len(buffer) < size:
            buffer = np.empty(size)
        t = buffer[:size].reshape(shape[0] * shape[1], -1)
        np.matmul(left.reshape(len(t), -1), other.transposed[:, columns.start * N2 : columns.stop * N2], out=t)
        return t.reshape(shape), self.queries[rows] @ other.queries[columns].T, buffer


@njit(cache=True, nogil=True, fastmath=True)
def _add_relu(t: Any, c: Any, first: Any, second: Any, K: Any) -> None:
    """Fill K with sum_ij E[relu relu'] t_ij for a block. A missing key has t = 0 and deviation 1.

    The loop over all keys of all columns is one long loop, which runs in vectors.
    """
    rows, N, columns, N2 = t.shape
    lines = t.reshape(rows, N, columns * N2)
    share, total = np.empty(columns * N2), np.empty(columns * N2)
    for p in range(rows):
        for q in range(columns):
            for j in range(N2):
                share[q * N2 + j] = 0.25 * c[p, q] / second[q, j]
        total[:] = 0.0
        for i in range(N):
            line, size = lines[p, i], first[p, i]
            scale = 1 / size
            for f in range(columns * N2):
                total[f] += size * arc_cosine(scale * share[f] * line[f]) * line[f]
        _gather(total, second, K[p])


@njit(cache=True, nogil=True, fastmath=True)
def _add_exp(t: Any, c: Any, first: Any, second: Any, K: Any) -> None:
    """The same for exp; `first` and `second` are exp(mean + variance/2)."""
    rows, N, columns, N2 = t.shape
    lines = t.reshape(rows, N, columns * N2)
    share, total = np.empty(columns * N2), np.empty(columns * N2)
    for p in range(rows):
        for q in range(columns):
            share[q * N2 : (q + 1) * N2] = 0.25 * c[p, q]
        total[:] = 0.0
        for i in range(N):
            line = lines[p, i]
            for f in range(columns * N2):
                total[f] += first[p, i] * np.exp(share[f] * line[f]) * line[f]
        _gather(total, second, K[p])


@njit(cache=True, nogil=True, fastmath=True)
def _gather(total: Any, weights: Any, K: Any) -> None:
    """Sum `total` over the keys of each sequence, weighted."""
    columns, N2 = weights.shape
    for q in range(columns):
        value = 0.0
        for j in range(N2):
            value += total[q * N2 + j] * weights[q, j]
        K[q] = value


@njit(cache=True, nogil=True, fastmath=True)
def _add_biased_relu(
    t: Any, c: Any, first: Any, second: Any, mean: Any, mean2: Any, series: Any, series2: Any, K: Any
) -> None:
    """The same for relu with bias; means are in units of the deviations, series are (rows, terms, keys)."""
    rows, N, columns, N2 = t.shape
    rho, power, value = np.empty(N2), np.empty(N2), np.empty(N2)
    for p in range(rows):
        for q in range(columns):
            total = 0.0
            for i in range(N):
                scale = 0.25 * c[p, q] / first[p, i]
                largest = 0.0
                for j in range(N2):
                    rho[j] = scale * t[p, i, q, j] / second[q, j]
                    power[j] = 1.0
                    value[j] = 0.0
                    largest = max(largest, abs(rho[j]))
                reach = 1.0
                for k in range(TERMS):
                    weight = series[p, k, i]
                    for j in range(N2):
                        value[j] += weight * series2[q, k, j] * power[j]
                        power[j] *= rho[j]
                    reach *= largest
                    if reach < 1e-14:
                        break
                if largest > SERIES:  # the series is too short for these
                    for j in range(N2):
                        if rho[j] > 1 - 1e-13 and mean[p, i] == mean2[q, j]:
                            value[j] = same_relu(mean[p, i])
                        elif abs(rho[j]) > SERIES:
                            value[j] = biased_relu(mean[p, i], mean2[q, j], rho[j])
                part = 0.0
                for j in range(N2):
                    part += value[j] * second[q, j] * t[p, i, q, j]
                total += part * first[p, i]
            K[p, q] = total


@njit(cache=True, nogil=True, fastmath=True)
def _arc_cosines(rho: Any) -> Any:
    out = np.empty_like(rho)
    for i in range(rho.shape[0]):
        for j in range(rho.shape[1]):
            out[i, j] = arc_cosine(rho[i, j])
    return out
