"""Trained attention: what the minimiser of a square loss with weight decay has learned, as the dimension grows.

Weight decay on W, S = W W^T / sqrt(r d), is a trace penalty on S >= 0, so the problem is convex: (1/4) sum ||e||^2 + decay d
Tr S, e the indices of S less those of the teacher (less their mean for softmax, whose common shift the outputs do not fix).
In coordinates in which the loss is isotropic these are A d^2/2 Gaussian `measurements` of S with noise variance sig2. The
minimiser is that of a scalar problem, which `family` holds and `trained` solves.

References
----------
boncoraglio2025inductive; derived again in these coordinates.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim import spectrum
from attlas.aim.channels import Channel
from attlas.aim.family import Family, best, family, solve, width
from attlas.aim.measurements import measurements
from attlas.aim.shrunk import Shrunk
from attlas.aim.state_evolution import state_evolution
from attlas.aim.trained_thresholds import trained_threshold
from attlas.errors import InputError
from attlas.inputs import numbers, real
from attlas.numerics import Progress, Solution, Status

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

_STRONGEST = 1e6  # decay at most
CURVES = ("mse", "training", "rank", "trace", "overlap", "residual")
RESIDUAL = 1e-6  # of the equations, relative: what counts as solved


@dataclass(frozen=True)
class Trained(Solution[float]):
    """What training reaches.

    Attributes
    ----------
    value : float
        Test error ||S_hat - S||^2 / d. Below 1e-12 it is given as zero.
    training : float
        Mean square of the residuals on the data, in the units of sig2: (1/2) ||e||^2 over the numbers that e holds.
    rank : float
        Rank of S_hat over d.
    trace : float
        Tr S_hat / d.
    overlap : float
        <S_hat, S>/d.
    residual : float
        By how much the equations are missed, relative; below 1e-6 they count as solved.
    delta, theta : float
        Noise of the scalar problem and the shift of its eigenvalues.
    rho, decay : float
        As given.
    """

    trace: float = np.nan
    training: float = np.nan
    rank: float = np.nan
    overlap: float = np.nan
    delta: float = np.nan
    theta: float = np.nan
    rho: float = np.nan
    decay: float = np.nan

    @property
    def zero_mass(self) -> float:
        """Share of the eigenvalues of S_hat that are zero."""
        return 1 - self.rank

    def spectrum(self, x: ArrayLike) -> Array:
        """Return the density of the eigenvalues of S_hat at x > 0; 0 elsewhere. It integrates to `rank`."""
        x = numbers(x, "x")
        positive = np.where(x > 0, x, 1.0)
        if self.delta == 0:  # the teacher itself: Marchenko and Pastur's law
            s = np.sqrt(self.rho)
            low, high = s * (1 - 1 / s) ** 2, s * (1 + 1 / s) ** 2
            inside = np.maximum((high - positive) * (positive - low), 0)
            found = s * np.sqrt(inside) / (2 * np.pi * positive)
        else:
            found = spectrum.density(positive + self.theta, self.delta, self.rho)
        return np.where(x > 0, found, 0.0)


@dataclass(frozen=True)
class BestDecay(Solution[float]):
    """The decay that minimises the test error.

    Attributes
    ----------
    value, decay : float
        0 for its limit decay -> 0+.
    mse : float
        The test error there.
    bayes : float
        The Bayes error beside it.
    residual : float
        By how much the equations are missed, relative; below 1e-6 they count as solved.
    """

    mse: float = np.nan
    bayes: float = np.nan

    @property
    def decay(self) -> float:
        """The decay."""
        return self.value


def trained(channel: Channel, alpha: float, rho: float, decay: float, *, throw: bool = True) -> Trained:
    """Return the error, rank and trace of the minimiser of the square loss with weight decay.

    Parameters
    ----------
    channel : Channel
        One whose outputs are `measurements`: softmax, linear, and yours if it says its `index_noise`.
    alpha : float
        Samples over d^2, positive.
    rho : float
        Width of the teacher over d.
    decay : float
        Multiplies d Tr S beside the *sum* over samples of (1/4) ||e||^2. For a mean over samples it is decay/n; for
        (mu/2) ||W||^2 on the weights, S = W W^T / sqrt(r d), mu = 2 decay sqrt(d/r); for an optimiser that multiplies
        weights by 1 - eta lambda, lambda = mu with the sum and mu/n with the mean. 0 stands for the limit decay -> 0+:
        of all that fit the data best, the S >= 0 of the smallest trace.
    throw : bool, default True
        Raise `ConvergenceError` if the equations are not solved; otherwise the status says so.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.trained(aim.Softmax(2), alpha=0.1, rho=0.5, decay=0.01)
    >>> print(f"{found.value:.4f} {found.rank:.3f} {found.trace:.3f}")
    0.5373 0.394 0.500

    References
    ----------
    boncoraglio2025inductive, for the softmax channel without noise and the linear one, as d grows.
    """
    found = _reached(channel, np.array([real(alpha, "alpha", above=0)]), rho, _decays([real(decay, "decay", least=0)]))
    values = {name: float(value[0]) for name, value in found.items()}
    residual, mse = values.pop("residual"), values.pop("mse")
    result = Trained(mse, _status(residual), residual, 0, np.empty(0), rho=float(rho), decay=float(decay), **values)
    return result.or_raise("the theory of training") if throw else result


def best_decay(channel: Channel, alpha: float, rho: float, *, throw: bool = True) -> BestDecay:
    """Return the decay that minimises the test error, that error, and the Bayes error.

    At the best decay the error is stationary in theta: int_{x > theta} rho_R (2 Delta h - theta) = 0. Where that asks for a
    negative decay, as without noise and with enough samples, the limit decay -> 0+ is best. Raises `ConvergenceError` if the
    equations are not solved, unless `throw` is False.

    Examples
    --------
    >>> from attlas import aim
    >>> best = aim.best_decay(aim.Linear(tokens=1, noise=0.25), alpha=0.5, rho=0.5)
    >>> round(best.value, 4), round(best.mse, 4), round(best.bayes, 4)  # the decay, its error, and the least error
    (0.0539, 0.1762, 0.1639)

    References
    ----------
    Derived here from the equations of boncoraglio2025inductive.
    """
    (decay,), (mse,), (residual,) = best_decays(channel, np.array([real(alpha, "alpha", above=0)]), rho)
    bayes = state_evolution(channel, alpha, rho, steps=0, throw=throw)
    status = _status(residual) if bayes.converged else bayes.status
    found = BestDecay(float(decay), status, float(residual), 0, mse=float(mse), bayes=bayes.value)
    return found.or_raise("the theory of training") if throw else found


def best_decays(channel: Channel, alpha: Array, rho: float) -> tuple[Array, Array, Array]:
    """Return the best decay of every alpha, the error there, and by how much the equations are missed."""
    A, noise = measurements(channel, alpha)
    rho = width(rho)
    limit = _reached(channel, alpha, rho, np.zeros(len(A)))
    delta, theta = best(A, rho, noise)
    delta = np.where(delta > 0, delta, 1.0)
    at, stationary = family(delta, theta, rho, noise), Shrunk(delta, np.full(len(A), rho))(theta)
    better = (theta > 0) & (at.decay > 0) & (at.mse < limit["mse"])
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = np.maximum(np.abs(at.A / A - 1), np.abs(stationary.lean) / (theta * stationary.rank))
    return (
        np.where(better, at.decay, 0.0),
        np.where(better, at.mse, limit["mse"]),
        np.where(better, missed, limit["residual"]),
    )


def trained_curve(
    channel: Channel, alpha: ArrayLike, rho: float, decay: ArrayLike, *, progress: Progress | None = None
) -> "xarray.Dataset":
    """Return what training reaches over a grid of alpha and decay, as an xarray.Dataset.

    Variables of dimensions (decay, alpha): ``mse``, ``training``, ``rank``, ``trace`` and ``overlap`` (<S_hat, S>/d), as in
    `Trained`; ``residual``, by how much the equations are missed; and ``converged``, whether that is below 1e-6.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.trained_curve(aim.Linear(tokens=1, noise=0.25), alpha=[0.2, 0.5], rho=0.5, decay=[0.01, 0.1])
    >>> found["mse"].round(3).values.tolist()
    [[0.689, 0.234], [0.722, 0.194]]
    """
    import xarray

    alphas, decays = np.atleast_1d(numbers(alpha, "alpha", above=0)), np.atleast_1d(_decays(decay))
    if alphas.ndim != 1 or decays.ndim != 1:
        raise InputError(f"alpha and decay must be numbers or lists; got shapes {alphas.shape} and {decays.shape}")
    grid = [a.ravel() for a in np.broadcast_arrays(alphas[None, :], decays[:, None])]
    found = _reached(channel, grid[0], rho, grid[1], progress)
    dims, shape = ("decay", "alpha"), (len(decays), len(alphas))
    return xarray.Dataset(
        {name: (dims, found[name].reshape(shape)) for name in CURVES}
        | {"converged": (dims, found["residual"].reshape(shape) < RESIDUAL)},
        {"alpha": alphas, "decay": decays},
        {"channel": repr(channel), "rho": float(rho)},
    )


def _reached(
    channel: Channel, alpha: Array, rho: float, decay: Array, progress: Progress | None = None
) -> dict[str, Array]:
    """Return what training reaches, and by how much the equations are missed, for alphas and decays of one length."""
    A, noise = measurements(channel, alpha)
    rho = width(rho)
    delta, theta = solve(A, rho, noise, decay, trained_threshold(rho).minimum_trace, progress)
    perfect = delta == 0
    at = family(np.where(perfect, 1.0, delta), theta, rho, noise)
    found = at._asdict() | {"residual": _residual(at, A, theta, decay), "delta": delta, "theta": theta}
    teacher = {"mse": 0.0, "training": 0.0, "rank": min(rho, 1.0), "trace": np.sqrt(rho), "overlap": 1 + rho}
    for name, value in (teacher | {"residual": 0.0}).items():
        found[name] = np.where(perfect, value, found[name])
    return {name: found[name] for name in (*teacher, "residual", "delta", "theta")}


def _residual(at: Family, A: Array, theta: Array, decay: Array) -> Array:
    """Return by how much the two equations are missed, relative; A - D cancels at small decays, and is held against A."""
    return np.asarray(
        np.maximum(np.abs(at.A / A - 1), np.abs(at.decay - decay) / np.maximum(decay, 1e-7 * theta * A + 1e-300))
    )


def _status(residual: float) -> Status:
    return Status.CONVERGED if residual < RESIDUAL else Status.OUT_OF_STEPS


def _decays(decay: ArrayLike) -> Array:
    values = numbers(decay, "decay", least=0)
    if values.size and values.max() > _STRONGEST:
        raise InputError(
            f"decay must be at most {_STRONGEST:g}, far beyond which nothing is left; got {values.max():g}"
        )
    return values
