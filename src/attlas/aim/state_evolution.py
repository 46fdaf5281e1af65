"""State evolution: the error of the Bayes-optimal estimate as the dimension grows.

The error V = ||S - S_hat||^2 / d solves V = F(1/qhat), qhat = 2 alpha G2(V).

References
----------
boncoraglio2025bayes; the equations are derived again in the notation of `docs/notation.md`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim import fixed_point, roots
from attlas.aim.channels import Channel, ChannelDefaults, complete, one_layer
from attlas.aim.fixed_point import FixedPoint
from attlas.aim.model import widths
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import integer, numbers, real
from attlas.numerics import Progress, Solution, Status

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]


def state_evolution(
    channel: Channel,
    alpha: float,
    rho: ArrayLike,
    *,
    steps: int = 100,
    max_steps: int = 200,
    throw: bool = True,
    progress: Progress | None = None,
) -> FixedPoint:
    """Return the error V of the Bayes-optimal estimate of S from n = alpha d^2 outputs of `channel`.

    Parameters
    ----------
    channel : Channel
        Of `Deep` V of both layers is found, in the diagonal approximation, by iteration. It takes some seconds, and minutes
        near perfect recovery.
    alpha : float
        Samples over d^2, not negative.
    rho : float
        Width over d, positive; for several layers also one for each.
    steps : int, default 100
        Length of the history, for one layer.
    max_steps : int, default 200
        Of the iteration, for several layers. One layer needs none: its fixed point is a bracketed root.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step of the iteration, for several layers.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.state_evolution(aim.Softmax(tokens=2), alpha=0.1, rho=0.5)
    >>> round(found.value, 4), found.status.name
    (0.3922, 'CONVERGED')
    """
    steps, max_steps = integer(steps, "steps", least=0), integer(max_steps, "max_steps")
    known, alpha = complete(channel), real(alpha, "alpha", least=0)
    rhos = widths(rho, known.layers)
    if known.layers == 1:
        found = fixed_point.of_one_layer(
            known, alpha, float(rhos[0]), iterate(known, alpha, float(rhos[0]), steps, throw=False)
        )
    else:
        found = fixed_point.of_several_layers(known, alpha, rhos, max_steps, progress)
    return found.or_raise("the state evolution") if throw else found


def iterate(channel: Channel, alpha: float, rho: float, steps: int, start: float = 1.0, *, throw: bool = True) -> Array:
    """Return V_0 = start, V_1, ..., V_steps of V <- F(1/(2 alpha G2(V))), the course of message passing.

    Raises `ConvergenceError`, unless `throw` is False, if the quadrature behind G2 does not resolve the channel.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.iterate(aim.Softmax(tokens=2), alpha=0.1, rho=0.5, steps=4).round(3).tolist()  # on the way to 0.392
    [1.0, 0.634, 0.514, 0.46, 0.431]
    """
    known = one_layer(channel, "iterate")
    alpha, rho = real(alpha, "alpha", least=0), real(rho, "rho", above=0)
    V = real(start, "start", above=0)
    history = [V]
    for _ in range(integer(steps, "steps", least=0)):
        qhat = float(2 * alpha * known.information(V, 1 + rho))
        V = max(float(mmse(1 / qhat, rho)), 1e-12) if qhat > 1e-300 else 1.0
        history.append(V)
    if throw:
        _require_resolved(known, V, 1 + rho, "the iteration of the state evolution")
    return np.array(history)


def fixed_points(channel: Channel, alpha: float, rho: float, *, throw: bool = True) -> Array:
    """Return every fixed point V, the largest first: more than one means a first-order transition nearby.

    The noise is scanned on 400 values over 24 decades; each change of sign is refined. V = 0 is listed where perfect
    recovery is a fixed point. Raises `ConvergenceError` as `iterate` does.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.fixed_points(aim.Softmax(tokens=2), alpha=0.1, rho=0.5).round(4).tolist()
    [0.3922, 0.0]
    """
    known = one_layer(channel, "fixed_points")
    found = roots.every(known, real(alpha, "alpha", above=0), real(rho, "rho", above=0))
    for V in found[found > 0] if throw else ():
        _require_resolved(known, float(V), 1 + rho, "the search for fixed points")
    return found


def recovery_threshold(channel: Channel, rho: float) -> float | None:
    """Return the alpha above which S is recovered perfectly, or None if no finite alpha suffices.

    (2 rho - rho^2)/C for rho <= 1 and 1/C above, with C = T^2 + T - 2 for softmax and T^2 + T for noiseless linear: the
    number of equations equals the number of parameters of S. For channels without a `count` the limit of alpha as V -> 0 is
    taken numerically.

    Examples
    --------
    >>> from attlas import aim
    >>> aim.recovery_threshold(aim.Softmax(tokens=2), rho=0.5)
    0.1875
    >>> aim.recovery_threshold(aim.Linear(tokens=1, noise=0.5), rho=0.5) is None  # never perfect with noise
    True
    """
    known = one_layer(channel, "recovery_threshold")
    rho = real(rho, "rho", above=0)
    if known.count is not None:
        return roots.slope(rho) / known.count
    delta = np.array([1e-80, 1e-100])  # any noise of the channel is large against these
    first, second = 1 / (2 * delta * known.information(roots.slope(rho) * delta, 1 + rho))
    return float(second) if abs(second / first - 1) < 1e-2 else None


def weak_recovery_threshold(channel: Channel, *, throw: bool = True) -> float:
    """Return the alpha/rho above which, as rho -> 0, the estimate beats the prior mean: 1/(2 G2) at V = Q = 1.

    Raises `ConvergenceError` as `iterate` does.

    Examples
    --------
    >>> from attlas import aim
    >>> round(aim.weak_recovery_threshold(aim.Softmax(tokens=2)), 4)  # 1/(T^2 + T - 2)
    0.25
    """
    known = one_layer(channel, "weak_recovery_threshold")
    if throw:
        _require_resolved(known, 1.0, 1.0, "the threshold of weak recovery")
    return float(1 / (2 * known.information(1.0, 1.0)))


def bayes_error(channel: Channel, alpha: float, rho: ArrayLike, *, throw: bool = True) -> float:
    """Return the error of the posterior mean of the output, E ||y - E[y | data, X]||^2 over the T x T entries.

    Of the output without its noise. It stands on the fixed point of `state_evolution`; where that is not converged,
    `ConvergenceError` is raised unless `throw` is False.

    Examples
    --------
    >>> from attlas import aim
    >>> round(aim.bayes_error(aim.Softmax(tokens=2), alpha=0.1, rho=0.5), 4)
    0.1209
    """
    V = state_evolution(channel, alpha, rho, steps=0, throw=throw).value
    Q: Any = 1 + np.asarray(rho)
    return complete(channel).bayes_error(V, Q)


def plugin_error(channel: Channel, alpha: float, rho: ArrayLike, *, throw: bool = True) -> float:
    """Return the error of putting the estimated indices into the output function; never below `bayes_error`.

    Raises `ConvergenceError` as that does.

    Examples
    --------
    >>> from attlas import aim
    >>> channel = aim.Softmax(tokens=2)
    >>> plugin, bayes = (error(channel, alpha=0.1, rho=0.5) for error in (aim.plugin_error, aim.bayes_error))
    >>> bool(plugin > bayes)
    True
    """
    V = state_evolution(channel, alpha, rho, steps=0, throw=throw).value
    Q: Any = 1 + np.asarray(rho)
    return complete(channel).plugin_error(V, Q)


def curve(
    channel: Channel, alpha: ArrayLike, rho: ArrayLike = 0.5, *, progress: Progress | None = None
) -> "xarray.Dataset":
    """Return V and the threshold over a grid of alpha and rho, as an xarray.Dataset.

    Parameters
    ----------
    channel : Channel
        Of one layer.
    alpha, rho : array_like
        One-dimensional, or numbers. All combinations are computed, together.
    progress : callable, optional
        Called with an `Event` after every rho, whose table is what takes long where a channel has one.

    Returns
    -------
    xarray.Dataset
        Of dimensions (rho, alpha): ``mse``, which is V; ``explained`` = 1 - V/Q, the share of ||S||^2 that the estimate
        explains (the overlap <S_hat, S>/d over Q); ``residual`` = |V - F(1/(2 alpha G2(V)))|; and ``converged``, whether the
        residual is below 1e-8 and the quadrature behind G2 resolves the channel. Of dimension rho: ``threshold``, NaN for
        none.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.curve(aim.Softmax(tokens=2), alpha=[0.05, 0.1, 0.2], rho=0.5)
    >>> found["mse"].values.ravel().round(3).tolist(), found["threshold"].values.ravel().tolist()
    ([0.724, 0.392, 0.0], [0.1875])
    """
    import xarray

    known = one_layer(channel, "curve")
    alphas, rhos = (np.atleast_1d(a) for a in (numbers(alpha, "alpha", least=0), numbers(rho, "rho", above=0)))
    if alphas.ndim != 1 or rhos.ndim != 1:
        raise InputError(f"alpha and rho must be numbers or lists; got shapes {alphas.shape} and {rhos.shape}")
    alpha_grid, rho_grid = np.broadcast_arrays(alphas[None, :], rhos[:, None])
    V = roots.largest(known, alpha_grid, rho_grid, progress)
    residual, resolved = roots.missed(known, V, alpha_grid, rho_grid)
    thresholds = [recovery_threshold(known, r) for r in rhos]
    dims = ("rho", "alpha")
    return xarray.Dataset(
        {
            "mse": (dims, V),
            "explained": (dims, 1 - V / (1 + rhos[:, None])),
            "residual": (dims, residual),
            "converged": (dims, resolved & (residual < roots.RESIDUAL)),
            "threshold": ("rho", [np.nan if t is None else t for t in thresholds]),
        },
        {"alpha": alphas, "rho": rhos},
        {"channel": repr(channel)},
    )


def _require_resolved(channel: ChannelDefaults, V: float, Q: float, what: str) -> None:
    """Raise `ConvergenceError` if the quadrature behind G2 misses the Nishimori identity at V."""
    missed = float(np.max(channel.information_error(V, Q)[1]))
    if missed > roots.MISSED:
        Solution(V, Status.INACCURATE, missed, 0).or_raise(what)
