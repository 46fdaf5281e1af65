"""When the Bayes learner of k = e^(c d) training tasks can tell them apart, and what it then does with a new one."""

from dataclasses import dataclass

import numpy as np

from attlas.context.gaussian_prior import ridge_in_context
from attlas.inputs import real
from attlas.numerics import Solution, Status

_TOL = 1e-9


@dataclass(frozen=True)
class Freezing(Solution[float]):
    """Errors of the Bayes learner of e^(c d) training tasks, as d grows.

    Attributes
    ----------
    value : float
        The error on new tasks.
    idg : float
        The error on training tasks.
    frozen : bool
        Whether contexts tell the training tasks apart.
    penalty : float
        Of the ridge regression whose posterior is as narrow as the nearest of the tasks are; the noise unless frozen.
    """

    idg: float = np.nan
    frozen: bool = False
    penalty: float = np.nan

    @property
    def icl(self) -> float:
        """The error on new tasks."""
        return self.value


def freezing(rate: float, alpha: float, noise: float, *, throw: bool = True) -> Freezing:
    """Return the errors of the Bayes learner of e^(rate d) training tasks.

    If rate exceeds the information of a context, many training tasks fit each context, and the learner is ridge regression
    (`ridge_in_context`) on both kinds of task. Below, it knows which training task it sees: error `noise` there. On a
    new task it takes the nearest of those it knows, as the ground state of a random-energy model: with the penalty
    t >= noise at which ridge regression has used up `rate`,

        g = (1/d) tr (X'X + t)^-1:   t g^2 + (alpha - 1 + t) g = 1,   g' = -g (1 + g)/sqrt((alpha - 1 + t)^2 + 4 t)
        (1/2) (|w_t|^2/d + t g - 1 + alpha log(1 + g) + log(1 + r) - r t g) = rate,   r = alpha/(t (1 + g))
        error = noise + |w_t - w|^2/d + (1 - noise/t) t g.

    For k = kappa d tasks rate = log(k)/d tends to 0 and the error on new tasks to noise + 2.

    Parameters
    ----------
    rate : float
        log(k)/d.
    alpha : float
        Examples of a context over d.
    noise : float
        Variance of the noise of labels.

    Examples
    --------
    >>> from attlas import context
    >>> found = context.freezing(rate=0.1, alpha=2, noise=0.1)
    >>> round(found.icl, 3), round(found.idg, 3), found.frozen
    (1.299, 0.1, True)

    References
    ----------
    Our own derivation.
    """  # fmt: skip
    from scipy.optimize import brentq

    rate = real(rate, "rate", above=0)
    alpha, noise = real(alpha, "alpha", above=0), real(noise, "noise", above=0)
    gaussian = ridge_in_context(alpha, noise)
    if rate >= gaussian.information:
        return Freezing(gaussian.value, Status.CONVERGED, 0.0, 0, idg=gaussian.value, penalty=noise)

    def excess(x: float) -> float:
        return _used(float(np.exp(x)), alpha, noise) - rate

    low, high = np.log(noise) - 1e-9, np.log(noise) + 1
    most = high + 60 + np.log1p(alpha / noise)
    while excess(high) > 0 and high < most:
        high += 1
    if excess(low) > 0 > excess(high):
        low = brentq(excess, low, high, xtol=1e-13)
    t = float(np.exp(low))  # without a change of sign, by rounding alone, the residual says so
    residual = abs(_used(t, alpha, noise) - rate)
    g, slope = _trace(t, alpha)
    value = noise + _missed(t, g, slope, noise) + (1 - noise / t) * t * g
    status = Status.CONVERGED if residual < _TOL else Status.INACCURATE
    found = Freezing(value, status, residual, 0, idg=noise, frozen=True, penalty=t)
    return found.or_raise("the penalty of the frozen posterior") if throw else found


def _trace(t: float, alpha: float) -> tuple[float, float]:
    """Return g and its derivative."""
    a = alpha - 1 + t
    root = float(np.sqrt(a * a + 4 * t))
    g = 2 / (a + root) if a > 0 else (root - a) / (2 * t)
    return g, -g * (1 + g) / root


def _missed(t: float, g: float, slope: float, noise: float) -> float:
    """Return |w_t - w|^2/d."""
    return -t * t * slope + noise * (g + t * slope)


def _used(t: float, alpha: float, noise: float) -> float:
    """Return the rate at which the nearest of the tasks are as far as those of penalty t."""
    g, slope = _trace(t, alpha)
    length = 1 - 2 * t * g + _missed(t, g, slope, noise)
    r = alpha / (t * (1 + g))
    return 0.5 * float(length + t * g - 1 + alpha * np.log1p(g) + np.log1p(r) - r * t * g)
