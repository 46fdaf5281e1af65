"""The laws of tasks that the theory knows: isotropic N(0, I), or N(0, C) by its eigenvalues."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import HUGEST, array, plain

Array = NDArray[np.float64]


class Law(Protocol):
    """What the theory asks of a law of tasks: eigenvalues c of training, t of test tasks, their mean, and s(nu)."""

    @property
    def c(self) -> Any:
        """Eigenvalues of the covariance of training tasks."""

    @property
    def t(self) -> Any:
        """Variances of test tasks along their eigenvectors."""

    def mean(self, values: Any) -> float:
        """Return <values>, the mean over eigenvalues."""

    def s(self, nu: float, kappa: float) -> float:
        """Return the root s in (0, 1] of s (1 + <c/(s c + nu)>/kappa) = 1."""

    def ridgeless(self, q: float, kappa: float, tau: float) -> float | None:
        """Return the effective ridge without ridge, tau < 1, where it is known in closed form."""


@dataclass(frozen=True)
class Isotropic:
    """C = I for training and test tasks: s is the root of a quadratic."""

    c: float = 1.0
    t: float = 1.0

    def mean(self, values: float) -> float:
        """Return the value itself: all eigenvalues are one."""
        return values

    def s(self, nu: float, kappa: float) -> float:
        """Return the positive root of s^2 + (nu + 1/kappa - 1) s = nu, in the form that does not cancel."""
        return positive_root(nu + 1 / kappa - 1, nu)

    def ridgeless(self, q: float, kappa: float, tau: float) -> float:
        """Return xi = (1 - tau)(s + q)/tau, where s^2 + (q + tau/kappa - 1) s = q."""
        return (1 - tau) * (positive_root(q + tau / kappa - 1, q) + q) / tau


@dataclass(frozen=True)
class Structured:
    """Training tasks N(0, C), test tasks of another covariance: its diagonal t in the eigenbasis of C is all that counts."""

    c: Array
    t: Array

    def mean(self, values: Array) -> float:
        """Return the mean over eigenvalues."""
        return float(np.mean(values))

    def s(self, nu: float, kappa: float) -> float:
        """Return the root by Newton's method: s (1 + g(s)/kappa) - 1 rises and is concave, so it climbs from the left."""
        if kappa == inf:
            return 1.0
        c = self.c
        s = max(1 / (1 + self.mean(c) / (nu * kappa)), 1 - 1 / kappa)
        for _ in range(100):
            F = 1 / (s * c + nu)
            value = s * (1 + self.mean(c * F) / kappa) - 1
            step = value / (1 + nu * self.mean(c * F * F) / kappa)
            s -= step
            if abs(step) <= 4e-16 * s:
                break
        return s

    def ridgeless(self, q: float, kappa: float, tau: float) -> None:
        """Return nothing: there is no closed form."""


def law(spectrum: ArrayLike | None, test_spectrum: ArrayLike | None) -> Law:
    """Return the law of training and test tasks; without `test_spectrum` both are the same, without any both isotropic."""
    given = spectrum if test_spectrum is None else test_spectrum
    if given is None:
        return Isotropic()
    t = eigenvalues(given, "spectrum" if test_spectrum is None else "test_spectrum")
    c = np.ones_like(t) if spectrum is None else eigenvalues(spectrum, "spectrum")
    if len(c) != len(t):
        raise InputError(
            f"spectrum and test_spectrum must have the same length, one entry per direction; got {len(c)} and {len(t)}"
        )
    return Structured(c, t)


def eigenvalues(values: ArrayLike, name: str, d: int | None = None) -> Array:
    """Return eigenvalues of a covariance: none negative, some positive; `d` of them if given."""
    if plain(values, name, "numbers, the eigenvalues of a covariance").dtype.kind == "b":
        raise InputError(f"{name} must be numbers, the eigenvalues of a covariance; got truth values")
    found = array(values, name, ("d",), (d,)).astype(np.float64)
    if found.min() < 0:
        raise InputError(f"{name} must have no negative entries, as eigenvalues of a covariance; got {found.min():g}")
    if found.max() > HUGEST:
        raise InputError(
            f"{name} must have entries of at most {HUGEST:g}, whose powers are numbers; got {found.max():g}"
        )
    if found.max() == 0:
        raise InputError(f"{name} must have a positive entry: tasks that are all zero leave nothing to learn")
    return found


def positive_root(b: float, c: float) -> float:
    """Return the positive root of x^2 + b x = c, c > 0, without cancellation."""
    root = sqrt(b * b + 4 * c)
    return 2 * c / (b + root) if b > 0 else (root - b) / 2
