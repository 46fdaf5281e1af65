"""Kernels of any pointwise scoring function: in closed form where there is one, else by the Hermite series, compiled."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attlas.features.scoring import Scoring

Array = NDArray[np.float64]

_LONGEST = 400
_REST = 1e-13  # of E[act^2], beyond which no more terms are taken


def coefficients(scoring: Scoring, mean: Array, deviation: Array) -> tuple[Array, Array]:
    """Return c_k of every key, (n, terms, keys), as many terms as its scores need, and E[act^2], (n, keys).

    Keys with the same law share their coefficients.
    """
    laws, index = np.unique(
        np.round(np.stack([mean.ravel(), deviation.ravel()], axis=1), 14), axis=0, return_inverse=True
    )
    square = scoring.square(laws[:, 0], laws[:, 1])
    terms = 32
    while True:
        found = scoring.coefficients(laws[:, 0], laws[:, 1], terms)
        rest = square - (found**2).sum(0)
        if terms >= _LONGEST or np.all(rest <= _REST * square):
            break
        terms = min(2 * terms, _LONGEST)
    series = found.T[index.ravel()].reshape(*mean.shape, terms)
    return np.ascontiguousarray(series.transpose(0, 2, 1)), square[index.ravel()].reshape(mean.shape)


def erf_block(t: Array, c: Array, first: Array, second: Array) -> Array:
    """Return sum_ij E[erf erf'] t_ij without bias: (2/pi) arcsin(2 cov/sqrt((1 + 2 var)(1 + 2 var')))."""
    covariance = 0.25 * c[:, None, :, None] * t
    scale = np.sqrt((1 + 2 * first**2)[:, :, None, None] * (1 + 2 * second**2))
    return np.asarray(np.einsum("piqj,piqj->pq", 2 / np.pi * np.arcsin(2 * covariance / scale), t))


def relu2_block(t: Array, c: Array, first: Array, second: Array) -> Array:
    """Return the same for relu^2 (cho2009kernel): var var' (3 sin cos + (pi - theta)(1 + 2 cos^2))/2 pi, rho = cos theta."""
    scale = first[:, :, None, None] * second
    rho = np.clip(0.25 * c[:, None, :, None] * t / scale, -1, 1)
    value = 3 * rho * np.sqrt(1 - rho**2) + (np.pi - np.arccos(rho)) * (1 + 2 * rho**2)
    return np.asarray(np.einsum("piqj,piqj->pq", scale**2 * value / (2 * np.pi), t))


CLOSED = {"erf": erf_block, "relu2": relu2_block}


@njit(cache=True, nogil=True, fastmath=True)
def add_series(
    t: Any, c: Any, first: Any, second: Any, mean: Any, mean2: Any, series: Any, series2: Any, square: Any, K: Any
) -> None:
    """Fill K with sum_ij sum_k c_k(i) c_k(j) rho^k t_ij; exact where two scores are one."""
    rows, N, columns, N2 = t.shape
    terms = min(series.shape[1], series2.shape[1])
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
                for k in range(terms):
                    weight = series[p, k, i]
                    for j in range(N2):
                        value[j] += weight * series2[q, k, j] * power[j]
                        power[j] *= rho[j]
                    reach *= largest
                    if reach < 1e-16:
                        break
                for j in range(N2):
                    if rho[j] > 1 - 1e-13 and mean[p, i] == mean2[q, j]:
                        value[j] = square[p, i]
                    total += value[j] * t[p, i, q, j]
            K[p, q] = total
