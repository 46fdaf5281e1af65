"""Integrals over the spectrum of R = S + sqrt(Delta) GOE with its eigenvalues shrunk by theta, f(x) = (x - theta)_+.

The quadrature of `spectrum` is cut at x = theta, where f has its kink, so that every integral keeps its digits.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.aim import spectrum
from attlas.aim.spectrum import mmse

Array = NDArray[np.float64]

_STEPS = 100  # for a root in theta, at most


class Integrals(NamedTuple):
    """What shrinking by theta gives, with f_B = x - 2 Delta h the Bayes estimate and h the Hilbert transform.

    Attributes
    ----------
    mse : array
        E = ||f(R) - S||^2/d = F(Delta) + int rho_R (f - f_B)^2.
    divergence : array
        D = 2 int rho_R f h.
    slope : array
        -dD/dtheta = 2 int_{x > theta} rho_R h.
    lean : array
        -(dE/dtheta)/2 = int_{x > theta} rho_R (2 Delta h - theta).
    rank, trace, overlap : array
        int_{x > theta} rho_R, int rho_R f and int rho_R f f_B.
    """

    mse: Array
    divergence: Array
    slope: Array
    lean: Array
    rank: Array
    trace: Array
    overlap: Array


class Shrunk:
    """The spectra of R at noises Delta, one element each, to be shrunk by any theta."""

    def __init__(self, delta: Array, rho: Array) -> None:
        self.delta, self.rho = delta, rho
        self.low, self.high = spectrum.panels(delta, rho)
        self.bottom_ends, self.top_ends = (
            spectrum.eigenvalue(w, delta[..., None], rho[..., None])[0] for w in (self.low, self.high)
        )
        self.top = self.top_ends.max(-1)
        self.bayes = mmse(delta, rho)

    def take(self, which: NDArray[np.bool_]) -> "Shrunk":
        """Return some of the elements."""
        part = object.__new__(Shrunk)
        part.__dict__.update({name: value[which] for name, value in self.__dict__.items()})
        return part

    def __call__(self, theta: Array) -> Integrals:
        """Return the integrals at these shifts."""
        cut, shift = self._cut(theta), theta[..., None]
        below = spectrum.quadrature(self.delta, self.rho, self.low, cut)
        above = spectrum.quadrature(self.delta, self.rho, cut, self.high)
        lean = 2 * self.delta[..., None] * above.hilbert - shift  # f - f_B, where f is not zero
        kept = above.weight * (above.x - shift)
        return Integrals(
            mse=self.bayes + (below.weight * below.f**2).sum(-1) + (above.weight * lean**2).sum(-1),
            divergence=2 * (kept * above.hilbert).sum(-1),
            slope=2 * (above.weight * above.hilbert).sum(-1),
            lean=(above.weight * lean).sum(-1),
            rank=above.weight.sum(-1),
            trace=kept.sum(-1),
            overlap=(kept * above.f).sum(-1),
        )

    def root(self, function: Callable[..., tuple[Array, Array]], high: Array, *args: Array) -> Array:
        """Return theta in [0, high] where function(shrunk, theta, *args) is zero, given with its slope.

        It has one zero, which it crosses from below, or none if it is positive at zero already: then theta = 0.
        """
        theta = np.zeros(len(high))
        todo = function(self, theta, *args)[0] < 0
        low, high = theta[todo], high[todo]
        here = high / 2
        places, part, rest = np.flatnonzero(todo), self.take(todo), [a[todo] for a in args]
        for _ in range(_STEPS):
            if not len(places):
                break
            value, slope = function(part, here, *rest)
            low, high = np.where(value < 0, here, low), np.where(value < 0, high, here)
            with np.errstate(all="ignore"):
                step = here - value / slope
            inside = (step > low) & (step < high)
            moved = np.where(inside, step, (low + high) / 2)
            # a step of Newton's leaves its square as the error, a halving leaves itself
            left = np.abs(moved - here) > np.where(inside, 1e-8, 1e-14) * moved
            theta[places] = moved
            places, part, rest = places[left], part.take(left), [a[left] for a in rest]
            low, high, here = low[left], high[left], moved[left]
        return theta

    def _cut(self, theta: Array) -> Array:
        """Return w at x = theta in each panel, or its nearer end: Newton's method, kept in a bracket."""
        delta, rho = self.delta[..., None], self.rho[..., None]
        low, high = self.low, self.high
        goal = np.clip(theta[..., None], self.bottom_ends, self.top_ends)
        w = low + (high - low) * (goal - self.bottom_ends) / np.maximum(self.top_ends - self.bottom_ends, 1e-300)
        for _ in range(60):
            x, slope = spectrum.eigenvalue(w, delta, rho)
            low, high = np.where(x < goal, w, low), np.where(x < goal, high, w)
            with np.errstate(all="ignore"):
                step = w - (x - goal) / slope
            moved = np.where((step >= low) & (step <= high), step, (low + high) / 2)
            far = np.abs(moved - w).max(initial=0.0)
            w = moved
            if far < 1e-9:  # the next step would be its square
                break
        return np.asarray(np.where(goal <= self.bottom_ends, self.low, np.where(goal >= self.top_ends, self.high, w)))
