"""Confidence intervals: of a mean, of a line."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, ranked
from attlas.inputs import level as checked_level


def mean_interval(samples: ArrayLike, level: float = 0.99) -> tuple[float, float, float]:
    """Return the mean of `samples` and its Student-t interval, as (mean, low, high).

    Valid for independent samples whose mean is close to normal. Needs at least two.

    Examples
    --------
    >>> from attlas import numerics
    >>> [round(x, 3) for x in numerics.mean_interval([1.0, 1.2, 0.9, 1.1], level=0.95)]
    [1.05, 0.845, 1.255]
    """
    from scipy import stats

    x, level = array(samples, "samples", ("n",)), checked_level(level)
    if len(x) < 2:
        raise InputError("an interval needs at least two samples")
    half = stats.t.ppf((1 + level) / 2, len(x) - 1) * np.std(x, ddof=1) / np.sqrt(len(x))
    return float(x.mean()), float(x.mean() - half), float(x.mean() + half)


def share_interval(hits: int, trials: int, level: float = 0.99) -> tuple[float, float, float]:
    """Return the share of successes and its Clopper-Pearson interval, as (share, low, high).

    Examples
    --------
    >>> from attlas import numerics
    >>> [round(x, 3) for x in numerics.share_interval(10, 10, level=0.95)]
    [1.0, 0.692, 1.0]
    """
    from scipy import stats

    hits, trials, level = integer(hits, "hits", least=0), integer(trials, "trials"), checked_level(level)
    if hits > trials:
        raise InputError(f"a share needs 0 <= hits <= trials and one trial; got {hits} of {trials}")
    tail = (1 - level) / 2
    low = float(stats.beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return hits / trials, low, high


def rank_correlation(x: ArrayLike, y: ArrayLike, level: float = 0.99) -> tuple[float, float, float]:
    """Return Spearman's rank correlation and its interval, as (value, low, high).

    Infinities are ranked last, ties share ranks. The interval is Fisher's, with variance 1.06/(n - 3) of the transformed
    correlation (fieller1957tests), which is good for values up to 0.8 and too narrow beyond. Needs at least five pairs.

    Examples
    --------
    >>> from attlas import numerics
    >>> numerics.rank_correlation(range(12), [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 11, 10])[0] > 0.9
    True
    """
    from scipy import special

    a, b, level = ranked(x, "x"), ranked(y, "y"), checked_level(level)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 5 or np.isnan(a).any() or np.isnan(b).any():
        raise InputError("a rank correlation needs at least five pairs, none of them NaN")
    if np.all(a == a[0]) or np.all(b == b[0]):
        raise InputError("a rank correlation needs two different values on either side")
    value = float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])
    half = float(special.ndtri((1 + level) / 2)) * np.sqrt(1.06 / (len(a) - 3))
    limit = 1 - 1 / len(a) ** 2  # a perfect order of few pairs is no proof of a perfect correlation
    centre = np.arctanh(np.clip(value, -limit, limit))
    return value, min(value, float(np.tanh(centre - half))), max(value, float(np.tanh(centre + half)))


def _ranks(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks of numbers, ties sharing theirs: `scipy.stats.rankdata`, whose checks take ten times as long."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


@dataclass(frozen=True)
class Line:
    """A fitted line y = intercept + slope x, with standard errors and degrees of freedom."""

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    freedom: int

    def intercept_interval(self, level: float = 0.99) -> tuple[float, float]:
        """Return the two-sided confidence interval of the intercept."""
        return self._interval(self.intercept, self.intercept_error, level)

    def slope_interval(self, level: float = 0.99) -> tuple[float, float]:
        """Return the two-sided confidence interval of the slope."""
        return self._interval(self.slope, self.slope_error, level)

    def _interval(self, centre: float, error: float, level: float) -> tuple[float, float]:
        from scipy import stats

        half = float(stats.t.ppf((1 + checked_level(level)) / 2, self.freedom)) * error
        return centre - half, centre + half


def fit_line(x: ArrayLike, y: ArrayLike) -> Line:
    """Fit y = a + b x by least squares, the errors taken from the scatter of the residuals.

    Parameters
    ----------
    x, y : array_like of shape (n,)
        At least three points with two different x. Give every repeat as a point of its own: the scatter
        between repeats is what the errors are made of.

    Examples
    --------
    >>> from attlas import numerics
    >>> line = numerics.fit_line([0, 1, 2, 3], [1.0, 3.1, 4.9, 7.0])
    >>> round(line.slope, 3), round(line.slope_error, 3)
    (1.98, 0.042)
    """
    x, y = array(x, "x", ("n",)), array(y, "y", ("n",))
    if len(x) != len(y) or len(x) < 3 or np.ptp(x) == 0:
        raise InputError("a line needs at least three points (x, y) with two different x")
    centre, count = float(x.mean()), len(x)
    spread = float(np.sum((x - centre) ** 2))
    slope = float((x - centre) @ y) / spread
    intercept = float(y.mean()) - slope * centre
    variance = float(np.sum((y - intercept - slope * x) ** 2)) / (count - 2)
    intercept_error = float(np.sqrt(variance * (1 / count + centre**2 / spread)))
    return Line(intercept, slope, intercept_error, float(np.sqrt(variance / spread)), count - 2)
