"""Learning to learn comes late and at once: gradient flow from a small start waits on a plateau, then drops."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import integer, numbers, real
from attlas.numerics import Solution, Status, stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Flow(Solution[Array]):
    """A gradient flow.

    Attributes
    ----------
    value : array
        The error on new tasks at every time.
    times : array
    half_time : float
        When half of the drop is done, by a line between the two times about it; NaN if it is not reached.
    start : float
        a_0 of `logistic_error` for this start.
    """

    times: Array = field(default_factory=lambda: np.empty(0))
    half_time: float = np.nan
    start: float = np.nan


def half_time(d: int, alpha: float, noise: float, start: float) -> float:
    """Return when half of the drop is done, by the logistic law.

    From a = start, 2 a - b a^2 reaches half of its largest value 1/b at a = (1 - 2^-1/2)/b: after

        t = (sqrt(d)/2) log((1/(start b) - 1)/(1 + 2^(1/2))).

    A smaller start waits longer, by sqrt(d)/2 for every factor e; a = v u/sqrt(d) is the square of the scale of the weights.

    Parameters
    ----------
    d : int
    alpha : float
        Examples of a context over d.
    noise : float
    start : float
        a at time 0 (`logistic_error`).

    Examples
    --------
    >>> from attlas import context
    >>> round(context.half_time(d=20, alpha=2, noise=0.1, start=1e-4), 2)
    17.61
    """  # fmt: skip
    b, start = _curvature(d, alpha, noise), real(start, "start", above=0)
    if start * b >= 1:
        raise InputError(f"start must be below 1/b = {1 / b:g}, where the drop ends; got {start:g}")
    return float(np.sqrt(d) / 2 * np.log((1 / (start * b) - 1) / (1 + np.sqrt(2))))


def logistic_error(times: ArrayLike, d: int, alpha: float, noise: float, start: float) -> Array:
    """Return the error along gradient flow from a small start, by the logistic law.

    For y_hat = v x'U h on new isotropic tasks, v and u = tr U/sqrt(d) soon are equal, and a = v u/sqrt(d) follows

        a(t) = (1/b) / (1 + (1/(a_0 b) - 1) e^(-2 t/sqrt(d))),   error = 1 + noise - 2 a + b a^2,

    b = 1 + 1/l + (1 + noise)/alpha: a plateau of length (sqrt(d)/2) log(1/(a_0 b)), then one abrupt drop to 1 + noise - 1/b.

    Parameters
    ----------
    times : array_like
    d : int
    alpha : float
        Examples of a context over d.
    noise : float
    start : float
        a_0 = (v_0 + u_0)^2/(4 sqrt(d)).

    Examples
    --------
    >>> from attlas import context
    >>> context.logistic_error([0, 20, 60], d=20, alpha=2, noise=0.1, start=1e-4).round(3).tolist()
    [1.1, 0.595, 0.465]

    References
    ----------
    zhang2025training for the plateau and the drop; the constants are derived here.
    """  # fmt: skip
    b = _curvature(d, alpha, noise)
    t = numbers(times, "times", least=0)
    gone = -2 * t / np.sqrt(d)  # 1 + (x - 1) e^gone, without the difference that cancels for a large start
    a = 1 / b / (np.exp(gone) / (real(start, "start", above=0) * b) - np.expm1(gone))
    return np.asarray(1 + noise - 2 * a + b * a**2)


def gradient_flow(
    times: ArrayLike, d: int, alpha: float, noise: float, scale: float, seed: int = 0, *, throw: bool = True
) -> Flow:
    """Integrate gradient flow of (v, U) on half the error, from v = scale and U = scale N(0, 1)/sqrt(d).

        dv/dt = tr U/d - b v |U|^2/d,   dU/dt = v/d - b v^2 U/d

    Of U only its trace and the size of the rest matter: three numbers are integrated.

    Parameters
    ----------
    times : array_like
        Rising, from 0 or later.
    d : int
    alpha : float
        Examples of a context over d.
    noise : float
    scale : float
    seed : int
        Of the start.

    throw : bool, default True
        Raise `ConvergenceError` if the integrator gives up, else say so in `status`.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> flow = context.gradient_flow(np.linspace(0, 60, 121), d=20, alpha=2, noise=0.1, scale=0.01)
    >>> round(float(flow.value[0]), 2), round(float(flow.value[-1]), 2)  # from predicting zero down to what one layer can do
    (1.1, 0.47)
    """  # fmt: skip
    from scipy.integrate import solve_ivp

    b, scale = _curvature(d, alpha, noise), real(scale, "scale", above=0)
    t = numbers(times, "times", least=0).ravel()
    if t[-1] == 0 or (np.diff(t) <= 0).any():
        raise InputError("times must rise, and end after 0")
    U = scale * stream(seed, "start").standard_normal((d, d)) / np.sqrt(d)
    u = float(np.trace(U)) / np.sqrt(d)
    rest = float(np.sum(U**2)) - u * u

    def move(_: float, state: Array) -> Array:
        v, u, rest = state
        return np.array(
            [u / np.sqrt(d) - b * v * (u * u + rest) / d, v / np.sqrt(d) - b * v * v * u / d, -2 * b * v * v * rest / d]
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an integrator that gives up says so in `success` too
        run = solve_ivp(
            move, (0, float(t[-1])), [scale, u, rest], t_eval=t, rtol=1e-9, atol=1e-12 * scale**2, method="LSODA"
        )
    v, u_, rest_ = np.reshape(run.y, (3, -1))  # of no columns, if it gave up before the first time
    error = 1 + noise - 2 * v * u_ / np.sqrt(d) + b * v**2 * (u_**2 + rest_) / d
    ended = run.success and np.isfinite(error).all()  # over very long times the integrator can lose its state
    status = Status.CONVERGED if ended else Status.OUT_OF_STEPS
    half = _crossing(t[: len(error)], error, 1 + noise - 1 / (2 * b))
    start = float((scale + u) ** 2 / (4 * np.sqrt(d)))
    flow = Flow(error, status, 0.0, int(run.nfev), times=t, half_time=half, start=start)
    return flow.or_raise("the gradient flow") if throw else flow


def _crossing(times: Array, values: Array, level: float) -> float:
    """Return when values first fall below a level, between two times by a line."""
    below = np.flatnonzero(values < level)
    if not len(below) or below[0] == 0:
        return np.nan
    i = int(below[0])
    share = (values[i - 1] - level) / (values[i - 1] - values[i])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))


def _curvature(d: int, alpha: float, noise: float) -> float:
    """Return b = E|h|^2/d of new isotropic tasks."""
    d, alpha = integer(d, "d"), real(alpha, "alpha", above=0)
    noise = real(noise, "noise", least=0)
    return 1 + 1 / max(1, round(alpha * d)) + (1 + noise) / alpha
