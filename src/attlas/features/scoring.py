"""Scoring functions: what turns a score into a weight, one score at a time, and their Hermite coefficients.

A pointwise function enters the kernels and their spectra only through

    c_k(a, s) = E[act(a + s z) He_k(z)]/sqrt(k!),    E[act(a + s z) act(b + s z')] = sum_k c_k(a, s) c_k(b, s) rho^k,

z and z' standard normal with correlation rho.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import plain

Array = NDArray[np.float64]

_ROOT_TWO_PI = np.sqrt(2 * np.pi)


class Scoring(Protocol):
    """A scoring function and its Gaussian moments."""

    @property
    def name(self) -> str:
        """What it is called."""

    def __call__(self, scores: Array) -> Array:
        """Return the weights of scores, entry by entry."""

    def coefficients(self, mean: ArrayLike, deviation: ArrayLike, terms: int) -> Array:
        """Return c_k(mean, deviation), of shape (terms, *mean.shape)."""

    def square(self, mean: ArrayLike, deviation: ArrayLike) -> Array:
        """Return E[act(mean + deviation z)^2]."""


def scoring_of(given: Any, name: str = "scoring") -> Scoring:
    """Return the scoring function that a user means: a name, a function of an array of scores, or a `Scoring`.

    Raises
    ------
    InputError
        If there is no such name; softmax couples the keys and is no function of one score.
    """
    if isinstance(given, str) and given in SCORINGS:
        return SCORINGS[given]
    if callable(getattr(given, "coefficients", None)) and callable(getattr(given, "square", None)):
        return given
    if callable(given):
        return Pointwise(given, f"function {getattr(given, '__name__', 'of your own')}")
    softmax = isinstance(given, str) and given == "softmax"
    hint = "; softmax couples the keys, so it is no function of one score" if softmax else ""
    raise InputError(f"{name} must be one of {', '.join(SCORINGS)}, or a function of the scores; got {given!r}{hint}")


@dataclass(frozen=True)
class Relu:
    """max(s, 0)^power, power 1 or 2: c_0 and c_1 from the normal law, the others by c_k(f) = s c_(k-1)(f')/sqrt(k)."""

    power: int = 1

    @property
    def name(self) -> str:
        """Relu, or relu2 for its square."""
        return "relu" if self.power == 1 else "relu2"

    def __call__(self, scores: Array) -> Array:
        """Return the weights."""
        positive = np.maximum(scores, 0)
        return positive if self.power == 1 else positive * positive

    def coefficients(self, mean: ArrayLike, deviation: ArrayLike, terms: int) -> Array:
        """Return c_k(mean, deviation)."""
        a, s = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(deviation, dtype=float))
        found = s * _relu_coefficients(a / s, terms)
        if self.power == 1:
            return np.asarray(found)
        squared = np.empty_like(found)
        squared[0] = _relu_square(a / s) * s**2
        k = np.arange(1, terms).reshape(-1, *[1] * a.ndim)
        squared[1:] = 2 * s * found[:-1] / np.sqrt(k)
        return squared

    def square(self, mean: ArrayLike, deviation: ArrayLike) -> Array:
        """Return E[relu^2], or E[relu^4]."""
        s = np.asarray(deviation, dtype=float)
        a = np.asarray(mean, dtype=float) / s
        if self.power == 1:
            return np.asarray(s**2 * _relu_square(a))
        return np.asarray(s**4 * ((a**4 + 6 * a**2 + 3) * _cdf(a) + (a**3 + 5 * a) * _density(a)))


@dataclass(frozen=True)
class Exponential:
    """exp(s): c_k = exp(a + s^2/2) s^k/sqrt(k!)."""

    name: str = "exp"

    def __call__(self, scores: Array) -> Array:
        """Return the weights."""
        return np.asarray(np.exp(scores))

    def coefficients(self, mean: ArrayLike, deviation: ArrayLike, terms: int) -> Array:
        """Return c_k(mean, deviation)."""
        from scipy.special import gammaln

        a, s = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(deviation, dtype=float))
        k = np.arange(terms).reshape(-1, *[1] * a.ndim)
        return np.asarray(np.exp(a + s**2 / 2 + k * np.log(s) - gammaln(k + 1) / 2))

    def square(self, mean: ArrayLike, deviation: ArrayLike) -> Array:
        """Return exp(2 a + 2 s^2)."""
        return np.asarray(np.exp(2 * np.asarray(mean, dtype=float) + 2 * np.asarray(deviation, dtype=float) ** 2))


@dataclass(frozen=True)
class Pointwise:
    """Any function of one score, by quadrature: to rounding if it is smooth between multiples of a quarter."""

    function: Callable[[Array], Any]
    name: str

    def __call__(self, scores: Array) -> Array:
        """Return the weights."""
        try:
            found = plain(self.function(scores), f"what scoring {self.name!r} returns", "one number for each score")
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"scoring {self.name!r} fails on an array of scores: {error}") from error
        if found.shape != np.shape(scores) or found.dtype.kind not in "fiub":
            raise InputError(
                f"scoring {self.name!r} must return one real number for each score; got shape {found.shape} of"
                f" {found.dtype} for scores of shape {np.shape(scores)}"
            )
        return found if found.dtype.kind == "f" else found.astype(float)

    def coefficients(self, mean: ArrayLike, deviation: ArrayLike, terms: int) -> Array:
        """Return c_k(mean, deviation)."""
        a, s = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(deviation, dtype=float))
        flat = np.empty((terms, a.size))
        for part in _parts(a.size):
            nodes, weights = _panels()
            values = self._values(a.reshape(-1)[part], s.reshape(-1)[part], nodes)
            flat[:, part] = (weights * _hermite(nodes, terms)) @ values.T
        return flat.reshape(terms, *a.shape)

    def square(self, mean: ArrayLike, deviation: ArrayLike) -> Array:
        """Return E[act^2]."""
        a, s = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(deviation, dtype=float))
        flat = np.empty(a.size)
        for part in _parts(a.size):
            nodes, weights = _panels()
            flat[part] = self._values(a.reshape(-1)[part], s.reshape(-1)[part], nodes) ** 2 @ weights
        return flat.reshape(a.shape)

    def _values(self, mean: Array, deviation: Array, nodes: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = self(mean[:, None] + deviation[:, None] * nodes)
        if not np.isfinite(values).all():
            raise InputError(f"scoring {self.name!r} is not finite on scores within 13 standard deviations")
        return values


def _sigmoid(scores: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(scores))


def _erf(scores: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(scores))


SCORINGS: dict[str, Scoring] = {
    "relu": Relu(),
    "exp": Exponential(),
    "sigmoid": Pointwise(_sigmoid, "sigmoid"),
    "erf": Pointwise(_erf, "erf"),
    "tanh": Pointwise(np.tanh, "tanh"),
    "relu2": Relu(2),
}


def _relu_coefficients(a: Array, terms: int) -> Array:
    """Return c_0 = a Phi + phi, c_1 = Phi, c_k = (-1)^k He_(k-2)(a) phi(a)/sqrt(k!)."""
    found = np.empty((terms, *a.shape))
    density = _density(a)
    found[0] = a * _cdf(a) + density
    if terms > 1:
        found[1] = _cdf(a)
    before, now = np.zeros_like(a), np.ones_like(a)
    for k in range(2, terms):
        found[k] = (-1) ** k * now * density / np.sqrt(k * (k - 1.0))
        before, now = now, (a * now - np.sqrt(k - 2.0) * before) / np.sqrt(k - 1.0)
    return found


def _relu_square(a: Array) -> Array:
    return np.asarray((1 + a * a) * _cdf(a) + a * _density(a))


def _density(a: Array) -> Array:
    return np.asarray(np.exp(-0.5 * a * a) / _ROOT_TWO_PI)


def _cdf(a: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(a))


@cache
def _panels() -> tuple[Array, Array]:
    """Return nodes and weights of E[f(z)]: 16 Gauss-Legendre nodes on panels within 13 deviations."""
    x, w = np.polynomial.legendre.leggauss(16)
    width = 0.25
    starts = np.arange(-13.0, 13.0, width)
    nodes = (starts[:, None] + width * (x + 1) / 2).ravel()
    weights = np.tile(width * w / 2, len(starts)) * np.exp(-(nodes**2) / 2) / _ROOT_TWO_PI
    return nodes, weights


def _hermite(z: Array, terms: int) -> Array:
    """Return He_k(z)/sqrt(k!), (terms, nodes)."""
    found = np.empty((terms, len(z)))
    found[0] = 1
    if terms > 1:
        found[1] = z
    for k in range(2, terms):
        found[k] = (z * found[k - 1] - np.sqrt(k - 1.0) * found[k - 2]) / np.sqrt(k)
    return found


def _parts(size: int, step: int = 512) -> list[slice]:
    return [slice(start, start + step) for start in range(0, size, step)]
