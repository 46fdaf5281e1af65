"""Power law, polynomial or exponential: both are fitted, and the difference of their misfits is what is tested."""

import numpy as np
from numpy.typing import ArrayLike


def slope_of(x: ArrayLike, y: ArrayLike) -> float:
    """Return the slope of the line through some points."""
    return float(np.polyfit(np.asarray(x, dtype=float), np.asarray(y, dtype=float), 1)[0])


def misfit(x: ArrayLike, y: ArrayLike) -> float:
    """Return the share of the variation of y that a line in x leaves over."""
    place, height = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    left = height - np.polyval(np.polyfit(place, height, 1), place)
    return float(left @ left / np.sum((height - height.mean()) ** 2))


def exponential_over_power(x: ArrayLike, logs: ArrayLike) -> float:
    """Return how much less of log y an exponential in x leaves over than a power law: positive if it fits better."""
    return misfit(np.log(np.asarray(x, dtype=float)), logs) - misfit(x, logs)


def polynomial_over_exponential(x: ArrayLike, logs: ArrayLike, polynomial: ArrayLike) -> float:
    """Return how much less of log y a known polynomial times a power of x leaves over than an exponential does.

    Both have two free numbers: y = C P(x) x^p, given log P at every x, and y = C e^(b x).
    """
    place, height = np.asarray(x, dtype=float), np.asarray(logs, dtype=float)
    rest = height - np.asarray(polynomial, dtype=float)
    left = rest - np.polyval(np.polyfit(np.log(place), rest, 1), np.log(place))
    return misfit(place, height) - float(left @ left / np.sum((height - height.mean()) ** 2))
