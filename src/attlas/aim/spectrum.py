"""The spectrum of R = S + sqrt(Delta) GOE, exactly, and the error F(Delta) of the best denoiser.

The Stieltjes transform g of R solves x = rho/(s - g) + Delta g + 1/g with s = sqrt(rho), the sum of the R-transforms of a
scaled Marchenko-Pastur law and a semicircle. On the support write g = u - i v (v = pi times the density) and f for the
posterior mean of an eigenvalue. That the imaginary part of x vanishes makes everything rational in f: with
p = |g|^2,

    1/p = Delta + f/s,   u = (rho (1 - s/f) + p) / (2 s),   v^2 = p - u^2,   x = f + 2 Delta u.

So integrals over the spectrum are taken in w = log(f/s), where the integrand is smooth but for square roots at the edges,
which w = mid - half cos(theta) removes: a few dozen Gauss-Legendre nodes give 13 digits for Delta from 1e-8 to 1e8.

References
----------
boncoraglio2025bayes, and maillard2024quadratic for the denoising problem; the parametrisation by f is derived here.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import HUGEST, numbers

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(56)
SMALLEST_WIDTH = 1e-6
_FAR = 1e8
_THETA, _DTHETA = np.pi * (_NODES + 1) / 2, np.pi / 2 * _WEIGHTS


class Spectrum(NamedTuple):
    """Quadrature over the spectrum: ``sum(weight * phi(x))`` is the integral of phi against the density.

    Attributes
    ----------
    x : array
        Eigenvalues of R.
    f : array
        Posterior mean of the corresponding eigenvalue of S.
    hilbert, density : array
        Real part of g, and minus its imaginary part over pi.
    weight : array
        Sums to one.
    log_f : array
        log(f / sqrt(rho)), exact also where f is close to sqrt(rho).
    """

    x: Array
    f: Array
    hilbert: Array
    density: Array
    weight: Array
    log_f: Array


def mmse(delta: ArrayLike, rho: ArrayLike) -> Array:
    """Return F(Delta), the smallest error ||S - S_hat||^2 / d of denoising R = S + sqrt(Delta) GOE.

    F = 1 - int rho_R (f - sqrt(rho))^2 = Delta - (4 pi^2 / 3) Delta^2 int rho_R^3; the first for Delta >= 1 and the
    second below, where each is free of cancellation. F rises from 0 to 1, the error of the prior mean.

    Parameters
    ----------
    delta : array_like
        Noise, positive; checked from 1e-12 to 1e12.
    rho : array_like
        Width, at least 1e-6; below it the spikes of S lie where float64 does not resolve them. The shapes are broadcast.

    Returns
    -------
    array
        In [0, 1]; right to 1e-12 in absolute terms. Relative to F the error is 1e-8 at rho = 1e-4, Delta = 1e-6, and 5e-4
        in the corner rho = 1e-6, Delta = 1e-8.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.mmse([1e-3, 0.1, 10.0], rho=0.5).round(4).tolist()  # 0 without noise, 1 at infinite noise
    [0.0007, 0.0665, 0.8939]
    """
    delta, rho = _checked(delta, rho)
    far = delta > _FAR * np.maximum(1.0, 1 / rho)
    nodes = spectrum(np.minimum(delta, _FAR * np.maximum(1.0, 1 / rho)), rho)
    least = np.minimum(delta, 1.0)
    small = least * (1 - 4 * np.pi**2 / 3 * least * np.sum(nodes.weight * nodes.density**2, axis=-1))
    large = 1 - rho * np.sum(nodes.weight * np.expm1(nodes.log_f) ** 2, axis=-1)
    # far out only the variance of S counts: F = Delta / (1 + Delta) up to terms of order Delta^-2
    return np.clip(np.where(far, delta / (1 + delta), np.where(delta < 1, small, large)), 0, 1)


def spectrum(delta: ArrayLike, rho: ArrayLike) -> Spectrum:
    """Return quadrature nodes over the spectrum of R, along a last axis."""
    delta, rho = _checked(delta, rho)
    return quadrature(delta, rho, *panels(delta, rho))


def quadrature(delta: Array, rho: Array, low: Array, high: Array) -> Spectrum:
    """Return nodes over panels of the spectrum, which end at these w = log(f/s), along a last axis of both."""
    delta, rho = delta[..., None, None], rho[..., None, None]
    mid, half = (low + high)[..., None] / 2, (high - low)[..., None] / 2
    w = mid - half * np.cos(_THETA)
    s, ratio = np.sqrt(rho), np.exp(w)
    p = 1 / (delta + ratio)
    u = (p - rho * np.expm1(-w)) / (2 * s)
    density = np.sqrt(np.maximum(p - u * u, 0)) / np.pi
    x, slope = eigenvalue(w, delta, rho)
    flat = (*w.shape[:-2], -1)
    parts = (x, s * ratio, u, density, density * slope * half * np.sin(_THETA) * _DTHETA, w)
    return Spectrum(*(part.reshape(flat) for part in parts))


def eigenvalue(w: Array, delta: Array, rho: Array) -> tuple[Array, Array]:
    """Return x = f + 2 Delta u of w = log(f/s), and dx/dw, which is positive on the support.

    As a function of f it is x = f + Delta s - Delta rho/f + Delta/(f + s Delta).
    """
    s, ratio = np.sqrt(rho), np.exp(w)
    p = 1 / (delta + ratio)
    x = s * ratio + delta / s * (p - rho * np.expm1(-w))
    return x, s * ratio + delta / s * (rho / ratio - p * p * ratio)


def edges(delta: float, rho: float) -> Array:
    """Return the edges of the spectrum of R in ascending order: two for one bulk, four for two.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.edges(delta=0.01, rho=0.5).round(3).tolist()  # two bulks at little noise: of noise alone, and of the signal
    [-0.147, 0.132, 0.147, 4.125]
    >>> len(aim.edges(delta=1.0, rho=0.5))
    2
    """
    delta_, rho_ = _checked(delta, rho)
    if delta_.ndim:
        raise InputError("edges are of one spectrum; give numbers for delta and rho")
    return eigenvalue(edge_logarithms(float(delta_), float(rho_)), delta_, rho_)[0]


@lru_cache(maxsize=16)
def edge_logarithms(delta: float, rho: float) -> Array:
    """Return w = log(f/s) at the edges, ascending; a step of message passing asks for them more than once."""
    w, real = _edge_parameters(np.array(delta), np.array(rho))
    found = np.sort(w[real].real)
    found.flags.writeable = False
    return found


def stieltjes(x: ArrayLike, delta: float, rho: float) -> NDArray[np.complex128]:
    """Return g(x) = int rho_R(t) / (x - t) dt, with the imaginary part -pi rho_R(x) on the support.

    m = 1/g solves s m^3 - (x s - rho + 1) m^2 + (x + Delta s) m - Delta = 0, whose leading coefficient is never small;
    no imaginary offset is needed. On the support the root with Im g < 0 is taken, off it the real root with dx/dg < 0.

    Examples
    --------
    >>> from attlas import aim
    >>> g = aim.stieltjes([1.0, 100.0], delta=0.5, rho=0.5)
    >>> bool(g[0].imag < 0), float(g[1].real.round(4))  # inside the support; far outside it, about 1/x
    (True, 0.0101)
    """
    delta_, rho_ = _checked(delta, rho)
    if delta_.ndim:
        raise InputError("the transform is of one spectrum; give numbers for delta and rho")
    x, s = numbers(x, "x"), np.sqrt(rho_)
    if np.abs(x).max() > HUGEST or max(delta_.max(), rho_.max()) > HUGEST:
        raise InputError(f"x must be at most {HUGEST:g} in size; no eigenvalue is there")
    companion = np.zeros((*x.shape, 3, 3))
    companion[..., 0, 0] = (x * s - rho_ + 1) / s
    companion[..., 0, 1] = -(x + delta_ * s) / s
    companion[..., 0, 2] = delta_ / s
    companion[..., 1, 0] = companion[..., 2, 1] = 1
    m = np.linalg.eigvals(companion).astype(complex)
    for _ in range(2):  # polish
        value = ((s * m - (x * s - rho_ + 1)[..., None]) * m + (x + delta_ * s)[..., None]) * m - delta_
        slope = (3 * s * m - 2 * (x * s - rho_ + 1)[..., None]) * m + (x + delta_ * s)[..., None]
        with np.errstate(all="ignore"):
            step = value / slope
        m -= np.where(np.isfinite(step) & (np.abs(step) < 1e-3 * np.abs(m)), step, 0)
    with np.errstate(all="ignore"):
        g = 1 / m
        falling = (rho_ / (s - g) ** 2 + delta_ - 1 / g**2).real
    bounds = edges(float(delta_), float(rho_))
    inside = (np.searchsorted(bounds, x) % 2 == 1)[..., None]
    score = np.where(inside, g.imag, np.where(np.abs(g.imag) > 1e-6 * np.abs(g), np.inf, falling))
    chosen = np.take_along_axis(g, np.argmin(score, axis=-1)[..., None], axis=-1)[..., 0]
    return np.where(inside[..., 0], chosen, chosen.real)


def density(x: ArrayLike, delta: float, rho: float) -> Array:
    """Return the density of the eigenvalues of R at x.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.density([0.0, 2.0, 10.0], delta=0.5, rho=0.5).round(4).tolist()
    [0.3664, 0.1294, 0.0]
    """
    return np.maximum(-stieltjes(x, delta, rho).imag / np.pi, 0)


def panels(delta: Array, rho: Array) -> tuple[Array, Array]:
    """Return the ends in w of two panels that cover the support: its two bulks, or one bulk cut where a gap is near."""
    w, real = _edge_parameters(delta, rho)
    ordered = np.sort(np.where(real, w.real, np.inf), axis=-1)
    low, high = ordered[..., 0], np.where(real, w.real, -np.inf).max(axis=-1)
    near = np.where(real, -np.inf, w.real).max(axis=-1)
    close = np.where(real, np.inf, np.abs(w.imag)).min(axis=-1) < 1
    split = np.where(close & (near > low) & (near < high), near, (low + high) / 2)
    two = real.sum(axis=-1) == 4
    return (
        np.stack([low, np.where(two, ordered[..., 2], split)], axis=-1),
        np.stack([np.where(two, ordered[..., 1], split), high], axis=-1),
    )


def _edge_parameters(delta: Array, rho: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return w = log(f/s) at the four roots of dx/dg = 0, and which of them are edges.

    With z = g sqrt(Delta) and k = sqrt(rho Delta) the roots solve z^4 - 2 k z^3 + (k^2 + rho - 1) z^2 + 2 k z - k^2 = 0.
    """
    k = np.sqrt(rho * delta)
    companion = np.zeros((*k.shape, 4, 4))
    companion[..., 0, 0] = 2 * k
    companion[..., 0, 1] = 1 - rho - k * k
    companion[..., 0, 2] = -2 * k
    companion[..., 0, 3] = k * k
    for i in range(3):
        companion[..., i + 1, i] = 1
    z = np.linalg.eigvals(companion).astype(complex)
    real = (np.abs(z.imag) <= 1e-9 * np.abs(z)) & (np.abs(z.real) < 1)
    w = np.log(delta[..., None] * (1 - z * z) / (z * z))
    polished = _polish(np.where(real, w.real, 0.0), np.sign(z.real), delta[..., None], rho[..., None])
    return np.where(real, polished, w), real


def _polish(w: Array, sign: Array, delta: Array, rho: Array) -> Array:
    """Solve u = sign sqrt(p) for w, by Newton's method from a value that is nearly right."""
    s = np.sqrt(rho)
    for _ in range(5):
        ratio = np.exp(w)
        p = 1 / (delta + ratio)
        value = (p - rho * np.expm1(-w)) / (2 * s) - sign * np.sqrt(p)
        slope = (rho / ratio - p * p * ratio) / (2 * s) + sign * 0.5 * p**1.5 * ratio
        w = w - np.clip(value / np.where(slope == 0, 1, slope), -0.5, 0.5)
    return w


def _checked(delta: ArrayLike, rho: ArrayLike) -> tuple[Array, Array]:
    noise, width = numbers(delta, "delta", above=0), numbers(rho, "rho", above=0)
    if width.min() < SMALLEST_WIDTH:
        raise InputError(
            f"rho must be at least {SMALLEST_WIDTH:g}; got {width.min():g}. Its limit as rho -> 0 is in docs/aim.md"
        )
    try:
        noise, width = np.broadcast_arrays(noise, width)
    except ValueError as error:
        raise InputError(f"delta of shape {noise.shape} and rho of shape {width.shape} do not combine") from error
    return noise, width
