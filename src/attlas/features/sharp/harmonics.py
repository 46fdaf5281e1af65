"""Spherical harmonics of S^(d-1): how many there are, their Legendre polynomials, and moments against them.

P_a is the Legendre polynomial of degree a with P_a(1) = 1; t = <x, x'> of two independent uniform points.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def harmonics(a: ArrayLike, d: int) -> Array:
    """Return N_a = (2a + d - 2) (a + d - 3)!/(a! (d - 2)!), the number of harmonics of degree a."""
    from scipy.special import gammaln

    a = np.asarray(a, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (2 * a + d - 2) * np.exp(gammaln(a + d - 2) - gammaln(a + 1) - gammaln(d - 1))
    counted = np.where(a == 0, 1.0, found)
    return np.asarray(np.where(counted < 1e15, np.round(counted), counted))


def half_moments(d: int, powers: int, degrees: int) -> Array:
    """Return m_ka = E[((1 + t)/2)^k P_a(t)], (powers, degrees), zero for k < a and positive otherwise.

    m_ka = k!/(k - a)! 2^(d-2) Gamma(k + h) Gamma(d/2)/(sqrt(pi) Gamma(k + a + 2h)),  h = (d - 1)/2.
    """
    from scipy.special import gammaln

    k, a = np.arange(powers, dtype=float)[:, None], np.arange(degrees, dtype=float)
    h = (d - 1) / 2
    safe = np.maximum(k - a, 0)
    logarithm = gammaln(k + 1) - gammaln(safe + 1) + gammaln(k + h) - gammaln(k + a + 2 * h)
    logarithm += (d - 2) * np.log(2) + gammaln(d / 2) - np.log(np.pi) / 2
    return np.asarray(np.where(k >= a, np.exp(logarithm), 0.0))


def power_moment(p: int, a: int, d: int) -> float:
    """Return E[t^p P_a(t)]: by parts, E_d[f P_a] = E_(d+2a)[f^(a)]/(d (d + 2) .. (d + 2a - 2))."""
    if p < a or (p - a) % 2:
        return 0.0
    value = 1.0
    for step in range(a):  # p!/(p - a)! over d (d + 2) ..
        value *= (p - step) / (d + 2 * step)
    for step in range((p - a) // 2):  # E[t^(2j)] = (2j - 1)!!/(D (D + 2) ..), D = d + 2a
        value *= (2 * step + 1) / (d + 2 * a + 2 * step)
    return value


def legendre(degrees: int, t: Array, d: int) -> Array:
    """Return P_a(t) for a < degrees, by (a + d - 2) P_(a+1) = (2a + d - 2) t P_a - a P_(a-1)."""
    found = np.ones((degrees, *t.shape))
    if degrees > 1:
        found[1] = t
    for a in range(1, degrees - 1):
        found[a + 1] = ((2 * a + d - 2) * t * found[a] - a * found[a - 1]) / (a + d - 2)
    return found


def sphere_nodes(count: int, d: int) -> tuple[Array, Array]:
    """Return nodes and weights of E[f(t)], right for polynomials of degree 2 count - 1 (Golub and Welsch)."""
    from scipy.linalg import eigh_tridiagonal

    a = np.arange(count - 1, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.sqrt((a + 1) * (a + d - 2) / ((2 * a + d) * (2 * a + d - 2)))
    nodes, vectors = eigh_tridiagonal(np.zeros(count), between)
    return np.asarray(nodes), np.asarray(vectors[0] ** 2)
