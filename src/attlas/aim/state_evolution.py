"""State evolution: the error of the Bayes-optimal estimate as the dimension grows.

The error V = ||S - S_hat||^2 / d solves V = F(1/qhat), qhat = 2 alpha G2(V). Written in the noise Delta = 1/qhat it is one
equation, 2 alpha Delta G2(F(Delta)) = 1, whose largest root belongs to the prior mean as a start. Every root is bracketed,
so that near a transition, where the iteration crawls, the answer is as exact as elsewhere.

References
----------
boncoraglio2025bayes; the equations are derived again in the notation of `docs/notation.md`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, Deep
from attlas.aim.deep import LayersFixedPoint
from attlas.aim.deep import state_evolution as layers_state_evolution
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import real
from attlas.numerics import Solution, Status

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

# between these noises lies every fixed point with V > 1e-12
_LOWEST, _HIGHEST = np.log(1e-12), np.log(1e12)
_SCAN = np.linspace(_HIGHEST, _LOWEST, 400)


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
    trace : array
        V of the iteration from the prior mean, step by step: what message passing follows. It illustrates; the value is a
        bracketed root, and ``steps`` is the length of this trace.
    """

    q: float = np.nan
    qhat: float = np.nan


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
        Length of the trace.

    Returns
    -------
    FixedPoint
        ``residual`` is |V - F(1/(2 alpha G2(V)))|.
    """
    if isinstance(channel, Deep):
        return layers_state_evolution(channel, alpha, rho)
    alpha, rho = real(alpha, "alpha", least=0), real(rho, "rho", above=0)
    V = float(_errors(channel, np.array(alpha), np.array(rho)))
    trace = iterate(channel, alpha, rho, steps)
    if alpha == 0:
        return FixedPoint(1.0, Status.CONVERGED, 0.0, 0, trace, q=rho, qhat=0.0)
    if V == 0:
        return FixedPoint(0.0, Status.CONVERGED, 0.0, steps, trace, q=1 + rho, qhat=np.inf)
    qhat = float(2 * alpha * channel.information(V, 1 + rho))
    residual = abs(V - float(mmse(1 / qhat, rho)))
    status = Status.CONVERGED if residual < 1e-8 else Status.OUT_OF_STEPS
    return FixedPoint(V, status, residual, steps, trace, q=1 + rho - V, qhat=qhat)


def iterate(channel: Channel, alpha: float, rho: float, steps: int, start: float = 1.0) -> Array:
    """Return V_0 = start, V_1, ..., V_steps of V <- F(1/(2 alpha G2(V))), the course of message passing."""
    V, trace = start, [start]
    for _ in range(steps):
        image = float(mmse(1 / (2 * alpha * channel.information(V, 1 + rho)), rho)) if alpha > 0 else 1.0
        V = max(image, 1e-12)
        trace.append(V)
    return np.array(trace)


def fixed_points(channel: Channel, alpha: float, rho: float) -> Array:
    """Return every fixed point V, the largest first: more than one means a first-order transition nearby.

    The noise is scanned on 400 values over 24 decades; each change of sign is refined. V = 0 is listed where perfect
    recovery is a fixed point.
    """
    _one_layer(channel, "fixed_points")
    alpha, rho = real(alpha, "alpha", above=0), real(rho, "rho", above=0)
    found: list[float] = []
    values = _excess(_SCAN, channel, np.full_like(_SCAN, alpha), np.full_like(_SCAN, rho))
    for i in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        root = _refine(channel, _SCAN[i + 1 : i + 2], _SCAN[i : i + 1], np.array([alpha]), np.array([rho]))
        found.append(float(mmse(np.exp(root), rho)[0]))
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
    delta = np.array([1e-6, 1e-8])
    first, second = 1 / (2 * delta * channel.information(mmse(delta, rho), 1 + rho))
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
    alphas, rhos = (np.atleast_1d(np.asarray(a, dtype=float)) for a in (alpha, rho))
    for name, values in (("alpha", alphas), ("rho", rhos)):
        if (
            values.ndim != 1
            or not np.all(np.isfinite(values) & (values >= 0))
            or (name == "rho" and np.any(values == 0))
        ):
            raise InputError(
                f"{name} must be a list of {'positive' if name == 'rho' else 'non-negative'} finite numbers"
            )
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


def _one_layer(channel: Any, what: str) -> None:
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
    V[todo] = values
    return V


def _excess(log_delta: Array, channel: Channel, alpha: Array, rho: Array) -> Array:
    """Return log(2 alpha Delta G2(F(Delta))): positive where the iteration moves to less noise."""
    delta = np.exp(log_delta)
    V = np.maximum(mmse(delta, rho), 1e-300)
    return np.asarray(np.log(2 * alpha * delta * channel.information(V, 1 + rho)))


def _bracket(channel: Channel, alpha: Array, rho: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return log Delta on both sides of the largest root, from a scan per distinct rho shared by all alpha."""
    low, high = np.full(len(alpha), _LOWEST), np.full(len(alpha), _HIGHEST)
    found = np.zeros(len(alpha), dtype=bool)
    for value in np.unique(rho):
        rows = np.flatnonzero(rho == value)
        # log alpha only shifts the excess, so one scan serves every alpha
        scan = _excess(_SCAN, channel, np.ones_like(_SCAN), np.full_like(_SCAN, value))
        below = scan[None, :] + np.log(alpha[rows])[:, None] < 0
        first = below.argmax(axis=1)
        found[rows] = below.any(axis=1)
        low[rows], high[rows] = _SCAN[first], _SCAN[np.maximum(first - 1, 0)]
    return low, high, found


def _refine(channel: Channel, low: Array, high: Array, alpha: Array, rho: Array) -> Array:
    """Return the root in log Delta between low and high, for all elements together."""
    from scipy.optimize import elementwise

    def excess(x: Array, a: Array, r: Array) -> Array:
        return _excess(x, channel, a, r)

    options: dict[str, Any] = {"tolerances": {"xatol": 1e-12, "xrtol": 1e-13, "fatol": 0.0}, "maxiter": 80}
    return np.asarray(elementwise.find_root(excess, (low, high), args=(alpha, rho), **options).x)
