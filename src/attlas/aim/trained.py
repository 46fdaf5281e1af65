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
from attlas.aim.spectrum import mmse
from attlas.aim.state_evolution import state_evolution
from attlas.errors import InputError
from attlas.inputs import numbers, real
from attlas.numerics import Solution, Status

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_LOWEST = 1e-12  # of the noises Delta at which roots are looked for
_WIDEST, _STRONGEST, _QUIETEST, _LOUDEST = 1e4, 1e6, 1e-9, 1e4  # rho and decay at most, sig2 between, if there is any
_INNER = 100  # steps for theta, at most
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

    trace: float = np.nan  # type: ignore[assignment]
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
    error: Array
    training: Array
    rank: Array
    trace: Array
    overlap: Array


class BestDecay(NamedTuple):
    """The decay that minimises the test error (0 for its limit), that error, and Bayes' beside it."""

    decay: float
    error: float
    bayes: float


class TrainedThreshold(NamedTuple):
    """A = 2 (measurements)/d^2 from which S is recovered without noise: by the smallest trace, and by S >= 0 alone."""

    minimum_trace: float
    psd_only: float


def measurements(channel: Channel, alpha: ArrayLike) -> tuple[Array, float]:
    """Return A = 2 (measurements)/d^2 and the variance sig2 of their noise, for n = alpha d^2 outputs of a channel.

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
    """
    A, noise = measurements(channel, real(alpha, "alpha", above=0))
    rho, decay = _width(rho), float(_decays(real(decay, "decay", least=0)))
    ones = np.ones(1)
    (delta,), (theta,) = _solve(A * ones, rho * ones, noise * ones, decay * ones)
    if delta == 0:
        return Trained(
            0.0, Status.CONVERGED, 0.0, 0, training=0.0, rank=min(rho, 1.0), trace=float(np.sqrt(rho)), overlap=1 + rho,
            delta=0.0, theta=0.0, rho=rho, decay=decay,
        )  # fmt: skip
    at = family(delta, theta, rho, noise)
    residual = float(_residual(at, A, theta, np.array(decay)))
    status = Status.CONVERGED if residual < RESIDUAL else Status.OUT_OF_STEPS
    return Trained(
        float(at.error), status, residual, 0, training=float(at.training), rank=float(at.rank), trace=float(at.trace),
        overlap=float(at.overlap), delta=float(delta), theta=float(theta), rho=rho, decay=decay,
    )  # fmt: skip


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
    at = _Spectra(delta, np.full(delta.shape, width))
    error, D, *_ = at.moments(theta)
    rank, trace, overlap = at.summary(theta)
    A = (sig2 + error) / delta
    return Family(A, theta * (A - D) / 2, error, (1 - D / A) ** 2 * A * delta, rank, trace, overlap)


def best_decay(channel: Channel, alpha: float, rho: float) -> BestDecay:
    """Return the decay that minimises the test error, that error, and the Bayes error.

    At the best decay the error is stationary in theta: int_{x > theta} rho_R (2 Delta h - theta) = 0. Where that asks for a
    negative decay, as without noise and with enough samples, the limit decay -> 0+ is best.
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
    if float(at.decay) <= 0 or limit.value <= float(at.error):
        return BestDecay(0.0, limit.value, bayes)
    return BestDecay(float(at.decay), float(at.error), bayes)


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
    """
    from scipy.optimize import brentq

    per_alpha, noise = measurements(channel, 1.0)
    rho = _width(rho)
    if noise == 0:
        return trained_threshold(rho).psd_only / float(per_alpha), 0.0

    def excess(log_delta: float) -> float:
        at = _Spectra(np.array([np.exp(log_delta)]), np.array([rho]))
        error, D, *_ = at.moments(np.zeros(1))
        return float(noise + error[0] - D[0] * at.delta[0])

    delta = float(np.exp(brentq(excess, np.log(_LOWEST), np.log(_highest(rho)), xtol=1e-13)))
    at = family(delta, 0.0, rho, noise)
    return float(at.A) / float(per_alpha), float(at.error)


def trained_curve(channel: Channel, alpha: ArrayLike, decay: ArrayLike, rho: float = 0.5) -> "xarray.Dataset":
    """Return what training reaches over a grid of alpha and decay, as an xarray.Dataset.

    Variables ``error``, ``training``, ``rank``, ``trace`` and ``overlap`` of dimensions (decay, alpha), and ``residual``, by
    how much the equations are missed: above 1e-6 a point is not converged.
    """
    import xarray

    alphas, decays = np.atleast_1d(numbers(alpha, "alpha", above=0)), np.atleast_1d(_decays(decay))
    if alphas.ndim != 1 or decays.ndim != 1:
        raise InputError(f"alpha and decay must be numbers or lists; got shapes {alphas.shape} and {decays.shape}")
    width = _width(rho)
    A, noise = measurements(channel, alphas)
    grid = [np.array(a, dtype=float).ravel() for a in np.broadcast_arrays(A[None, :], decays[:, None])]
    delta, theta = _solve(grid[0], np.full(grid[0].shape, width), np.full(grid[0].shape, noise), grid[1])
    perfect = delta == 0
    at = family(np.where(perfect, 1.0, delta), np.where(perfect, 0.0, theta), width, noise)
    exact = (0.0, 0.0, min(width, 1.0), np.sqrt(width), 1 + width, 0.0)
    names = ("error", "training", "rank", "trace", "overlap", "residual")
    columns = (at.error, at.training, at.rank, at.trace, at.overlap, _residual(at, grid[0], theta, grid[1]))
    shape = (len(decays), len(alphas))
    return xarray.Dataset(
        {
            name: (("decay", "alpha"), np.where(perfect, value, column).reshape(shape))
            for name, value, column in zip(names, exact, columns, strict=True)
        },
        {"alpha": alphas, "decay": decays},
        {"channel": repr(channel), "rho": width},
    )


def trained_diagram(channel: Channel, alpha: ArrayLike, decay: ArrayLike, rho: float = 0.5) -> "Figure":
    """Draw the test error and the rank of the trained matrix over (alpha, decay), with the best decay as a line.

    Parameters
    ----------
    channel : Softmax or Linear
    alpha, decay : array_like
        Increasing, at least two each; decay positive, for its axis is logarithmic.
    rho : float
    """
    from matplotlib.figure import Figure

    alphas, decays = np.atleast_1d(numbers(alpha, "alpha", above=0)), np.atleast_1d(numbers(decay, "decay", above=0))
    for name, values in (("alpha", alphas), ("decay", decays)):
        if values.ndim != 1 or len(values) < 2 or not np.all(np.diff(values) > 0):
            raise InputError(f"{name} must be an increasing list of at least two values")
    data = trained_curve(channel, alphas, decays, rho)
    few = np.linspace(alphas[0], alphas[-1], 25)
    best = np.array([best_decay(channel, a, rho).decay for a in few])
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axis, name, label in zip(figure.subplots(1, 2), ("error", "rank"), ("test error", "rank over d"), strict=True):
        image = axis.pcolormesh(alphas, decays, data[name].values, cmap="cividis_r", vmin=0, shading="nearest")
        axis.plot(few, np.where(best > 0, best, np.nan), color="#D55E00", label="best decay")
        axis.set(
            xlabel="samples over d², alpha", ylabel="decay", yscale="log", ylim=(decays[0], decays[-1]), title=label
        )
        axis.set_xlim(alphas[0], alphas[-1])
        figure.colorbar(image)
        if np.any((best > decays[0]) & (best < decays[-1])):
            axis.legend(loc="upper right", fontsize=9)
    return figure


class _Spectra:
    """Integrals over the spectra of R at noises Delta, cut at a shift theta: one element for each."""

    def __init__(self, delta: Array, rho: Array) -> None:
        self.delta, self.rho = delta, rho
        self.low, self.high = spectrum.panels(delta, rho)
        self.bottom_ends, self.top_ends = (
            spectrum.eigenvalue(w, delta[..., None], rho[..., None]) for w in (self.low, self.high)
        )
        self.top = self.top_ends.max(-1)
        self.bayes = mmse(delta, rho)

    def take(self, which: NDArray[np.bool_]) -> "_Spectra":
        """Return some of the elements."""
        part = object.__new__(_Spectra)
        part.__dict__.update({name: value[which] for name, value in self.__dict__.items()})
        return part

    def _cut(self, theta: Array) -> Array:
        """Return w at x = theta in each panel, or its nearer end: Newton's method, kept in a bracket."""
        delta, rho = self.delta[..., None], self.rho[..., None]
        low, high = self.low, self.high
        goal = np.clip(theta[..., None], self.bottom_ends, self.top_ends)
        w = low + (high - low) * (goal - self.bottom_ends) / np.maximum(self.top_ends - self.bottom_ends, 1e-300)
        for _ in range(60):
            ratio = np.exp(w)
            p = 1 / (delta + ratio)
            missed = np.sqrt(rho) * ratio + delta / np.sqrt(rho) * (p - rho * np.expm1(-w)) - goal
            slope = np.sqrt(rho) * ratio + delta / np.sqrt(rho) * (rho / ratio - p * p * ratio)
            low, high = np.where(missed < 0, w, low), np.where(missed < 0, high, w)
            with np.errstate(all="ignore"):
                step = w - missed / slope
            moved = np.where((step >= low) & (step <= high), step, (low + high) / 2)
            far = np.abs(moved - w).max(initial=0.0)
            w = moved
            if far < 1e-9:  # the next step would be its square
                break
        return np.asarray(np.where(goal <= self.bottom_ends, self.low, np.where(goal >= self.top_ends, self.high, w)))

    def _nodes(self, theta: Array) -> tuple[spectrum.Spectrum, spectrum.Spectrum]:
        cut = self._cut(theta)
        return (
            spectrum.quadrature(self.delta, self.rho, self.low, cut),
            spectrum.quadrature(self.delta, self.rho, cut, self.high),
        )

    def moments(self, theta: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return E, D, -dD/dtheta, int_{x > theta} (2 Delta h - theta) = -dE/dtheta/2, and the share above theta."""
        below, above = self._nodes(theta)
        shift = theta[..., None]
        lean = 2 * self.delta[..., None] * above.hilbert - shift  # f - f_B
        error = self.bayes + (below.weight * below.f**2).sum(-1) + (above.weight * lean**2).sum(-1)
        D = 2 * (above.weight * (above.x - shift) * above.hilbert).sum(-1)
        slope = 2 * (above.weight * above.hilbert).sum(-1)
        return error, D, slope, (above.weight * lean).sum(-1), above.weight.sum(-1)

    def summary(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return rank, trace and overlap."""
        _, above = self._nodes(theta)
        kept = above.weight * (above.x - theta[..., None])
        return above.weight.sum(-1), kept.sum(-1), (kept * above.f).sum(-1)

    def root(self, function: Callable[..., tuple[Array, Array]], high: Array, *args: Array) -> Array:
        """Return theta in [0, high] where function(spectra, theta, *args) is zero, given with its slope.

        It has one zero, which it crosses from below, or none if it is positive at zero already: then theta = 0.
        """
        theta = np.zeros(len(high))
        todo = function(self, theta, *args)[0] < 0
        low, high = theta[todo], high[todo]
        here = high / 2
        places, part, rest = np.flatnonzero(todo), self.take(todo), [a[todo] for a in args]
        for _ in range(_INNER):
            if not len(places):
                break
            value, slope = function(part, here, *rest)
            low, high = np.where(value < 0, here, low), np.where(value < 0, high, here)
            with np.errstate(all="ignore"):
                step = here - value / slope
            inside = (step > low) & (step < high)
            moved = np.where(inside, step, (low + high) / 2)
            # a step of Newton's leaves its square as the error, a halving leaves itself
            done = np.abs(moved - here) <= np.where(inside, 1e-8, 1e-14) * moved
            here = moved
            theta[places] = here
            left = ~done
            places, part, rest = places[left], part.take(left), [a[left] for a in rest]
            low, high, here = low[left], high[left], here[left]
        return theta


def _shift(at: _Spectra, A: Array, decay: Array) -> Array:
    """Return theta of decay = theta (A - D)/2 at given noises; for decay = 0 that of D = A, or zero."""

    def excess(at: _Spectra, theta: Array, A: Array, decay: Array) -> tuple[Array, Array]:
        _, D, slope, *_ = at.moments(theta)
        room, limit = A - D, decay == 0
        return np.where(limit, room, theta * room - 2 * decay), np.where(limit, slope, room + theta * slope)

    return at.root(excess, np.maximum(at.top, 2 * decay / A), A, decay)


def _stationary(at: _Spectra, A: Array, decay: Array) -> Array:  # noqa: ARG001
    """Return the theta that minimises E at given noises."""

    def falling(at: _Spectra, theta: Array) -> tuple[Array, Array]:
        _, _, _, lean, rank = at.moments(theta)
        return -lean, rank

    return at.root(falling, at.top)


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
    A: Array, rho: Array, noise: Array, decay: Array, shift: Callable[[_Spectra, Array, Array], Array]
) -> tuple[Array, Array]:
    """Return the root in Delta of A Delta = noise + E(Delta, shift), and the shift there; zeros where there is none."""
    from scipy.optimize import elementwise

    def excess(log_delta: Array, A: Array, rho: Array, noise: Array, decay: Array) -> Array:
        at = _Spectra(np.exp(log_delta), rho)
        error = at.moments(shift(at, A, decay))[0]
        return np.asarray(np.log((noise + error) / A) - log_delta)

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
        theta[found] = shift(_Spectra(delta[found], rho), A, decay)
    return delta, theta
