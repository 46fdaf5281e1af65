"""State evolution: the error of the Bayes-optimal estimate as the dimension grows.

The error V = ||S - S_hat||^2 / d solves V = F(1/qhat), qhat = 2 alpha G2(V). Written in the noise Delta = 1/qhat it is one
equation, 2 alpha Delta G2(F(Delta)) = 1, whose largest root belongs to the prior mean as a start. Every root is bracketed,
so that near a transition, where the iteration crawls, the answer is as exact as elsewhere.

References
----------
boncoraglio2025bayes; the equations are derived again in the notation of `docs/notation.md`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, Custom, Deep, Hardmax
from attlas.aim.deep import LayersFixedPoint
from attlas.aim.deep import state_evolution as layers_state_evolution
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import integer, numbers, real
from attlas.numerics import Solution, Status

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

# between these noises lies every fixed point with V > 1e-12
_LOWEST, _HIGHEST = np.log(1e-12), np.log(1e12)
_SCAN = np.linspace(_HIGHEST, _LOWEST, 400)
_RESOLVED = 1e-9  # below it F/Delta is flat to rounding, and roots in it are not roots


@dataclass(frozen=True)
class FixedPoint(Solution[float]):
    """The fixed point of the state evolution.

    Attributes
    ----------
    value : float
        V = ||S - S_hat||^2 / d.
    q : float
        Overlap Q - V, Q = 1 + rho.
    qhat : float
        Precision of the effective observation of S; infinite where V = 0.
    history : array
        V of the iteration from the prior mean, step by step: what message passing follows. It illustrates; the value is a
        bracketed root, and ``steps`` is the length of this history.
    standard_error : float
        Standard error of V where G2 is a Monte Carlo mean (`Custom`, hardmax of three and more tokens); else 0.
    status : Status
        Not converged also where the nodes of a `Custom` channel are too few for its noise (the Nishimori identity is missed
        by more than five standard errors).
    """

    q: float = np.nan
    qhat: float = np.nan
    standard_error: float = 0.0


@overload
def state_evolution(channel: Deep, alpha: float, rho: ArrayLike, *, steps: int = 100) -> LayersFixedPoint: ...


@overload
def state_evolution(channel: Channel, alpha: float, rho: float, *, steps: int = 100) -> FixedPoint: ...


def state_evolution(
    channel: Channel | Deep, alpha: float, rho: Any, *, steps: int = 100
) -> FixedPoint | LayersFixedPoint:
    """Return the error V of the Bayes-optimal estimate of S from n = alpha d^2 outputs of `channel`.

    Parameters
    ----------
    channel : Channel or Deep
        For `Deep` a `LayersFixedPoint` is returned: V of both layers in the diagonal approximation, with its Monte Carlo
        error. It takes some seconds, and minutes near perfect recovery.
    alpha : float
        Samples over d^2, not negative.
    rho : float
        Width over d, positive; for `Deep` also one for each layer.
    steps : int, default 100
        Length of the history.

    Returns
    -------
    FixedPoint
        ``residual`` is |V - F(1/(2 alpha G2(V)))|.
    """
    steps = integer(steps, "steps", least=0)
    _is_channel(channel)
    if isinstance(channel, Deep):
        return layers_state_evolution(channel, alpha, rho)
    alpha, rho = real(alpha, "alpha", least=0), real(rho, "rho", above=0)
    V = float(_errors(channel, np.array(alpha), np.array(rho)))
    history = iterate(channel, alpha, rho, steps)
    if alpha == 0:
        return FixedPoint(1.0, Status.CONVERGED, 0.0, 0, history, q=rho, qhat=0.0)
    if V == 0:
        return FixedPoint(0.0, Status.CONVERGED, 0.0, steps, history, q=1 + rho, qhat=np.inf)
    qhat = float(2 * alpha * channel.information(V, 1 + rho))
    residual = abs(V - (float(mmse(1 / qhat, rho)) if qhat > 1e-300 else 1.0))
    relative, resolved = _information_error(channel, V, 1 + rho)
    status = Status.CONVERGED if residual < 1e-8 and resolved else Status.OUT_OF_STEPS
    # G2 enters with alpha as a product, so its error is one of alpha
    sides = (
        _errors(channel, alpha * np.array([1 - relative, 1 + relative]), np.full(2, rho))
        if relative > 0
        else (0.0, 0.0)
    )
    error = float(abs(sides[1] - sides[0])) / 2
    return FixedPoint(V, status, residual, steps, history, q=1 + rho - V, qhat=qhat, standard_error=error)


def iterate(channel: Channel, alpha: float, rho: float, steps: int, start: float = 1.0) -> Array:
    """Return V_0 = start, V_1, ..., V_steps of V <- F(1/(2 alpha G2(V))), the course of message passing."""
    _one_layer(channel, "iterate")
    alpha, rho = real(alpha, "alpha", least=0), real(rho, "rho", above=0)
    V = real(start, "start", above=0)
    history = [V]
    for _ in range(integer(steps, "steps", least=0)):
        qhat = float(2 * alpha * channel.information(V, 1 + rho))
        V = max(float(mmse(1 / qhat, rho)), 1e-12) if qhat > 1e-300 else 1.0
        history.append(V)
    return np.array(history)


def fixed_points(channel: Channel, alpha: float, rho: float) -> Array:
    """Return every fixed point V, the largest first: more than one means a first-order transition nearby.

    The noise is scanned on 400 values over 24 decades; each change of sign is refined. V = 0 is listed where perfect
    recovery is a fixed point.
    """
    _one_layer(channel, "fixed_points")
    alpha, rho = real(alpha, "alpha", above=0), real(rho, "rho", above=0)
    found: list[float] = []
    values = _excess(_SCAN, channel, np.full_like(_SCAN, alpha), np.full_like(_SCAN, rho))
    if values[0] < 0:  # beyond the largest noise of the scan: V = 1 to rounding
        found.append(1.0)
    for i in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        root = _refine(channel, _SCAN[i + 1 : i + 2], _SCAN[i : i + 1], np.array([alpha]), np.array([rho]))
        V = float(mmse(np.exp(root), rho)[0])
        if V > _RESOLVED:  # smaller ones are rounding in F/Delta, which is flat there
            found.append(V)
    if channel.count is None and values[-1] > 0:
        found.append(_beyond(channel, alpha, rho))
    if channel.count is not None:  # V = 0 is always fixed without noise; it attracts above the threshold
        found.append(0.0)
    return np.array(found)


def recovery_threshold(channel: Channel, rho: float) -> float | None:
    """Return the alpha above which S is recovered perfectly, or None if no finite alpha suffices.

    (2 rho - rho^2)/C for rho <= 1 and 1/C above, with C = T^2 + T - 2 for softmax and T^2 + T for noiseless linear: the
    number of equations equals the number of parameters of S. For other channels the limit of alpha as V -> 0 is taken
    numerically.
    """
    _one_layer(channel, "recovery_threshold")
    rho = real(rho, "rho", above=0)
    if channel.count is not None:
        return (2 * rho - rho**2 if rho <= 1 else 1.0) / channel.count
    delta = np.array([1e-80, 1e-100])  # any noise of the channel is large against these
    first, second = 1 / (2 * delta * channel.information(_slope(rho) * delta, 1 + rho))
    return float(second) if abs(second / first - 1) < 1e-2 else None


def weak_recovery_threshold(channel: Channel) -> float:
    """Return the alpha/rho above which, as rho -> 0, the estimate beats the prior mean: 1/(2 G2) at V = Q = 1."""
    _one_layer(channel, "weak_recovery_threshold")
    return float(1 / (2 * channel.information(1.0, 1.0)))


def bayes_error(channel: Channel | Deep, alpha: float, rho: float) -> float:
    """Return the error of the posterior mean of the output, E ||y - E[y | data, X]||^2 over the T x T entries."""
    return _output_error(channel, alpha, rho, "bayes_error")


def plugin_error(channel: Channel | Deep, alpha: float, rho: float) -> float:
    """Return the error of putting the estimated indices into the output function; never below `bayes_error`."""
    return _output_error(channel, alpha, rho, "plugin_error")


def curve(channel: Channel, alpha: ArrayLike, rho: ArrayLike = 0.5) -> "xarray.Dataset":
    """Return V, overlap and threshold over a grid of alpha and rho, as an xarray.Dataset.

    Parameters
    ----------
    channel : Channel
    alpha, rho : array_like
        One-dimensional, or numbers. All combinations are computed, together.

    Returns
    -------
    xarray.Dataset
        Variables ``mse`` and ``overlap`` (= q/Q) of dimensions (rho, alpha), ``threshold`` of dimension rho (NaN for none).
    """
    import xarray

    _one_layer(channel, "curve")
    alphas, rhos = (np.atleast_1d(a) for a in (numbers(alpha, "alpha", least=0), numbers(rho, "rho", above=0)))
    if alphas.ndim != 1 or rhos.ndim != 1:
        raise InputError(f"alpha and rho must be numbers or lists; got shapes {alphas.shape} and {rhos.shape}")
    V = _errors(channel, *np.broadcast_arrays(alphas[None, :], rhos[:, None]))
    thresholds = [recovery_threshold(channel, r) for r in rhos]
    return xarray.Dataset(
        {
            "mse": (("rho", "alpha"), V),
            "overlap": (("rho", "alpha"), 1 - V / (1 + rhos[:, None])),
            "threshold": ("rho", [np.nan if t is None else t for t in thresholds]),
        },
        {"alpha": alphas, "rho": rhos},
        {"channel": repr(channel)},
    )


def _output_error(channel: Any, alpha: float, rho: Any, which: str) -> float:
    V = state_evolution(channel, alpha, rho, steps=0).value
    return float(getattr(channel, which)(V, 1 + np.asarray(rho)))


def _information_error(channel: Channel, V: float, Q: float) -> tuple[float, bool]:
    """Return the relative standard error of G2, and whether its quadrature resolves the channel."""
    if isinstance(channel, Custom):
        error, missed = channel.information_error(V, Q)
        return error / max(float(channel.information(V, Q)), 1e-300), missed < 5
    return (channel.information_error() if isinstance(channel, Hardmax) and channel.tokens > 2 else 0.0), True


def _is_channel(channel: Any) -> None:
    if not isinstance(channel, Channel | Deep):
        raise InputError(f"channel must be a channel such as aim.Softmax(2); got {channel!r}")


def _one_layer(channel: Any, what: str) -> None:
    _is_channel(channel)
    if isinstance(channel, Deep):
        raise InputError(f"{what} is for one layer; call state_evolution at each alpha for Deep")


def _errors(channel: Channel, alpha: Array, rho: Array) -> Array:
    """Return V for arrays of alpha and rho of one shape."""
    V = np.ones(alpha.shape)
    todo = alpha > 0
    if channel.count is not None:
        perfect = alpha * channel.count >= np.where(rho <= 1, 2 * rho - rho**2, 1.0)
        V[perfect & todo] = 0.0
        todo = todo & ~perfect
    if not todo.any():
        return V
    a, r = alpha[todo], rho[todo]
    low, high, found = _bracket(channel, a, r)
    values = np.zeros(len(a))
    if found.any():
        root = _refine(channel, low[found], high[found], a[found], r[found])
        values[found] = mmse(np.exp(root), r[found])
    if channel.count is None:
        values[~found] = [_beyond(channel, *pair) for pair in zip(a[~found], r[~found], strict=True)]
    V[todo] = values
    return V


@lru_cache(maxsize=128)
def _scanned(rho: float) -> Array:
    """Return F on the scan, which is the same for every channel: what one curve has computed the next one has."""
    found = mmse(np.exp(_SCAN), rho)
    found.flags.writeable = False
    return found


def _excess(log_delta: Array, channel: Channel, alpha: Array, rho: Array, F: Array | None = None) -> Array:
    """Return log(2 alpha Delta G2(F(Delta))): positive where the iteration moves to less noise."""
    delta = np.exp(log_delta)
    V = np.maximum(mmse(delta, rho) if F is None else F, 1e-300)
    with np.errstate(divide="ignore"):  # an output that tells nothing has G2 = 0
        value = np.asarray(np.log(alpha) + np.log(2 * delta * channel.information(V, 1 + rho)))
    if np.isnan(value).any():
        raise InputError(f"the information of {channel!r} is not a number; check its output function")
    return value


def _slope(rho: float) -> float:
    """Return lim F/Delta as Delta -> 0."""
    return 2 * rho - rho**2 if rho <= 1 else 1.0


def _beyond(channel: Channel, alpha: float, rho: float) -> float:
    """Return V where its noise is below the scan, by F = Delta times its slope; 0 if there is no root at all."""
    from scipy.optimize import brentq

    slope = _slope(rho)

    def excess(x: float) -> float:
        return float(np.log(2 * alpha) + x + np.log(channel.information(slope * np.exp(x), 1 + rho)))

    low = np.log(1e-280)
    if excess(low) > 0 or excess(_LOWEST) < 0:
        return 0.0
    return float(slope * np.exp(brentq(excess, low, _LOWEST, xtol=1e-12)))


def _bracket(channel: Channel, alpha: Array, rho: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return log Delta on both sides of the largest root, from a scan per distinct rho shared by all alpha."""
    low, high = np.full(len(alpha), _LOWEST), np.full(len(alpha), _HIGHEST)
    found = np.zeros(len(alpha), dtype=bool)
    for value in np.unique(rho):
        rows = np.flatnonzero(rho == value)
        # log alpha only shifts the excess, so one scan serves every alpha
        scan = _excess(_SCAN, channel, np.ones_like(_SCAN), np.full_like(_SCAN, value), _scanned(float(value)))
        below = scan[None, :] + np.log(alpha[rows])[:, None] < 0
        first = below.argmax(axis=1)
        found[rows] = below.any(axis=1)
        low[rows] = _SCAN[first]
        # a root beyond the largest noise of the scan: its V is 1 to rounding, and any bracket there will do
        high[rows] = np.where(first > 0, _SCAN[np.maximum(first - 1, 0)], np.inf)
    return low, high, found


def _refine(channel: Channel, low: Array, high: Array, alpha: Array, rho: Array) -> Array:
    """Return the root in log Delta between low and high, for all elements together."""
    from scipy.optimize import elementwise

    if np.isinf(high).any():
        root = np.full(len(high), _HIGHEST)
        inside = np.isfinite(high)
        if inside.any():
            root[inside] = _refine(channel, low[inside], high[inside], alpha[inside], rho[inside])
        return root

    def excess(x: Array, a: Array, r: Array) -> Array:
        return _excess(x, channel, a, r)

    options: dict[str, Any] = {"tolerances": {"xatol": 1e-12, "xrtol": 1e-13, "fatol": 0.0}, "maxiter": 80}
    return np.asarray(elementwise.find_root(excess, (low, high), args=(alpha, rho), **options).x)
