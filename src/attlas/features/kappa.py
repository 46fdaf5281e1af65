"""E[act(s) act(s')] for jointly normal scores: the scalar functions behind the infinite-head kernels, compiled.

s = a + z, s' = b + z' with standard normal z, z' of correlation rho. Scores of other variances are scaled to these first.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

TERMS = 48  # of the Hermite series, used up to `SERIES`; beyond it the quadrature takes over
SERIES = 0.6

_SQRT_HALF, _ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)


def _arc_cosine_polynomial(degree: int = 12) -> NDArray[np.float64]:
    """Return the coefficients of R, kappa(rho) = rho/2 + (1 - rho)^(3/2) R(rho) for rho in [0, 1], the highest power first.

    From kappa'' = 1/(2 pi sqrt(1 - rho^2)), R = (1/pi) int_0^1 (1 - x^2)/sqrt(2 - (1 - rho) x^2) dx, which is analytic
    around [0, 1]: interpolated at Chebyshev nodes it is right to rounding.
    """
    x, weights = np.polynomial.legendre.leggauss(40)
    x = (x + 1) / 2

    def R(rho: NDArray[np.float64]) -> NDArray[np.float64]:
        values = (1 - x**2) / np.sqrt(2 - (1 - rho[:, None]) * x**2)
        return np.asarray(values @ weights / (2 * np.pi))

    fitted = np.polynomial.Chebyshev.interpolate(R, degree, domain=[0, 1])
    return np.ascontiguousarray(
        fitted.convert(kind=np.polynomial.Polynomial, domain=[-1, 1], window=[-1, 1]).coef[::-1]
    )


_R = _arc_cosine_polynomial()
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


_R0, _R1, _R2, _R3, _R4, _R5, _R6, _R7, _R8, _R9, _R10, _R11, _R12 = (float(value) for value in _R)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def arc_cosine(rho: float) -> float:
    """Return E[relu(z) relu(z')] = (sqrt(1 - rho^2) + rho (pi - arccos rho))/(2 pi).

    Without branches, so that loops over it run in vectors.
    """
    size = abs(rho)
    x = size if size < 1.0 else 1.0
    square = x * x  # pairs of terms do not wait for each other
    value = (_R0 * square + (_R1 * x + _R2)) * square + (_R3 * x + _R4)
    value = (value * square + (_R5 * x + _R6)) * square + (_R7 * x + _R8)
    value = (value * square + (_R9 * x + _R10)) * square + (_R11 * x + _R12)
    rest = 1.0 - x
    return value * rest * math.sqrt(rest) + 0.25 * (rho + size)


@njit(cache=True, nogil=True)
def biased_relu(a: float, b: float, rho: float) -> float:
    """Return E[relu(a + z) relu(b + z')] by Price's and Plackett's identities: one integral over asin(rho).

    h(a) h(b) + rho Phi(a) Phi(b) + (1/2 pi) int_0^asin(rho) (rho - sin t) exp(-(a^2 + b^2 - 2 a b sin t)/(2 cos^2 t)) dt,
    with h(a) = a Phi(a) + phi(a).
    """
    rho = min(max(rho, -1.0), 1.0)
    end = math.asin(rho)
    total = 0.0
    for k in range(len(_NODES)):
        # t = end (1 - x^2): the integrand has a square root at rho = 1, t = end
        x = 0.5 * (_NODES[k] + 1)
        t = end * (1 - x * x)
        sine = math.sin(t)
        cosine = math.cos(t)
        square = max(cosine * cosine, 1e-300)
        total += _WEIGHTS[k] * x * (rho - sine) * math.exp(-max(a * a + b * b - 2 * a * b * sine, 0.0) / (2 * square))
    return mean_relu(a) * mean_relu(b) + rho * normal_cdf(a) * normal_cdf(b) + total * end / (2 * math.pi)


@njit(cache=True, nogil=True)
def same_relu(a: float) -> float:
    """Return E[relu(a + z)^2] = (1 + a^2) Phi(a) + a phi(a): the exact diagonal."""
    return (1 + a * a) * normal_cdf(a) + a * math.exp(-0.5 * a * a) / _ROOT_TWO_PI


@njit(cache=True, nogil=True)
def mean_relu(a: float) -> float:
    """Return E[relu(a + z)] = a Phi(a) + phi(a)."""
    return a * normal_cdf(a) + math.exp(-0.5 * a * a) / _ROOT_TWO_PI


@njit(cache=True, nogil=True)
def normal_cdf(a: float) -> float:
    """Return Phi(a)."""
    return 0.5 * math.erfc(-a * _SQRT_HALF)


@njit(cache=True, nogil=True)
def hermite_coefficients(a: Any, out: Any) -> None:
    """Fill out[n, k, i] with c_k(a_ni): E[relu(a + z) relu(b + z')] = sum_k c_k(a) c_k(b) rho^k.

    c_0 = h, c_1 = Phi, c_k = (-1)^k He_{k-2}(a) phi(a)/sqrt(k!); with u_k = He_k/sqrt(k!) the recursion stays in range.
    """
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            at = a[n, i]
            density = math.exp(-0.5 * at * at) / _ROOT_TWO_PI
            out[n, 0, i] = mean_relu(at)
            out[n, 1, i] = normal_cdf(at)
            before, now = 0.0, 1.0
            for k in range(2, out.shape[1]):
                sign = 1.0 if k % 2 == 0 else -1.0
                out[n, k, i] = sign * now * density / math.sqrt(k * (k - 1.0))
                order = k - 2
                before, now = now, (at * now - math.sqrt(float(order)) * before) / math.sqrt(order + 1.0)
