"""How many samples a learner needs: where a learning curve falls through a level, and how that grows with the dimension."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attlas.errors import InputError
from attlas.inputs import array, ranked, real
from attlas.inputs import level as checked_level
from attlas.numerics import Line, fit_line, mean_interval


def sample_cost(sizes: ArrayLike, errors: ArrayLike, level: float = 0.5) -> float:
    """Return the first n at which the relative error is down to `level`, interpolated in logarithms (n50 at level 1/2).

    Parameters
    ----------
    sizes : array of shape (k,)
        Increasing.
    errors : array of shape (k,)
        Test errors over the variance of the target, positive.

    Returns
    -------
    float
        0 if the first error is already below the level, infinity if none is: both are censored, not measured.

    Examples
    --------
    >>> from attlas import features
    >>> round(features.sample_cost([100, 200, 400], [0.9, 0.6, 0.4]), 1)
    273.1
    """
    n, e = array(sizes, "sizes", ("k",)), array(errors, "errors", ("k",))
    level = real(level, "level", above=0)
    if len(n) != len(e) or n[0] <= 0 or np.any(np.diff(n) <= 0) or np.any(e <= 0):
        raise InputError("sizes must increase, and errors must be positive, one for each size")
    below = np.flatnonzero(e <= level)
    if not len(below):
        return float(np.inf)
    k = int(below[0])
    if k == 0:
        return 0.0
    share = np.log(e[k - 1] / level) / np.log(e[k - 1] / e[k])
    return float(n[k - 1] * (n[k] / n[k - 1]) ** share)


def cost_interval(costs: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """Return the typical sample cost over repeats and its interval, as (cost, low, high).

    Without censored repeats the geometric mean and Student's interval of the logarithms. With them (0 or infinity) the
    median and the interval of order statistics that contains it with this probability; its ends may be 0 or infinity.

    Parameters
    ----------
    costs : array of shape (repeats,)
        Of `sample_cost`, from independent draws of data.

    Examples
    --------
    >>> from attlas import features
    >>> [round(x) for x in features.cost_interval([410.0, 455.0, 430.0, 421.0])]
    [429, 400, 460]
    """
    from scipy import stats

    found, level = np.sort(np.atleast_1d(ranked(costs, "costs"))), checked_level(level)
    if found.ndim != 1 or len(found) < 2 or np.isnan(found).any() or np.any(found < 0):
        raise InputError("costs must be at least two numbers, none negative or NaN")
    if np.any((found > 0) & (found < 1e-9)):
        raise InputError(f"costs are numbers of samples, 0 where censored; got {found[found > 0][0]:g}")
    if np.all(np.isfinite(found) & (found > 0)):
        mean, low, high = mean_interval(np.log(found), level)
        return float(np.exp(mean)), float(np.exp(low)), float(np.exp(high))
    n = len(found)
    k = int(stats.binom.ppf((1 - level) / 2, n, 0.5))  # fewer than k below the median: rarer than (1 - level)/2
    low, high = (float(found[k - 1]), float(found[n - k])) if k else (0.0, float(np.inf))
    middle = (float(found[(n - 1) // 2]), float(found[n // 2]))
    return float(np.sqrt(middle[0] * middle[1])) if 0 < middle[0] <= middle[1] < np.inf else middle[1], low, high


class Exponent(NamedTuple):
    """The power of d with which a sample cost grows: the fitted line in logarithms, and how many points were censored."""

    line: Line
    censored: int


def exponent(d: ArrayLike, costs: ArrayLike) -> Exponent:
    """Fit log cost = a + b log d over the points that were measured; the line's slope is b.

    Raises
    ------
    InputError
        If fewer than three points, or two dimensions, are left.

    Examples
    --------
    >>> from attlas import features
    >>> found = features.exponent([8, 16, 32], [110.0, 430.0, 1750.0])
    >>> round(found.line.slope, 2)
    2.0
    """
    dimensions, found = ranked(d, "d"), ranked(costs, "costs")
    if dimensions.ndim != 1 or dimensions.shape != found.shape or np.isnan(found).any() or np.any(found < 0):
        raise InputError("an exponent needs as many costs as dimensions, none of them negative or NaN")
    if not np.all(dimensions > 0) or not np.all(np.isfinite(dimensions)):
        raise InputError("dimensions must be positive and finite")
    kept = np.isfinite(found) & (found > 0)
    if kept.sum() < 3 or len(np.unique(dimensions[kept])) < 2:
        raise InputError(f"an exponent needs three measured costs at two dimensions; {int(kept.sum())} are left")
    return Exponent(fit_line(np.log(dimensions[kept]), np.log(found[kept])), int((~kept).sum()))
