"""The convex problem behind training with weight decay, solved to a certificate.

min over S >= 0 of (1/4) sum_mu ||e_mu||^2 + decay d Tr S: accelerated proximal gradient with restart. With the inner product
<a, b> = (1/2) sum a_ab b_ab over samples, r the residual -e, t the (centred) targets and B(r) the gradient sum of r, every
r' = s r with s B(r) <= decay d I gives the lower bound s <r, t> - s^2 <r, r>/2; the objective less that is the duality gap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, one_layer
from attlas.aim.channels.channel import doubling
from attlas.aim.projections import back_projection, distance, indices
from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.layers import symmetric
from attlas.numerics import Event, Progress, Solution, Status, stream

Array = NDArray[np.float64]

_RANK = 1e-6  # of the largest eigenvalue: what counts as zero
_CHECKED = 10  # steps between two looks at the gap


class Problem:
    """The loss over S of sequences X and outputs y: its value, gradient and the gap of a candidate."""

    def __init__(self, X: ArrayLike, y: ArrayLike, channel: Channel, decay: float) -> None:
        known = one_layer(channel, "the convex problem")
        self.X = array(X, "X", ("n", "T", "d"), (None, known.tokens, None))
        target = known.check(y)
        if len(target) != len(self.X):
            raise InputError(f"X has {len(self.X)} sequences and y has {len(target)}")
        self.centred = known.centred
        self.target = self._centre(known.indices(target))
        self.penalty = real(decay, "decay", least=0) * self.d
        self.numbers = len(self.X) * (known.tokens * (known.tokens + 1) / 2 - self.centred)

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.X.shape[2])

    def residual(self, S: Array) -> Array:
        """Return e (n, T, T)."""
        return self._centre(indices(self.X, S)) - self.target

    def slope(self, e: Array) -> Array:
        """Return the gradient (d, d) of the loss whose residual is e, without the penalty."""
        return back_projection(self.X, e / doubling(self.X.shape[1]))

    def value(self, S: Array, e: Array) -> float:
        """Return the objective at S >= 0."""
        return 0.25 * float(np.sum(e * e)) + self.penalty * float(np.trace(S))

    def gap(self, S: Array, e: Array, slope: Array) -> float:
        """Return the objective less a lower bound of its minimum, over the objective.

        Without decay no such bound is at hand unless the fit is exact: then it is the loss over that of S = 0.
        """
        value = self.value(S, e)
        zero = 0.25 * float(np.sum(self.target**2))
        if self.penalty == 0:
            return value / max(zero, np.finfo(float).tiny)
        steepest = float(np.linalg.eigvalsh(-slope)[-1])
        product, square = -0.5 * float(np.sum(e * self.target)), 0.5 * float(np.sum(e * e))
        best = product / square if square > 0 else 1.0
        s = float(np.clip(best, 0.0, self.penalty / steepest if steepest > 0 else np.inf))
        return (value - (s * product - 0.5 * s * s * square)) / max(value, np.finfo(float).tiny)

    def curvature(self) -> float:
        """Return the largest eigenvalue of the Hessian, from below by a few per cent."""
        V = stream(0, "curvature").standard_normal((self.d, self.d))
        V += V.T
        size = 1.0
        for _ in range(20):
            V /= np.linalg.norm(V)
            V = self.slope(self._centre(indices(self.X, V)))
            size = float(np.linalg.norm(V))
        return size

    def _centre(self, h: Array) -> Array:
        return h - h.mean((1, 2), keepdims=True) if self.centred else h


@dataclass(frozen=True)
class Minimum(Solution[Array]):
    """What `minimise` found.

    Attributes
    ----------
    value : array of shape (d, d)
        S_hat.
    residual : float
        The duality gap over the objective; without decay the loss over that of S = 0.
    training : float
        Mean square of the residuals, as in `trained`.
    rank : float
        Share of the eigenvalues of S_hat above 1e-6 of the largest.
    trace : float
        Tr S_hat / d.
    history : array
        The objective, step by step.
    """

    trace: float = np.nan
    training: float = np.nan
    rank: float = np.nan

    def mse(self, S: ArrayLike) -> float:
        """Return ||S_hat - S||^2 / d against the teacher."""
        return distance(self.value, symmetric(S, len(self.value)))


def minimise(
    X: ArrayLike,
    y: ArrayLike,
    channel: Channel,
    decay: float,
    *,
    start: ArrayLike | None = None,
    tol: float = 1e-6,
    max_steps: int = 5000,
    throw: bool = True,
    progress: Progress | None = None,
) -> Minimum:
    """Minimise (1/4) sum ||e||^2 + decay d Tr S over S >= 0.

    Parameters
    ----------
    X : array of shape (n, T, d)
    y : array of shape (n, T, T)
    channel : Channel
        One that gives the indices back from y (`indices`), as softmax and linear do.
    decay : float
        As in `trained`. At 0 the minimiser is not unique below the threshold of S >= 0 alone, and depends on the start; for
        the limit decay -> 0+, go down in steps with `start` the solution before.
    start : array of shape (d, d), optional
        S >= 0; zero if not given.
    tol : float, default 1e-6
        Of the duality gap over the objective. Without decay: of the loss over that of S = 0, or where the loss falls by less
        than this fraction in 50 steps.
    max_steps : int, default 5000
    throw : bool, default True
        Raise `ConvergenceError` if the tolerance is not reached; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is the objective.

    Notes
    -----
    A step costs two products of X with a d x d matrix and one eigendecomposition; memory is that of X twice.

    Examples
    --------
    >>> from attlas import aim
    >>> channel = aim.Linear(tokens=1, noise=0.25)
    >>> task = aim.sample(channel, d=30, alpha=0.3, rho=0.5, seed=0)
    >>> found = aim.minimise(task.X, task.y, channel, decay=0.1)
    >>> found.status.name, bool(found.rank < 1)
    ('CONVERGED', True)

    References
    ----------
    beck2009fast for the steps, odonoghue2015adaptive for the restart; boncoraglio2025inductive for the problem.
    """
    problem = Problem(X, y, channel, decay)
    real(tol, "tol", above=0)
    d = problem.d
    S = np.zeros((d, d)) if start is None else symmetric(start, d, "start").astype(float)
    if start is not None and np.linalg.eigvalsh(S)[0] < -1e-8 * max(float(np.abs(S).max()), 1e-300):
        raise InputError("start must be positive semidefinite")
    with np.errstate(over="ignore", invalid="ignore"):
        L = 1.05 * problem.curvature()
    if not 0 < L < np.inf:
        raise InputError("the entries of X are too large, or all zero: the loss has no finite curvature")
    e = problem.residual(S)
    value = problem.value(S, e)
    # between steps the residual is linear in S, so that one projection forth and one back do
    Z, e_Z, momentum = S, e, 1.0
    history = [value]
    gap, status = np.inf, Status.OUT_OF_STEPS
    max_steps = integer(max_steps, "max_steps")
    for step in range(1, max_steps + 1):
        new = _positive(Z - (problem.slope(e_Z) + problem.penalty * np.eye(d)) / L)
        e_new = problem.residual(new)
        now = problem.value(new, e_new)
        if now > value * (1 + 1e-9) and momentum == 1:  # the curvature was taken too small
            L *= 1.5
        elif now > value:  # momentum carried it uphill: again from the last point, without
            Z, e_Z, momentum = S, e, 1.0
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            beta = (momentum - 1) / following
            Z, e_Z = new + beta * (new - S), e_new + beta * (e_new - e)
            S, e, value, momentum = new, e_new, now, following
        history.append(value)
        if progress is not None:
            progress(Event(step, max_steps, f"step {step}, objective {value:.4g}", value))
        if step % _CHECKED == 0:
            gap = problem.gap(S, e, problem.slope(e))
            stalled = problem.penalty == 0 and len(history) > 50 and history[-51] - value < tol * history[-51]
            if gap < tol or stalled:
                status = Status.CONVERGED
                break
    if not np.isfinite(gap):  # it ended before its first check
        gap = problem.gap(S, e, problem.slope(e))
    eigenvalues = np.linalg.eigvalsh(S)
    found = Minimum(
        S,
        status,
        gap,
        step,
        trace=float(eigenvalues.mean()),
        training=0.5 * float(np.sum(e * e)) / problem.numbers,
        rank=float(np.mean(eigenvalues > _RANK * max(eigenvalues[-1], 1e-300))),
        history=np.array(history),
    )
    return found.or_raise("the convex problem") if throw else found


def _positive(S: Array) -> Array:
    """Return the nearest S >= 0."""
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    kept = values > 0
    return np.asarray((vectors[:, kept] * values[kept]) @ vectors[:, kept].T)
