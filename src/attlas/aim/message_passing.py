"""Approximate message passing: the algorithm that follows the state evolution."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim import multipliers
from attlas.aim.channels import Channel, complete
from attlas.aim.denoiser import denoise
from attlas.aim.model import widths
from attlas.aim.sensing import AT_FLOOR, Course, Sensing, distances
from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.layers import symmetric
from attlas.numerics import Progress, Solution, Status

Array = NDArray[np.float64]

_NEAR = 1.5  # times its limit: where V ends its fall, and the method of multipliers takes over
_FIXED = 1e-3  # relative change of V: it is at its fixed point
_RUNAWAY, _LARGE = 20.0, 3.0  # a change over V of so many times the smallest before, and of at least so much


@dataclass(frozen=True)
class Estimate(Solution[Array]):
    """What message passing found; for a channel of L layers with an axis for them.

    Attributes
    ----------
    value, S_hat : array of shape (d, d) or (L, d, d)
        The estimate of S; where it has not converged, the one of the smallest residual.
    residual : float
        ||S_hat - old||^2/d of the step that gave it, with the change of the scores in the method of multipliers.
    history : array of shape (steps + 1,) or (steps + 1, L)
        V of every iteration: the error that the algorithm expects of itself.
    mse : array of the same shape
        ||S - S_hat||^2 / d of the estimate after every iteration, if S was given, else empty; the first is that of the prior
        mean, the last that of `value`.
    """

    mse: Array = field(default_factory=lambda: np.empty(0))

    @property
    def S_hat(self) -> Array:
        """The estimate of S."""
        return self.value


def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    channel: Channel,
    rho: ArrayLike,
    *,
    S: ArrayLike | None = None,
    tol: float = 1e-7,
    max_steps: int = 1000,
    throw: bool = True,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate S from sequences and outputs, at the error of `state_evolution` as d grows.

    From the prior mean S_hat = sqrt(rho) I, V = 1, repeat

        omega_ab = (x_a^T S_hat x_b - delta_ab Tr S_hat)/sqrt(d) - V v_ab g_ab     (with the old g)
        g = score(y, omega, V v),   D = 1/(2 alpha G2(V))
        R = S_hat + (2 D/d) sum_mu (X_mu^T H_mu X_mu - Tr(H_mu) I)/sqrt(d)         (H = g, off-diagonal halved)
        S_hat = denoise(R, D),   V = (F(D) + V)/2,

    with the mean of the old omega and the new one, and the variance v_ab = 2 ||X_ab||^2/d of each sample where the score
    takes one (linear, softmax), its mean 1 + delta_ab elsewhere. V waits while S_hat still moves by more than V. Once V is
    near its fixed point, which the state evolution gives without the data, the method of multipliers (`multipliers`) finds
    the fixed point of S_hat; also from the start, where message passing runs away.

    Several layers have their own indices, score and denoiser each, which is the diagonal approximation, and message passing
    alone.

    Parameters
    ----------
    X : array of shape (n, T, d)
        Gaussian tokens. Up to four times their memory is used, and beside it 17 (2 d^2 + 3 n T^2) numbers.
    y : array of shape (n, T, T)
    channel : Channel
    rho : float
        Width of the teacher over d; for several layers also one for each.
    S : array of shape (d, d) or (L, d, d), optional
        The teacher, to follow the true error. It does not enter the estimate.
    tol : float, default 1e-7
        Converged when V is at its fixed point and a step changes S_hat by ||S_hat - old||^2/d < tol * V. Where V falls to
        the `floor` of the channel (1e-9), as in perfect recovery: by less than 1e-3 V, and S_hat has the teacher's rank. At
        least `score_error` of the channel: 1e-3 for hardmax of three and more tokens, 1e-4 for `Deep` at its usual accuracy.
    max_steps : int, default 1000
        Some 30 suffice away from a threshold; near it about 1/|1 - alpha/alpha_c| times as many.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is V, of several layers the largest.

    Examples
    --------
    >>> from attlas import aim
    >>> channel = aim.Softmax(tokens=2)
    >>> task = aim.sample(channel, d=60, alpha=0.25, rho=0.5, seed=0)
    >>> found = aim.message_passing(task.X, task.y, channel, rho=0.5, S=task.S)
    >>> found.status.name, bool(found.mse[-1] < 1e-6)  # above the threshold, 0.1875, the teacher is found
    ('CONVERGED', True)

    References
    ----------
    boncoraglio2025bayes, the GAMP-RIE algorithm; the denoiser off the support and the second phase are ours.
    """
    known, tol = complete(channel), real(tol, "tol", above=0)
    X = array(X, "X", ("n", "T", "d"), (None, known.tokens, None))
    y = known.check(y)
    L, (n, _, d) = known.layers, X.shape
    if len(y) != n:
        raise InputError(f"X has {n} sequences and y has {len(y)}")
    truth = None
    if S is not None:
        truth = np.stack([symmetric(own, d) for own in ([S] if L == 1 else array(S, "S", ("L", "d", "d"), (L, d, d)))])
    data = Sensing(X, y, known, widths(rho, L))
    course = Course(np.ones(L), data.prior_mean(), truth, integer(max_steps, "max_steps"), progress)
    found = _estimate(data, course, max(tol, known.score_error))
    history, mse = course.arrays()
    value = found.S
    if L == 1:
        value, history, mse = value[0], history[:, 0], mse[:, 0]
    estimate = Estimate(value, found.status, found.residual, course.steps, history, mse=mse)
    return estimate.or_raise("message passing") if throw else estimate


def _estimate(data: Sensing, course: Course, tol: float) -> multipliers.Settled:
    """Return what message passing finds, and where it stops short of a fixed point what the method of multipliers does."""
    limit = data.limit() if data.channel.layers == 1 else None
    end = _pass_messages(data, course, tol, limit)
    if end.status is not None or limit is None:
        return multipliers.Settled(end.S, end.status or Status.DIVERGED, end.residual)
    if end.scores is not None:
        return multipliers.settle(data, course, end.S, end.scores, limit, limit, tol)
    S, V = data.prior_mean(), np.ones(1)
    return multipliers.settle(data, course, S, data.score(data.indices(S), V), 1.0, limit, tol)


class _End(NamedTuple):
    """Where message passing stops. Without a status the method of multipliers goes on, without scores from the start."""

    S: Array
    status: Status | None
    residual: float
    scores: Array | None = None


def _pass_messages(data: Sensing, course: Course, tol: float, limit: float | None) -> _End:
    """Iterate to a fixed point; if V has a `limit` only until V is near it, or the iteration runs away."""
    floor = data.channel.floor
    S, V = data.prior_mean(), np.ones(len(data.rhos))
    omega, calmest = data.indices(S), np.inf
    best, least = S, np.inf  # of the smallest change at the fixed point of V; before, there is only the last
    while not course.over:
        g = data.score(omega, V)
        noise = data.noise(V)
        error = np.maximum(data.error(noise), 1e-3 * floor)
        R = S + noise[:, None, None] * data.back(g)
        if not np.isfinite(R).all():
            return _End(best, None if limit is not None else Status.DIVERGED, np.inf)
        new = np.stack([denoise(*own) for own in zip(R, noise, data.rhos, strict=True)])
        changes, S = distances(new, S), new
        change, low = float(changes.max()), floor >= V
        fixed = bool(np.all(low | (np.abs(error - V) < _FIXED * V)))
        if not fixed or change < least:
            best, least = S, change if fixed else np.inf
        course.add(np.maximum(error, floor), best)
        if fixed and np.all(changes < np.where(low, max(tol, AT_FLOOR), tol) * V) and data.known(S, low):
            return _End(S, Status.CONVERGED, change)
        relative = float(np.max(changes / V))
        if limit is not None and relative > max(_RUNAWAY * calmest, _LARGE):
            return _End(S, None, change)
        calmest = min(calmest, relative)
        omega = (data.indices(S) - error[:, None, None, None] * data.spread * g) / 2 + omega / 2
        V = np.where((changes > V) & (V < 0.5), V, np.maximum((error + V) / 2, floor))
        if limit is not None and limit > floor and V[0] <= _NEAR * limit:
            return _End(S, None, change, g)
    return _End(best, Status.OUT_OF_STEPS, change if np.isinf(least) else least)
