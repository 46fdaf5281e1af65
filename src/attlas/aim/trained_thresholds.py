"""Where training without decay finds the teacher, and where it fits the data exactly."""

from typing import NamedTuple

import numpy as np

from attlas.aim.channels import Channel
from attlas.aim.family import LOWEST, family, highest, width
from attlas.aim.measurements import measurements
from attlas.aim.shrunk import Shrunk
from attlas.inputs import real


class TrainedThreshold(NamedTuple):
    """A = 2 (measurements)/d^2 from which S is recovered without noise: by the smallest trace, and by S >= 0 alone."""

    minimum_trace: float
    psd_only: float


def trained_threshold(rho: float) -> TrainedThreshold:
    """Return the A above which, without noise, the smallest trace (decay -> 0+) recovers S, and S >= 0 alone.

    With t = theta/sqrt(Delta (1 - rho)) as Delta -> 0 and mu the semicircle of radius 2, E/Delta -> M(t) = 2 rho - rho^2 +
    rho (1 - rho) t^2 + (1 - rho)^2 int (u - t)_+^2 dmu. The first is the minimum of M, the second M(0) = 1/2 + rho -
    rho^2/2. Both are 1 for rho >= 1. Divide by T^2 + T - 2 (softmax) or T^2 + T (linear) for alpha.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.trained_threshold(0.5)
    >>> round(found.minimum_trace, 4), round(found.psd_only, 4)
    (0.8443, 0.875)

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

    Examples
    --------
    >>> from attlas import aim
    >>> alpha, peak = aim.interpolation_threshold(aim.Linear(tokens=1, noise=1.0), rho=0.5)
    >>> round(alpha, 4), round(peak, 3)
    (0.2911, 6.218)

    References
    ----------
    Derived here from the equations of boncoraglio2025inductive.
    """
    from scipy.optimize import brentq

    per_alpha, noise = measurements(channel, 1.0)
    rho = width(rho)
    if noise == 0:
        return trained_threshold(rho).psd_only / float(per_alpha), 0.0

    def excess(log_delta: float) -> float:
        delta = np.exp(log_delta)
        at = Shrunk(np.array([delta]), np.array([rho]))(np.zeros(1))
        return float(noise + at.mse[0] - at.divergence[0] * delta)

    delta = float(np.exp(brentq(excess, np.log(LOWEST), np.log(highest(rho)), xtol=1e-13)))
    at = family(delta, 0.0, rho, noise)
    return float(at.A) / float(per_alpha), float(at.mse)
