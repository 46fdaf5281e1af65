"""Preconditioned L-BFGS for a convex loss of linear scores."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.ridge import factor, solve
from attlas.numerics import Solution, Status

Array = NDArray[Any]
Loss = Callable[[Array], tuple[float, Array]]  # scores (n, outputs) to the sum of w loss, and its gradient
Curvature = Callable[[Array], Array]  # scores to a bound on w times the second derivatives of the loss, (n,)

RENEWED = (20, 60, 180, 540)  # steps after which the preconditioner is made anew, from the curvature that is met there
FLAT = 1e-6  # of the largest curvature: no sample counts for less
MEMORY = 20  # pairs of steps and gradients
LEAST = 1e-10  # step in a line search
ROUNDING = 1e-14  # of the objective, relative: below it a step is not judged by its decrease


@dataclass(frozen=True)
class Objective:
    """sum_n w_n loss_n(Phi v + b) + penalty/2 |v|^2, in points x (p + 1, outputs) whose last row is b.

    Attributes
    ----------
    rows : iterable
        Blocks of Phi (m, p) and which samples they are, gone through twice a step.
    gram : array of shape (p, p)
        Phi^T W Phi.
    loss : callable
    near : callable
        The curvature at given scores.
    curvature : float
        A bound c on the second derivatives of a loss.
    weight : float
        sum_n w_n.
    penalty : float
    intercept : bool
        Learn b, which is not penalised.
    """

    rows: Iterable[tuple[Array, slice]]
    gram: Array
    loss: Loss
    near: Curvature
    curvature: float
    weight: float
    penalty: float
    intercept: bool

    def scores(self, x: Array) -> Array:
        """Return Phi v + b."""
        return scores_of(self.rows, x)

    def gradient(self, x: Array, slopes: Array) -> Array:
        """Return the gradient, given that of the loss by scores."""
        g = self.penalty * x
        g[:-1] += np.sum([Phi.T @ slopes[part] for Phi, part in self.rows], axis=0)
        g[-1] = slopes.sum(0) * self.intercept
        return g

    def preconditioner(self) -> Callable[[Array], Array]:
        """Return the step of majorisation, (c Phi^T W Phi + penalty)^-1 for v: a ridge fit, factorised once."""
        return self._step(self.curvature * self.gram, self.curvature * self.weight)

    def preconditioner_at(self, z: Array) -> Callable[[Array], Array]:
        """Return the same with the curvature at scores z, which is far less where probabilities are near 0 and 1."""
        w = np.maximum(self.near(z), FLAT * self.curvature * self.weight / len(z))
        return self._step(weighted_gram(self.rows, w), float(w.sum()))

    def _step(self, curvature: Array, of_intercept: float) -> Callable[[Array], Array]:
        L = factor(curvature, self.penalty)
        return lambda g: np.concatenate([solve(L, g[:-1]), g[-1:] / of_intercept])


def scores_of(rows: Iterable[tuple[Array, slice]], x: Array) -> Array:
    """Return Phi v + b of all samples at a point x = (v, b)."""
    return np.concatenate([Phi @ x[:-1] for Phi, _ in rows]) + x[-1]


def weighted_gram(rows: Iterable[tuple[Array, slice]], w: Array) -> Array:
    """Return Phi^T W Phi."""
    return np.sum([Phi.T @ (Phi * w[part, None].astype(Phi.dtype)) for Phi, part in rows], axis=0, dtype=float)


class _Pair(NamedTuple):
    step: Array
    change: Array
    product: float


def descend(objective: Objective, start: Array, *, tol: float, max_steps: int) -> Solution[Array]:
    """Minimise an objective.

    Parameters
    ----------
    objective : Objective
    start : array of shape (p + 1, outputs)
    tol : float
        On sqrt(<g, P g>/sum w), g the gradient and P the step of majorisation: the square is twice the decrease that this
        step promises, per sample.
    max_steps : int

    References
    ----------
    liu1989limited for L-BFGS, bohning1988monotonicity for the majorisation.
    """
    precondition, pairs = objective.preconditioner(), list[_Pair]()
    x, z = start, objective.scores(start)
    value, slopes = objective.loss(z)
    g, history = objective.gradient(x, slopes), list[float]()

    def ended(status: Status) -> Solution[Array]:
        return Solution(x, status, history[-1], len(history) - 1, np.array(history))

    while True:
        ahead = precondition(g)
        history.append(float(np.sqrt(np.vdot(g, ahead) / objective.weight)))
        if not np.isfinite(history[-1]):
            return ended(Status.DIVERGED)
        if history[-1] <= tol:
            return ended(Status.CONVERGED)
        if len(history) > max_steps:
            return ended(Status.OUT_OF_STEPS)
        d = -_two_loops(g, pairs, precondition) if pairs else -ahead
        dz, expected = objective.scores(d), float(np.vdot(g, d))
        along, across = float(np.vdot(x[:-1], d[:-1])), float(np.vdot(d[:-1], d[:-1]))
        t, before = 1.0, value
        while True:
            value, slopes = objective.loss(z + t * dz)
            change = value - before + objective.penalty * (t * along + t * t * across / 2)
            if change <= 1e-4 * t * expected or abs(change) <= ROUNDING * abs(before):
                break
            t /= 2
            if t < LEAST:  # what is left is rounding
                return ended(Status.CONVERGED if history[-1] <= 1e3 * tol else Status.INACCURATE)
        x, z, old = x + t * d, z + t * dz, g
        g = objective.gradient(x, slopes)
        product = t * float(np.vdot(d, g - old))
        if len(history) in RENEWED:
            with suppress(InputError):  # not positive definite to rounding: the one at hand serves as well
                precondition, pairs = objective.preconditioner_at(z), []
        elif product > 0:
            pairs = [*pairs, _Pair(t * d, g - old, product)][-MEMORY:]


def _two_loops(g: Array, pairs: list[_Pair], precondition: Callable[[Array], Array]) -> Array:
    """Return the inverse Hessian of L-BFGS times g, around the preconditioner."""
    q, shares = g.copy(), []
    for pair in reversed(pairs):
        shares.append(np.vdot(pair.step, q) / pair.product)
        q -= shares[-1] * pair.change
    # majorisation is too careful where probabilities are near 0 and 1: rescale it by the curvature that was met last
    last = pairs[-1]
    r = precondition(q) * (last.product / np.vdot(last.change, precondition(last.change)))
    for pair, share in zip(pairs, reversed(shares), strict=True):
        r += (share - np.vdot(pair.change, r) / pair.product) * pair.step
    return np.asarray(r)
