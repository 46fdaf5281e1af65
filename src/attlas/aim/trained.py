"""Trained attention: what the minimiser of a square loss with weight decay has learned, as the dimension grows.

Weight decay on W, S = W W^T / sqrt(r d), is a trace penalty on S >= 0, so the problem is convex: (1/4) sum ||e||^2 + decay d
Tr S, e the indices of S less those of the teacher (less their mean for softmax, whose common shift the outputs do not fix).
In coordinates in which the loss is isotropic these are A d^2/2 Gaussian measurements of S with noise variance sig2. The
minimiser is that of a scalar problem: R = S + sqrt(Delta) GOE with eigenvalues shrunk by theta, f(x) = (x - theta)_+, where

    A Delta = sig2 + E,   E = ||f(R) - S||^2/d,   decay = theta (A - D)/2,   D = 2 int rho_R f h,

h the Hilbert transform of the spectrum of R. With the posterior mean f_B = x - 2 Delta h of an eigenvalue, E = F(Delta) +
int rho_R (f - f_B)^2, a sum of positive terms. `family` maps (Delta, theta) to (A, decay); `trained` solves for them.

References
----------
boncoraglio2025inductive; derived again in these coordinates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim import spectrum
from attlas.aim.channels import Channel, Linear, Softmax
from attlas.aim.shrunk import Shrunk
from attlas.aim.state_evolution import state_evolution
from attlas.errors import InputError
from attlas.inputs import numbers, real
from attlas.numerics import Solution, Status

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

_LOWEST = 1e-12  # of the noises Delta at which roots are looked for
_WIDEST, _STRONGEST, _QUIETEST, _LOUDEST = 1e4, 1e6, 1e-9, 1e4  # rho and decay at most, sig2 between, if there is any
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
        Tr S_hat S / d.
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


class Family(NamedTuple):
    """The scalar problem at (Delta, theta): which A and decay it stands for, and what is learned there.

    `decay` is negative where no decay leads to this pair. All are arrays of one shape.
    """

    A: Array
    decay: Array
    mse: Array
    training: Array
    rank: Array
    trace: Array
    overlap: Array


class BestDecay(NamedTuple):
    """The decay that minimises the test error (0 for its limit), that error, and Bayes' beside it."""

    decay: float
    mse: float
    bayes: float


class TrainedThreshold(NamedTuple):
    """A = 2 (measurements)/d^2 from which S is recovered without noise: by the smallest trace, and by S >= 0 alone."""

    minimum_trace: float
    psd_only: float


def measurements(channel: Channel, alpha: ArrayLike) -> tuple[Array, float]:
    """Return A = 2 (measurements)/d^2 and the variance sig2 of their noise, for n = alpha d^2 outputs of a channel.

    Softmax: A = alpha (T^2 + T - 2), no noise. Linear with noise D on every index: A = alpha (T^2 + T), sig2 = D T/(T + 1),
    the mean over indices, of which those on the diagonal count half.

    Raises
    ------
    InputError
        For channels for which this theory is not derived: all but softmax and linear.
    """
    a = numbers(alpha, "alpha", above=0)
    if isinstance(channel, Softmax):
        return a * channel.count, 0.0
    if isinstance(channel, Linear):
        T = channel.tokens
        noise = channel.noise * T / (T + 1)
        if noise and not _QUIETEST <= noise <= _LOUDEST:
            raise InputError(
                f"noise on a measurement must be 0, or from {_QUIETEST:g} to {_LOUDEST:g} to be resolved; got {noise:g}"
            )
        return a * (T * T + T), noise
    raise InputError(f"the theory of training is derived for Softmax and Linear channels; got {channel!r}")


def trained(channel: Channel, alpha: float, rho: float, decay: float) -> Trained:
    """Return the error, rank and trace of the minimiser of the square loss with weight decay.

    Parameters
    ----------
    channel : Softmax or Linear
    alpha : float
        Samples over d^2, positive.
    rho : float
        Width of the teacher over d.
    decay : float
        Multiplies d Tr S beside the *sum* over samples of (1/4) ||e||^2. For a mean over samples it is decay/n; for
        (mu/2) ||W||^2 on the weights, S = W W^T / sqrt(r d), mu = 2 decay sqrt(d/r); for an optimiser that multiplies
        weights by 1 - eta lambda, lambda = mu with the sum and mu/n with the mean. 0 stands for the limit decay -> 0+:
        of all that fit the data best, the S >= 0 of the smallest trace.

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
    status = Status.CONVERGED if residual < RESIDUAL else Status.OUT_OF_STEPS
    return Trained(mse, status, residual, 0, np.empty(0), rho=float(rho), decay=float(decay), **values)


def _reached(channel: Channel, alpha: Array, rho: float, decay: Array) -> dict[str, Array]:
    """Return what training reaches, and by how much the equations are missed, for alphas and decays of one length."""
    A, noise = measurements(channel, alpha)
    width = _width(rho)
    delta, theta = _solve(A, np.full(len(A), width), np.full(len(A), noise), decay)
    perfect = delta == 0
    at = family(np.where(perfect, 1.0, delta), theta, width, noise)
    found = at._asdict() | {"residual": _residual(at, A, theta, decay), "delta": delta, "theta": theta}
    teacher = {"mse": 0.0, "training": 0.0, "rank": min(width, 1.0), "trace": np.sqrt(width), "overlap": 1 + width}
    for name, value in (teacher | {"residual": 0.0}).items():
        found[name] = np.where(perfect, value, found[name])
    return {name: found[name] for name in (*teacher, "residual", "delta", "theta")}


def family(delta: ArrayLike, theta: ArrayLike, rho: float, noise: float = 0.0) -> Family:
    """Return A, decay and what is learned at every (Delta, theta): whole families of curves without finding a root.

    Parameters
    ----------
    delta, theta : array_like
        Noise, positive, and shift, not negative; broadcast.
    rho : float
    noise : float, default 0
        The variance sig2 of a measurement; see `measurements`.
    """
    noises, shifts = numbers(delta, "delta", above=0), numbers(theta, "theta", least=0)
    sig2, width = real(noise, "noise", least=0), _width(rho)
    try:
        delta, theta = np.broadcast_arrays(noises, shifts)
    except ValueError as mismatch:
        raise InputError(
            f"delta of shape {noises.shape} and theta of shape {shifts.shape} do not combine"
        ) from mismatch
    if delta.size and delta.max() > _highest(width):
        raise InputError(f"delta must be at most {_highest(width):g} at rho = {width:g}; got {delta.max():g}")
    at = Shrunk(delta, np.full(delta.shape, width))(theta)
    A, D = (sig2 + at.mse) / delta, at.divergence
    return Family(A, theta * (A - D) / 2, at.mse, (1 - D / A) ** 2 * A * delta, at.rank, at.trace, at.overlap)


def best_decay(channel: Channel, alpha: float, rho: float) -> BestDecay:
    """Return the decay that minimises the test error, that error, and the Bayes error.

    At the best decay the error is stationary in theta: int_{x > theta} rho_R (2 Delta h - theta) = 0. Where that asks for a
    negative decay, as without noise and with enough samples, the limit decay -> 0+ is best.

    References
    ----------
    Derived here from the equations of boncoraglio2025inductive.
    """
    A, noise = measurements(channel, real(alpha, "alpha", above=0))
    rho = _width(rho)
    bayes = state_evolution(channel, alpha, rho, steps=0).value
    limit = trained(channel, alpha, rho, 0.0)
    ones = np.ones(1)
    (delta,), (theta,) = _outer(A * ones, rho * ones, noise * ones, 0 * ones, _stationary)
    if delta == 0:
        return BestDecay(0.0, limit.value, bayes)
    at = family(delta, theta, rho, noise)
    if float(at.decay) <= 0 or limit.value <= float(at.mse):
        return BestDecay(0.0, limit.value, bayes)
    return BestDecay(float(at.decay), float(at.mse), bayes)


def _residual(at: Family, A: Array, theta: Array, decay: Array) -> Array:
    """Return by how much the two equations are missed, relative; A - D cancels at small decays, and is held against A."""
    return np.asarray(
        np.maximum(np.abs(at.A / A - 1), np.abs(at.decay - decay) / np.maximum(decay, 1e-7 * theta * A + 1e-300))
    )


def _width(rho: float) -> float:
    if real(rho, "rho", above=0) > _WIDEST:
        raise InputError(f"rho must be at most {_WIDEST:g}; got {rho:g}")
    return float(rho)


def _decays(decay: ArrayLike) -> Array:
    values = numbers(decay, "decay", least=0)
    if values.size and values.max() > _STRONGEST:
        raise InputError(
            f"decay must be at most {_STRONGEST:g}, far beyond which nothing is left; got {values.max():g}"
        )
    return values


def _highest(rho: float) -> float:
    """Return the noise up to which the spectrum of R is resolved."""
    return 1e8 * max(1.0, 1 / rho)


def trained_threshold(rho: float) -> TrainedThreshold:
    """Return A above which, without noise, the smallest trace (decay -> 0+) recovers S, and S >= 0 alone.

    With t = theta/sqrt(Delta (1 - rho)) as Delta -> 0 and mu the semicircle of radius 2, E/Delta -> M(t) = 2 rho - rho^2 +
    rho (1 - rho) t^2 + (1 - rho)^2 int (u - t)_+^2 dmu. The first is the minimum of M, the second M(0) = 1/2 + rho -
    rho^2/2. Both are 1 for rho >= 1. Divide by T^2 + T - 2 (softmax) or T^2 + T (linear) for alpha.

    References
    ----------
    boncoraglio2025inductive for the first; both derived here, in closed form but for one root.
    """
    from scipy.optimize import brentq

    rho = real(rho, "rho", above=0)
    if rho >= 1:
        return TrainedThreshold(1.0, 1.0)

    def moments(t: float) -> tuple[float, float]:
        angle = np.arccos(t / 2)
        mass = (angle - np.sin(2 * angle) / 2) / np.pi
        first = (4 - t * t) ** 1.5 / (6 * np.pi)
        second = (angle - np.sin(4 * angle) / 4) / np.pi
        return first - t * mass, second - 2 * t * first + t * t * mass

    t = brentq(lambda t: rho * t - (1 - rho) * moments(t)[0], 0.0, 2.0, xtol=1e-15)
    least = 2 * rho - rho**2 + rho * (1 - rho) * t**2 + (1 - rho) ** 2 * moments(t)[1]
    return TrainedThreshold(float(least), 0.5 + rho - rho**2 / 2)


def interpolation_threshold(channel: Channel, rho: float) -> tuple[float, float]:
    """Return the alpha below which training without decay fits the data exactly, and the test error there: its peak.

    There theta = 0 and D = A. The peak is finite. Without noise the error there is zero, and alpha that of S >= 0 alone.

    References
    ----------
    Derived here from the equations of boncoraglio2025inductive.
    """
    from scipy.optimize import brentq

    per_alpha, noise = measurements(channel, 1.0)
    rho = _width(rho)
    if noise == 0:
        return trained_threshold(rho).psd_only / float(per_alpha), 0.0

    def excess(log_delta: float) -> float:
        delta = np.exp(log_delta)
        at = Shrunk(np.array([delta]), np.array([rho]))(np.zeros(1))
        return float(noise + at.mse[0] - at.divergence[0] * delta)

    delta = float(np.exp(brentq(excess, np.log(_LOWEST), np.log(_highest(rho)), xtol=1e-13)))
    at = family(delta, 0.0, rho, noise)
    return float(at.A) / float(per_alpha), float(at.mse)


def trained_curve(channel: Channel, alpha: ArrayLike, decay: ArrayLike, rho: float = 0.5) -> "xarray.Dataset":
    """Return what training reaches over a grid of alpha and decay, as an xarray.Dataset.

    Variables ``mse``, ``training``, ``rank``, ``trace`` and ``overlap`` of dimensions (decay, alpha), and ``residual``, by
    how much the equations are missed: above 1e-6 a point is not converged.
    """
    import xarray

    alphas, decays = np.atleast_1d(numbers(alpha, "alpha", above=0)), np.atleast_1d(_decays(decay))
    if alphas.ndim != 1 or decays.ndim != 1:
        raise InputError(f"alpha and decay must be numbers or lists; got shapes {alphas.shape} and {decays.shape}")
    grid = [a.ravel() for a in np.broadcast_arrays(alphas[None, :], decays[:, None])]
    found = _reached(channel, grid[0], rho, grid[1])
    return xarray.Dataset(
        {name: (("decay", "alpha"), found[name].reshape(len(decays), len(alphas))) for name in CURVES},
        {"alpha": alphas, "decay": decays},
        {"channel": repr(channel), "rho": float(rho)},
    )


def _shift(spectra: Shrunk, A: Array, decay: Array) -> Array:
    """Return theta of decay = theta (A - D)/2 at given noises; for decay = 0 that of D = A, or zero."""

    def excess(spectra: Shrunk, theta: Array, A: Array, decay: Array) -> tuple[Array, Array]:
        at = spectra(theta)
        room, limit = A - at.divergence, decay == 0
        return np.where(limit, room, theta * room - 2 * decay), np.where(limit, at.slope, room + theta * at.slope)

    return spectra.root(excess, np.maximum(spectra.top, 2 * decay / A), A, decay)


def _stationary(spectra: Shrunk, A: Array, decay: Array) -> Array:  # noqa: ARG001
    """Return the theta that minimises E at given noises."""

    def falling(spectra: Shrunk, theta: Array) -> tuple[Array, Array]:
        at = spectra(theta)
        return -at.lean, at.rank

    return spectra.root(falling, spectra.top)


def _solve(A: Array, rho: Array, noise: Array, decay: Array) -> tuple[Array, Array]:
    """Return Delta and theta for arrays of one length; zeros where S is recovered perfectly."""
    delta, theta = np.zeros(len(A)), np.zeros(len(A))
    exact = (noise == 0) & (decay == 0)
    thresholds = {r: trained_threshold(r).minimum_trace for r in np.unique(rho[exact])}
    todo = np.array([not e or a < thresholds[r] for a, r, e in zip(A, rho, exact, strict=True)])
    if todo.any():
        delta[todo], theta[todo] = _outer(A[todo], rho[todo], noise[todo], decay[todo], _shift)
    return delta, theta


def _outer(
    A: Array, rho: Array, noise: Array, decay: Array, shift: Callable[[Shrunk, Array, Array], Array]
) -> tuple[Array, Array]:
    """Return the root in Delta of A Delta = noise + E(Delta, shift), and the shift there; zeros where there is none."""
    from scipy.optimize import elementwise

    def excess(log_delta: Array, A: Array, rho: Array, noise: Array, decay: Array) -> Array:
        spectra = Shrunk(np.exp(log_delta), rho)
        return np.asarray(np.log((noise + spectra(shift(spectra, A, decay)).mse) / A) - log_delta)

    low = np.full(len(A), np.log(_LOWEST))
    high = np.log([_highest(r) for r in rho])
    found = excess(low, A, rho, noise, decay) > 0
    delta, theta = np.zeros(len(A)), np.zeros(len(A))
    if found.any():
        A, rho, noise, decay = A[found], rho[found], noise[found], decay[found]
        root = elementwise.find_root(
            excess,
            (low[found], high[found]),
            args=(A, rho, noise, decay),
            tolerances={"xatol": 1e-13, "xrtol": 1e-14, "fatol": 0.0},
            maxiter=80,
        )
        delta[found] = np.exp(root.x)
        theta[found] = shift(Shrunk(delta[found], rho), A, decay)
    return delta, theta
