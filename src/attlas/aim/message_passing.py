"""Approximate message passing: the algorithm that follows the state evolution."""

from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, Deep, Hardmax, Linear, Softmax
from attlas.aim.channels.channel import doubling
from attlas.aim.deep import LayersEstimate
from attlas.aim.deep import message_passing as pass_through_layers
from attlas.aim.denoiser import denoise
from attlas.aim.projections import back_projection, distance, indices, squared_norms
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.layers import symmetric
from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]

FLOOR = 1e-9  # of V: beneath it the noise of the effective observation is rounding


@dataclass(frozen=True)
class Estimate(Solution[Array]):
    """What message passing found.

    Attributes
    ----------
    value, S_hat : array of shape (d, d)
        The estimate of S.
    history : array
        V of every iteration, as the algorithm believes it.
    mse : array
        ||S - S_hat||^2 / d of every iteration, if S was given; the first is that of the prior mean.
    """

    mse: Array = field(default_factory=lambda: np.empty(0))

    @property
    def S_hat(self) -> Array:
        """The estimate of S."""
        return self.value


@overload
def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    channel: Deep,
    rho: ArrayLike,
    *,
    S: ArrayLike | None = None,
    damping: float = 0.5,
    norm_correct: bool = False,
    tol: float = 1e-7,
    max_steps: int = 300,
    throw: bool = True,
) -> LayersEstimate: ...


@overload
def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    channel: Channel,
    rho: float,
    *,
    S: ArrayLike | None = None,
    damping: float = 0.5,
    norm_correct: bool = False,
    tol: float = 1e-7,
    max_steps: int = 300,
    throw: bool = True,
    progress: Progress | None = None,
) -> Estimate: ...


def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    channel: Channel | Deep,
    rho: Any,
    *,
    S: ArrayLike | None = None,
    damping: float = 0.5,
    norm_correct: bool = False,
    tol: float = 1e-7,
    max_steps: int = 300,
    throw: bool = True,
    progress: Progress | None = None,
) -> Estimate | LayersEstimate:
    """Estimate S from sequences and outputs, at the error of `state_evolution` as d grows.

    From the prior mean S_hat = sqrt(rho) I, V = 1, repeat

        omega_ab = (x_a^T S_hat x_b - delta_ab Tr S_hat)/sqrt(d) - V (1 + delta_ab) g_ab     (old g; damped with V)
        g = score(y, omega, V),   qhat = 2 alpha G2(V)
        R = S_hat + 2/(d qhat) sum_mu (X_mu^T H_mu X_mu - Tr(H_mu) I)/sqrt(d)                 (H = g, off-diagonal halved)
        S_hat = denoise(R, 1/qhat),   V = F(1/qhat).

    Parameters
    ----------
    X : array of shape (n, T, d)
        Gaussian tokens; at most four times their memory is used.
    y : array of shape (n, T, T)
    channel : Channel or Deep
        For `Deep` all of this holds per layer, in the diagonal approximation, and a `LayersEstimate` is returned.
    rho : float
        Width of the teacher over d; for `Deep` also one for each layer.
    S : array of shape (d, d), optional
        The teacher, to trace the true error, (2, d, d) for `Deep`. It does not enter the estimate.
    damping : float, default 0.5
        Of omega and V. Undamped, the algorithm follows the state evolution only while the norms of x x^T behave as
        those of Gaussian matrices, a few steps.
    norm_correct : bool, default False
        Use the variance 2 V ||X_ab||^2/d of each sample instead of its mean V (1 + delta_ab).
    tol : float, default 1e-7
        Converged when ||S_hat - old||^2/d < tol * V, or V has reached 1e-9. At least 1e-3 for hardmax of three and
        more tokens and 1e-4 for `Deep` at its default accuracy, whose scores carry that much error.
    max_steps : int, default 300
        Near a threshold about 1/|1 - alpha/alpha_c| are needed.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called after every step with an `Event` whose value is V, the error that the algorithm estimates; not for `Deep`.

    References
    ----------
    boncoraglio2025bayes, the GAMP-RIE algorithm.
    """
    damping, tol = real(damping, "damping", least=0), real(tol, "tol", above=0)
    if damping >= 1:
        raise InputError(f"damping must be in [0, 1); got {damping}")
    if norm_correct and not isinstance(channel, Linear | Softmax):
        raise InputError("norm_correct is for linear and softmax channels, whose score takes a variance per sample")
    if isinstance(channel, Deep):
        layers = pass_through_layers(X, y, channel, rho, S, damping, tol, max_steps)
        return layers.or_raise("message passing") if throw else layers
    X = array(X, "X", ("n", "T", "d"), (None, channel.tokens, None))
    y = channel.check(y)
    n, T, d = X.shape
    if len(y) != n:
        raise InputError(f"X has {n} sequences and y has {len(y)}")
    rho = real(rho, "rho", above=0)
    truth = None if S is None else symmetric(S, d)
    alpha = n / d**2
    if isinstance(channel, Hardmax) and channel.tokens > 2:
        tol = max(tol, 1e-3)  # what scores by Gibbs averages can settle
    S_hat, V, g = np.sqrt(rho) * np.eye(d), 1.0, np.zeros((n, T, T))
    damped_V = V
    # variances of the indices of each sample over their mean; 1 without the correction
    ratio: Any = squared_norms(X) / doubling(T) if norm_correct else 1.0
    omega = np.zeros((n, T, T))
    history, mse = [V], [] if truth is None else [distance(truth, S_hat)]
    status, change = Status.OUT_OF_STEPS, np.inf
    for step in range(integer(max_steps, "max_steps")):
        eta = damping if step else 0.0
        omega = (1 - eta) * (indices(X, S_hat) - V * ratio * doubling(T) * g) + eta * omega
        damped_V = (1 - eta) * V + eta * damped_V
        g = channel.score(y, omega, damped_V * ratio)
        qhat = float(2 * alpha * channel.information(damped_V, 1 + rho))
        R = S_hat + 2 / (d * qhat) * back_projection(X, g)
        before, S_hat = S_hat, denoise(R, 1 / qhat, rho)
        V = max(float(mmse(1 / qhat, rho)), FLOOR)
        change = distance(S_hat, before)
        history.append(V)
        if truth is not None:
            mse.append(distance(truth, S_hat))
        if progress is not None:
            progress(Event(step + 1, max_steps, f"step {step + 1}, estimated error {V:.4g}", V))
        if not np.isfinite(change):
            status = Status.DIVERGED
            break
        if change < tol * V or V <= FLOOR:
            status = Status.CONVERGED
            break
    found = Estimate(S_hat, status, change, step + 1, np.array(history), mse=np.array(mse))
    return found.or_raise("message passing") if throw else found
