"""Approximate message passing: the algorithm that follows the state evolution."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, ChannelDefaults, complete
from attlas.aim.channels.channel import doubling
from attlas.aim.denoiser import denoise
from attlas.aim.model import widths
from attlas.aim.projections import back_projection, distance, indices, squared_norms
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.layers import symmetric
from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate(Solution[Array]):
    """What message passing found; for a channel of L layers with an axis for them.

    Attributes
    ----------
    value, S_hat : array of shape (d, d) or (L, d, d)
        The estimate of S.
    residual : float
        ||S_hat - old||^2/d of the last step.
    history : array of shape (steps + 1,) or (steps + 1, L)
        V of every iteration: the error that the algorithm estimates for itself.
    mse : array of the same shape
        ||S - S_hat||^2 / d of every iteration, if S was given, else empty; the first is that of the prior mean.
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
    damping: float = 0.5,
    norm_correct: bool = False,
    tol: float = 1e-7,
    max_steps: int = 300,
    throw: bool = True,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate S from sequences and outputs, at the error of `state_evolution` as d grows.

    From the prior mean S_hat = sqrt(rho) I, V = 1, repeat

        omega_ab = (x_a^T S_hat x_b - delta_ab Tr S_hat)/sqrt(d) - V (1 + delta_ab) g_ab     (old g; damped with V)
        g = score(y, omega, V),   qhat = 2 alpha G2(V)
        R = S_hat + 2/(d qhat) sum_mu (X_mu^T H_mu X_mu - Tr(H_mu) I)/sqrt(d)                 (H = g, off-diagonal halved)
        S_hat = denoise(R, 1/qhat),   V = F(1/qhat),

    for every layer, with its own indices, score and denoiser: of several layers this is the diagonal approximation.

    Parameters
    ----------
    X : array of shape (n, T, d)
        Gaussian tokens; at most four times their memory is used.
    y : array of shape (n, T, T)
    channel : Channel
    rho : float
        Width of the teacher over d; for several layers also one for each.
    S : array of shape (d, d) or (L, d, d), optional
        The teacher, to follow the true error. It does not enter the estimate.
    damping : float, default 0.5
        Of omega and V. Undamped, the algorithm follows the state evolution only while the norms of x x^T behave as
        those of Gaussian matrices, a few steps.
    norm_correct : bool, default False
        Use the variance 2 V ||X_ab||^2/d of each sample instead of its mean V (1 + delta_ab); for channels whose score takes
        one, as softmax and linear do.
    tol : float, default 1e-7
        Converged when ||S_hat - old||^2/d < tol * V, or V has reached the `floor` of the channel (1e-9). At least the
        channel's `score_error`: 1e-3 for hardmax of three and more tokens, 1e-4 for `Deep` at its default accuracy.
    max_steps : int, default 300
        Near a threshold about 1/|1 - alpha/alpha_c| are needed.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is V, of several layers the largest.

    References
    ----------
    boncoraglio2025bayes, the GAMP-RIE algorithm.
    """
    known = complete(channel)
    damping, tol = real(damping, "damping", least=0), real(tol, "tol", above=0)
    if damping >= 1:
        raise InputError(f"damping must be in [0, 1); got {damping}")
    if norm_correct and not known.variance_per_sample:
        raise InputError(f"norm_correct needs a score that takes a variance per sample; that of {channel!r} does not")
    X = array(X, "X", ("n", "T", "d"), (None, known.tokens, None))
    y = known.check(y)
    L, (n, T, d) = known.layers, X.shape
    if len(y) != n:
        raise InputError(f"X has {n} sequences and y has {len(y)}")
    rhos, alpha = widths(rho, L), n / d**2
    truth = (
        None
        if S is None
        else [symmetric(own, d) for own in ([S] if L == 1 else array(S, "S", ("L", "d", "d"), (L, d, d)))]
    )
    tol, floor = max(tol, known.score_error), known.floor
    S_hat = np.sqrt(rhos)[:, None, None] * np.eye(d)
    V, damped_V, g, omega = np.ones(L), np.ones(L), np.zeros((L, n, T, T)), np.zeros((L, n, T, T))
    # variances of the indices of each sample over their mean; 1 without the correction
    ratio: Any = squared_norms(X) / doubling(T) if norm_correct else 1.0
    history, mse = [V], [] if truth is None else [_distances(truth, S_hat)]
    status, residual = Status.OUT_OF_STEPS, np.inf
    max_steps = integer(max_steps, "max_steps")
    for step in range(1, max_steps + 1):
        eta = damping if step > 1 else 0.0
        fresh = np.stack([indices(X, own) for own in S_hat]) - V[:, None, None, None] * ratio * doubling(T) * g
        omega, damped_V = (1 - eta) * fresh + eta * omega, (1 - eta) * V + eta * damped_V
        g, G = _answers(known, y, omega, damped_V, 1 + rhos, ratio)
        if not np.isfinite(g).all():
            raise InputError(f"the score of {channel!r} is not finite at step {step}; check it for NaN and overflow")
        qhat = 2 * alpha * G
        before, new = S_hat, []
        for own, precision, seen, width in zip(S_hat, qhat, g, rhos, strict=True):
            R = own + 2 / (d * precision) * back_projection(X, seen)
            new.append(denoise(R, 1 / precision, width))
        S_hat = np.stack(new)
        V = np.maximum([float(mmse(1 / precision, width)) for precision, width in zip(qhat, rhos, strict=True)], floor)
        changes = _distances(S_hat, before)
        residual = float(changes.max())
        history.append(V)
        if truth is not None:
            mse.append(_distances(truth, S_hat))
        if progress is not None:
            progress(Event(step, max_steps, f"step {step}, estimated error {V.max():.4g}", float(V.max())))
        if not np.isfinite(residual):
            status = Status.DIVERGED
            break
        if np.all((changes < tol * V) | (floor >= V)):
            status = Status.CONVERGED
            break
    courses = (np.array(history), np.array(mse).reshape(-1, L))
    if L == 1:
        S_hat, courses = S_hat[0], (courses[0][:, 0], courses[1][:, 0])
    found = Estimate(S_hat, status, residual, step, courses[0], mse=courses[1])
    return found.or_raise("message passing") if throw else found


def _answers(channel: ChannelDefaults, y: Array, omega: Array, V: Array, Q: Array, ratio: Any) -> tuple[Array, Array]:
    """Return score and information of every layer; a channel of one layer knows of no axis for it."""
    if channel.layers == 1:
        g = channel.score(y, omega[0], V[0] * ratio)[None]
        return g, np.array([float(channel.information(V[0], Q[0]))])
    return channel.score(y, omega, V), channel.information(V, Q).diagonal()


def _distances(A: Any, B: Any) -> Array:
    return np.array([distance(a, b) for a, b in zip(A, B, strict=True)])
