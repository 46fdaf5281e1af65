"""The best estimate of S from R = S + sqrt(Delta) GOE: the eigenvectors of R, with eigenvalues shrunk.

On the support the posterior mean f of an eigenvalue x of R is the inverse of the rational function

    x(f) = f + Delta s - Delta rho/f + Delta/(f + s Delta),   s = sqrt(rho).

At finite size some eigenvalues stray past an edge. There x - 2 Delta Re g, which equals f on the support, has an infinite
slope, and an iteration that uses it never settles. The inverse goes on smoothly: it belongs to the potential that one
eigenvalue feels, which is analytic. So f is that inverse on the whole line.

For rho < 1 and little noise there are two bulks, and between them x(f) may fold. The branch of the upper bulk is then
followed into the gap for as long as dx/df >= 0.85, because the smallest nonzero eigenvalues of S lie there, and a monotone
cubic joins it to the lower bulk.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.spectrum import edge_logarithms, eigenvalue
from attlas.inputs import array, numbers, real
from attlas.layers import symmetric

LOUDEST = 1e12  # noise, beyond which nothing of S is left in R

Array = NDArray[np.float64]

_STEEPEST = 0.85  # least dx/df in the gap: f rises by at most 1/0.85 of x
_STEPS = 100
_MOVED = 1e-12  # a last step of Newton's method by this much leaves rounding
_WIDENED = 1e-6  # of a bracket in log f, for its rounding


def shrink(eigenvalues: ArrayLike, delta: float, rho: float) -> Array:
    """Return f(x), the posterior mean of the eigenvalue of S that belongs to the eigenvalue x of R.

    The inverse of x(f) = f + Delta s - Delta rho/f + Delta/(f + s Delta), s = sqrt(rho), on the whole line: positive and
    increasing. On the support it equals x - 2 Delta h(x), h the Hilbert transform of the spectrum of R. In the gap between
    two bulks, where x(f) may fold, part of it is a cubic.

    Parameters
    ----------
    eigenvalues : array_like
        Of R.
    delta, rho : float
        Noise and width, positive.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.shrink([-0.5, 0.0, 3.0], delta=0.1, rho=0.5).round(3).tolist()
    [0.032, 0.054, 2.913]
    """
    x = numbers(eigenvalues, "eigenvalues")
    delta, rho = real(delta, "delta", above=0, below=LOUDEST), real(rho, "rho", above=0, below=LOUDEST)
    fold = _fold(delta, rho)
    if fold is None:
        return _inverse(x, delta, rho)
    (start, end), (low, high), slopes = fold
    f = _hermite(x, (low, high), np.sqrt(rho) * np.exp([start, end]), slopes)
    below, above = x <= low, x >= high
    f[below] = _inverse(x[below], delta, rho, most=start)
    f[above] = _inverse(x[above], delta, rho, least=end)
    return f


def denoise(R: ArrayLike, delta: float, rho: float) -> Array:
    """Return the rotation-invariant estimate of S from R, whose error is `mmse` (delta, rho) as d grows.

    Parameters
    ----------
    R : array of shape (d, d)
        Symmetric.
    delta, rho : float

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import aim
    >>> S, rng = aim.teacher(200, rho=0.5, seed=0), np.random.default_rng(1)
    >>> noise = rng.standard_normal((200, 200))
    >>> R = S + np.sqrt(0.5) * (noise + noise.T) / np.sqrt(2 * 200)
    >>> raw, best = (np.sum((one - S) ** 2) / 200 for one in (R, aim.denoise(R, delta=0.5, rho=0.5)))
    >>> [round(float(error), 2) for error in (raw, best, aim.mmse(0.5, rho=0.5))]  # of R, of the estimate, of theory
    [0.49, 0.25, 0.25]

    References
    ----------
    bun2016rotational for the estimator.
    """
    R = array(R, "R", ("d", "d"))
    values, vectors = np.linalg.eigh(symmetric(R, len(R), "R").astype(float, copy=False))
    shrunk = shrink(values, real(delta, "delta", above=0), real(rho, "rho", above=0))
    return np.asarray((vectors * shrunk) @ vectors.T)


def positive_root(b: Array, c: float) -> Array:
    """Return the positive f with f - c/f = b, without cancellation."""
    root = np.hypot(b, 2 * np.sqrt(c))
    f = np.where(b > 0, (b + root) / 2, 2 * c / (root - np.minimum(b, 0)))
    return np.asarray(np.maximum(f, np.finfo(float).tiny))


def _inverse(x: Array, delta: float, rho: float, least: float = -np.inf, most: float = np.inf) -> Array:
    """Return f where x(f) = x, with w = log(f/s) between `least` and `most`: Newton's method in w inside a bracket.

    The last term of x(f) lies between 0 and 1/s, and without it x(f) = x is a quadratic equation.
    """
    s = np.sqrt(rho)
    shifted = x - delta * s
    low = np.log(positive_root(shifted - 1 / s, delta * rho) / s) - _WIDENED
    high = np.log(positive_root(shifted, delta * rho) / s) + _WIDENED
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    w = (low + high) / 2
    for _ in range(_STEPS):
        value, slope = eigenvalue(w, np.asarray(delta), np.asarray(rho))
        high, low = np.where(value > x, w, high), np.where(value > x, low, w)
        with np.errstate(all="ignore"):
            new = w - (value - x) / slope
        new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
        moved, w = np.abs(new - w), new
        if np.all(moved <= _MOVED * np.maximum(1, np.abs(w))):
            break
    return np.asarray(s * np.exp(w))


def _fold(delta: float, rho: float) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]] | None:
    """Return w, x and df/dx at both ends of the part of the gap that is bridged; None where x(f) rises fast enough.

    dx/df < 0.85 between two roots of a quartic in f/s, or nowhere.
    """
    ends = edge_logarithms(delta, rho)
    if len(ends) < 4:
        return None
    c = (1 - _STEEPEST) * rho
    quartic = [c, 2 * c * delta, c * delta**2 - delta + delta * rho, 2 * delta**2 * rho, delta**3 * rho]
    roots = np.roots(quartic)
    flat = np.log(np.sort(roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0)]))
    lower, upper = float(ends[1]), float(ends[2])
    if len(flat) < 2 or flat[0] >= upper or flat[-1] <= lower:
        return None
    w = np.array([lower, min(float(flat[-1]), upper)])
    x, slope = eigenvalue(w, np.asarray(delta), np.asarray(rho))
    f = np.sqrt(rho) * np.exp(w)
    chord = (f[1] - f[0]) / (x[1] - x[0])
    df = np.minimum(f / slope, 3 * chord)
    return (w[0], w[1]), (x[0], x[1]), (df[0], df[1])


def _hermite(x: Array, ends: tuple[float, float], values: Array, slopes: tuple[float, float]) -> Array:
    """Return the cubic with these values and slopes at both ends; monotone if no slope exceeds three times the chord."""
    length = ends[1] - ends[0]
    t = np.clip((x - ends[0]) / length, 0, 1)
    first, last = (1 - t) ** 2, t * t
    ramps = length * t * (1 - t) * ((1 - t) * slopes[0] - t * slopes[1])
    return np.asarray(first * (1 + 2 * t) * values[0] + last * (3 - 2 * t) * values[1] + ramps)
