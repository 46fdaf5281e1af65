"""Training S entry by entry: what the minimiser of the square loss with a Frobenius penalty has learned, and how to find it.

Weight decay on the entries of S, instead of on W with S = W W^T / sqrt(r d), is ridge regression: (1/4) sum ||e||^2 +
(decay d/2) ||S||^2, over all symmetric S. In coordinates in which the loss is isotropic these are A d^2/2 Gaussian
`measurements`, with noise sig2, of d^2/2 unknowns whose mean square is Q = 1 + rho. The minimiser is that of a scalar
problem: R = S + sqrt(Delta) GOE with every eigenvalue divided by 1 + omega,

    A Delta = sig2 + E,   E = (omega^2 Q + Delta)/(1 + omega)^2,   decay = omega (A - 1/(1 + omega))/2,

a quadratic equation for omega. Nothing of the teacher counts but Q: its rank and its sign are not used.

References
----------
hastie2022surprises for ridge regression with isotropic features; written here in the coordinates of `family`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim import spectrum
from attlas.aim.channels import Channel
from attlas.aim.measurements import measurements
from attlas.aim.minimise import Minimum, Problem
from attlas.aim.trained import _decays
from attlas.inputs import integer, numbers, real
from attlas.numerics import Status

Array = NDArray[np.float64]

_RANK = 1e-6  # of the largest eigenvalue: what counts as zero


@dataclass(frozen=True)
class Entrywise:
    """What training S entry by entry reaches.

    Attributes
    ----------
    value : float
        Test error ||S_hat - S||^2 / d; infinite at the interpolation threshold A = 1 with noise and without decay.
    training : float
        Mean square of the residuals on the data, in the units of sig2.
    trace : float
        Tr S_hat / d.
    delta, omega : float
        Noise of the scalar problem, and what its eigenvalues are divided by, less 1.
    rho, decay : float
        As given.
    """

    value: float
    training: float
    trace: float
    delta: float
    omega: float
    rho: float
    decay: float

    def spectrum(self, x: ArrayLike) -> Array:
        """Return the density of the eigenvalues of S_hat, on both sides of zero, where Delta > 0."""
        grown = 1 + self.omega
        return np.asarray(grown * spectrum.density(grown * numbers(x, "x"), self.delta, self.rho))

    @property
    def negative(self) -> float:
        """Share of the eigenvalues of S_hat below zero."""
        if self.delta == 0:  # the teacher itself
            return 0.0
        low = float(spectrum.edges(self.delta, self.rho)[0])
        if low >= 0:
            return 0.0
        angle = np.linspace(0, np.pi, 4001)  # the density ends in a square root: equal steps in the angle remove it
        x = low * (1 + np.cos(angle)) / 2
        return float(np.trapezoid(spectrum.density(x, self.delta, self.rho) * np.sin(angle) * -low / 2, angle))


def entrywise(channel: Channel, alpha: float, rho: float, decay: float) -> Entrywise:
    """Return what the minimiser of (1/4) sum ||e||^2 + (decay d/2) ||S||^2 over symmetric S has learned, as d grows.

    Parameters
    ----------
    channel : Channel
        As in `trained`.
    alpha : float
        Samples over d^2, positive.
    rho : float
        Width of the teacher over d.
    decay : float
        Multiplies (d/2) ||S||^2 beside the *sum* over samples: weight decay (mu/2) ||V||^2, mu = decay, on weights V =
        sqrt(d) S of order one. 0 stands for the limit decay -> 0+, of all that fit the data best the one of the smallest
        norm. The error is least at decay = sig2/(2 Q).

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.entrywise(aim.Linear(1, noise=0.25), alpha=0.25, rho=0.5, decay=0.0)
    >>> print(f"{found.value:.4f}")  # Q (1 - A) + sig2 A/(1 - A), A = 1/2
    0.8750

    References
    ----------
    hastie2022surprises.
    """
    A, noise = measurements(channel, real(alpha, "alpha", above=0))
    rho = real(rho, "rho", above=0)
    a, Q, penalty = float(A), 1 + rho, float(_decays(real(decay, "decay", least=0)))
    half = (1 + 2 * penalty - a) / 2
    root = float(np.sqrt(half**2 + 2 * a * penalty))
    # the positive root of A omega^2 - 2 half omega - 2 decay, without cancellation
    omega = (half + root) / a if half > 0 else 2 * penalty / (root - half) if penalty else 0.0
    grown = 1 + omega
    room = a * grown**2 - 1  # zero at A = 1 without decay: the error diverges with noise, and S is found without
    excess = a * omega**2 * Q + noise
    error = excess / room if room > 0 else (np.inf if excess > 0 else 0.0)
    delta = (noise + error) / a
    training = (1 - 1 / (a * grown)) ** 2 * a * delta if np.isfinite(delta) else 0.0
    return Entrywise(
        float(error), float(training), float(np.sqrt(rho)) / grown, float(delta), omega, float(rho), penalty
    )


def minimise_entrywise(
    X: ArrayLike,
    y: ArrayLike,
    channel: Channel,
    decay: float,
    *,
    tol: float = 1e-8,
    max_steps: int = 2000,
    throw: bool = True,
) -> Minimum:
    """Minimise (1/4) sum ||e||^2 + (decay d/2) ||S||^2 over symmetric S, by conjugate gradients from zero.

    Parameters
    ----------
    X : array of shape (n, T, d)
    y : array of shape (n, T, T)
    channel : Channel
        One that gives the indices back from y (`indices`), as softmax and linear do.
    decay : float
        As in `entrywise`. At 0, of all that fit best the S of the smallest norm.
    tol : float, default 1e-8
        Of the gradient over that at S = 0: the `residual` of what is returned.
    max_steps : int, default 2000
    throw : bool, default True
        Raise `ConvergenceError` if the tolerance is not reached; otherwise the status says so.

    Examples
    --------
    >>> from attlas import aim
    >>> channel = aim.Linear(tokens=1, noise=0.25)
    >>> task = aim.sample(channel, d=20, alpha=0.3, rho=0.5, seed=0)
    >>> aim.minimise_entrywise(task.X, task.y, channel, decay=0.1).status.name
    'CONVERGED'
    """
    problem = Problem(X, y, channel, decay)
    real(tol, "tol", above=0)
    S = np.zeros((problem.d, problem.d))
    gradient = -problem.slope(problem.residual(S))  # less the gradient, as conjugate gradients have it
    first = max(float(np.linalg.norm(gradient)), np.finfo(float).tiny)
    shift = problem.slope(-problem.target)  # the slope at S = 0, to have the linear part of others
    direction, square, gap = gradient, float(np.sum(gradient**2)), 1.0
    history, status, step = [0.25 * float(np.sum(problem.target**2))], Status.OUT_OF_STEPS, 0
    for _ in range(integer(max_steps, "max_steps")):
        step += 1
        curved = problem.slope(problem.residual(direction)) - shift + problem.penalty * direction
        bent = float(np.sum(direction * curved))
        if bent > 0:
            S = S + square / bent * direction
            gradient = gradient - square / bent * curved
        before, square = square, float(np.sum(gradient**2))
        gap = float(np.sqrt(square)) / first
        e = problem.residual(S)
        history.append(0.25 * float(np.sum(e * e)) + 0.5 * problem.penalty * float(np.sum(S * S)))
        if gap < tol or bent <= 0:
            status = Status.CONVERGED
            break
        direction = gradient + square / before * direction
    e = problem.residual(S)
    eigenvalues = np.linalg.eigvalsh(S)
    found = Minimum(
        S,
        status,
        gap,
        step,
        trace=float(eigenvalues.mean()),
        training=0.5 * float(np.sum(e * e)) / problem.numbers,
        rank=float(np.mean(np.abs(eigenvalues) > _RANK * max(float(np.abs(eigenvalues).max()), 1e-300))),
        history=np.array(history),
    )
    return found.or_raise("ridge regression") if throw else found
