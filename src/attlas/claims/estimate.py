"""Estimates of one number with its uncertainty: what the tests of a claim are made of."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import AttlasError
from attlas.numerics import fit_line, rank_correlation, share_interval, stream

LEVEL = 0.99  # of every interval, and of all refutations of a claim together
EXPONENTS = (0.5, 2.0)  # of the corrections in 1/d that are tried beside 1
DRAWS = 400
K = TypeVar("K")


class Undecided(AttlasError):
    """Raised in a judge where the measurements cannot decide: too few of them, or not numbers."""


class Estimate(Protocol):
    """One number with its uncertainty."""

    @property
    def value(self) -> float:
        """The number."""

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the two-sided confidence interval."""

    def distance(self, edge: float) -> float:
        """Return (value - edge) in standard errors."""

    def numbers(self, name: str) -> dict[str, float]:
        """Return what a verdict reports of it."""

    def shifted(self, by: float) -> Self:
        """Return the same estimate of a number that is larger by this much."""


@dataclass(frozen=True)
class Exact:
    """A number without scatter: a result of arithmetic, an extreme, a count that must be what it is."""

    value: float

    def interval(self, level: float = LEVEL) -> tuple[float, float]:  # noqa: ARG002  # the same at every level
        """Return the number twice."""
        return self.value, self.value

    def distance(self, edge: float) -> float:
        """Return infinity with its sign: there is no standard error."""
        return float(np.inf * np.sign(self.value - edge)) if self.value != edge else 0.0

    def numbers(self, name: str) -> dict[str, float]:
        """Return the number."""
        return {name: self.value}

    def shifted(self, by: float) -> "Exact":  # noqa: ARG002
        """Return the same: arithmetic does not scatter about a truth."""
        return self


@dataclass(frozen=True)
class Student:
    """A value with a standard error and the degrees of freedom that the error is known with."""

    value: float
    error: float
    freedom: float

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the Student-t interval."""
        from scipy import special

        half = float(special.stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    def distance(self, edge: float) -> float:
        """Return (value - edge) in standard errors."""
        return (self.value - edge) / max(self.error, 1e-300)

    def numbers(self, name: str) -> dict[str, float]:
        """Return the value and half the width of its interval."""
        low, high = self.interval()
        return {name: self.value, f"{name} ±": (high - low) / 2}

    def shifted(self, by: float) -> Self:
        """Return the estimate of a number that is larger by this much."""
        return replace(self, value=self.value + by)


@dataclass(frozen=True)
class Share:
    """A share of successes, with the Clopper-Pearson interval; distances are those of the score test."""

    hits: int
    trials: int

    @property
    def value(self) -> float:
        """Hits over trials."""
        return self.hits / self.trials

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the Clopper-Pearson interval."""
        return share_interval(self.hits, self.trials, level)[1:]

    def distance(self, edge: float) -> float:
        """Return (value - edge) in standard errors that a share of `edge` would have."""
        if not 0 < edge < 1:
            return Exact(self.value).distance(edge)
        return float((self.value - edge) / np.sqrt(edge * (1 - edge) / self.trials))

    def numbers(self, name: str) -> dict[str, float]:
        """Return the share, its interval and the number of trials."""
        low, high = self.interval()
        return {name: self.value, f"{name}, low": low, f"{name}, high": high, f"{name}, trials": float(self.trials)}

    def shifted(self, by: float) -> "Share":  # noqa: ARG002
        """Return the same: a share has no error of its own to carry along."""
        return self


@dataclass(frozen=True)
class Correlation:
    """A rank correlation, with Fisher's interval."""

    value: float
    pairs: int

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return Fisher's interval."""
        from scipy import special

        half = float(special.ndtri((1 + level) / 2)) * self._error
        return float(np.tanh(self._transformed - half)), float(np.tanh(self._transformed + half))

    def distance(self, edge: float) -> float:
        """Return the distance of the transformed values in standard errors."""
        if not -1 < edge < 1:
            return Exact(self.value).distance(edge)
        return float((self._transformed - np.arctanh(edge)) / self._error)

    def numbers(self, name: str) -> dict[str, float]:
        """Return the correlation and its interval."""
        low, high = self.interval()
        return {name: self.value, f"{name}, low": low, f"{name}, high": high}

    def shifted(self, by: float) -> Self:
        """Return the estimate of a correlation that is larger by this much."""
        return replace(self, value=float(np.clip(self.value + by, -1, 1)))

    @property
    def _error(self) -> float:
        return float(np.sqrt(1.06 / (self.pairs - 3)))

    @property
    def _transformed(self) -> float:
        limit = 1 - 1 / self.pairs**2  # a perfect order of few pairs is no proof of a perfect correlation
        return float(np.arctanh(np.clip(self.value, -limit, limit)))


@dataclass(frozen=True)
class FiniteSize(Student):
    """What a quantity tends to as d grows, a + C/d fitted to its means by weighted least squares.

    Attributes
    ----------
    value, error, freedom : float
        Of a. The error is that of the means, the freedom Welch and Satterthwaite's.
    slope : float
        C.
    misfit : float
        Probability of a lack of fit at least as large if the law were 1/d; NaN for two sizes.
    others : tuple of Student
        The same limit with corrections d^-1/2 and d^-2. Where the law 1/d does not fit (misfit below 1 %) the interval
        covers them all.
    """

    slope: float = np.nan
    misfit: float = np.nan
    others: tuple[Student, ...] = ()

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval of a; of all three laws if 1/d does not fit."""
        ends = [Student.interval(self, level)]
        if self.misfit < 1 - LEVEL:
            ends += [other.interval(level) for other in self.others]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def numbers(self, name: str) -> dict[str, float]:
        """Return a, C, the lack of fit, and the limits under the other laws."""
        limits = [self.value, *(other.value for other in self.others)]
        return super().numbers(name) | {
            f"{name}: C": self.slope,
            f"{name}: probability of such a lack of fit": self.misfit,
            f"{name}: least over the powers 1/2, 1, 2 of 1/d": min(limits),
            f"{name}: largest over the powers 1/2, 1, 2 of 1/d": max(limits),
        }

    def shifted(self, by: float) -> Self:
        """Return the estimate of a limit that is larger by this much, where the law 1/d holds.

        Resampled runs repeat the chance deviations of their sizes from the law, so their lack of fit says nothing.
        """
        moved = tuple(other.shifted(by) for other in self.others)
        return replace(self, value=self.value + by, others=moved, misfit=np.nan)


def mean(samples: ArrayLike) -> Student | Exact:
    """Estimate a mean; of differences on the same data, a paired one. Infinite samples have an infinite mean."""
    x = _samples(samples)
    if not np.isfinite(x).all():
        return Exact(float(x.sum()))
    if len(x) < 2:
        raise Undecided("needs two seeds at least")
    return Student(float(x.mean()), float(np.std(x, ddof=1) / np.sqrt(len(x))), len(x) - 1)


def share(hits: Sequence[Any] | NDArray[Any]) -> Share:
    """Estimate how often something is true."""
    said = [bool(hit) for hit in hits]
    if not said:
        raise Undecided("there is no run to count")
    return Share(sum(said), len(said))


def slope(x: ArrayLike, y: ArrayLike) -> Student:
    """Estimate the slope of y = a + b x, every repeat a point of its own."""
    x, y = _samples(x), _samples(y)
    if len(x) < 3 or np.ptp(x) == 0 or not np.isfinite(y).all():
        raise Undecided("a slope needs three finite points and two different places")
    line = fit_line(x, y)
    return Student(line.slope, line.slope_error, line.freedom)


def correlation(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Estimate Spearman's rank correlation; infinities are ranked last."""
    x, y = _samples(x), _samples(y)
    if len(x) < 5:
        raise Undecided("a rank correlation needs five pairs")
    return Correlation(rank_correlation(x, y)[0], len(x))


def finite_size(rows: Sequence[tuple[int, float]], *, sizes: int = 3) -> FiniteSize | Exact:
    """Extrapolate (d, value) pairs of several seeds to d = infinity.

    The means of the sizes are fitted as a + C/d, weighted by the variance of each mean; that comes from the scatter of its
    own seeds.

    Parameters
    ----------
    rows : sequence of (d, value)
    sizes : int, default 3
        How many sizes are needed, with two seeds at each. Four are better: they leave the law 1/d something to fail.
    """
    d, values = _samples([size for size, _ in rows]), _samples([value for _, value in rows])
    if not np.isfinite(values).all():
        return Exact(float(values.sum()))
    groups = [values[d == size] for size in np.unique(d)]
    if len(groups) < max(sizes, 2) or min(map(len, groups)) < 2:
        raise Undecided(f"needs {max(sizes, 2)} sizes and two seeds at each")
    places = np.unique(d)
    fits = {power: _weighted(places**-power, groups) for power in (1.0, *EXPONENTS)}
    (limit, slope_, misfit), others = fits[1.0], tuple(fits[power][0] for power in EXPONENTS)
    return FiniteSize(limit.value, limit.error, limit.freedom, slope_, misfit, others)


def _weighted(x: NDArray[np.float64], groups: Sequence[NDArray[np.float64]]) -> tuple[Student, float, float]:
    """Fit means = a + b x; return a, b, and the probability of such a lack of fit.

    The weights follow a power law of the variances in x: weights from the scatter of a handful of seeds each would go with
    that scatter, and intervals of 99 % cover 97.8 %. The error is that of the scatter or of the law, the larger.
    """
    from scipy import special

    means, counts = np.array([g.mean() for g in groups]), np.array([len(g) for g in groups])
    least = max(1e-30 * float(np.max(means**2)), 1e-200)
    scatter = np.maximum([np.var(g, ddof=1) for g in groups], least)
    law = np.polyfit(np.log(x), np.log(scatter), 1, w=np.sqrt(counts - 1.0))
    assumed = np.exp(np.polyval(law, np.log(x))) / counts
    design = np.stack([np.ones_like(x), x])
    weights = np.linalg.solve((design / assumed) @ design.T, design / assumed)  # (a, b) = weights @ means
    a, b = (float(w @ means) for w in weights)
    parts = weights[0] ** 2 * scatter / counts
    freedom = float(1 / np.sum((parts / parts.sum()) ** 2 / (counts - 1)))
    left, known = len(x) - 2, float(np.sum(counts - 1))
    pooled = float(np.sum((counts - 1) * scatter / (assumed * counts))) / known  # 1 if the law of variances is right
    residual = float(np.sum((means - a - b * x) ** 2 / assumed)) / pooled
    misfit = float(special.fdtrc(left, known, residual / left)) if left else np.nan
    variance = max(float(parts.sum()), pooled * float(np.sum(weights[0] ** 2 * assumed)))
    return Student(a, float(np.sqrt(variance)), freedom), b, misfit


def resampled(statistic: Callable[[Mapping[K, NDArray[Any]]], float], groups: Mapping[K, ArrayLike]) -> Student:
    """Estimate any statistic of groups of repeats, its error from 400 resamplings of the repeats within each group.

    Parameters
    ----------
    statistic : callable
        ``statistic({name: samples}) -> float``.
    groups : mapping
        The repeats, by the place where they were measured; rows of an array stay together.
    """
    own = {name: np.asarray(samples, dtype=float) for name, samples in groups.items()}
    fewest = min((len(samples) for samples in own.values()), default=0)
    if fewest < 3:
        raise Undecided("needs three seeds at least")
    drawn = [
        statistic({name: samples[rows] for (name, samples), rows in zip(own.items(), each, strict=True)})
        for each in _resamplings(tuple(map(len, own.values())))
    ]
    value = float(statistic(own))
    if not np.isfinite([value, *drawn]).all():
        raise Undecided("a statistic of the resampled runs is not finite")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        inflated = float(np.std(drawn, ddof=1)) * np.sqrt(
            fewest / (fewest - 1)
        )  # resampling n of n understates by this
    return Student(value, inflated, fewest - 1)


@lru_cache(maxsize=16)
def _resamplings(sizes: tuple[int, ...]) -> list[list[NDArray[Any]]]:
    """Return which repeats of groups of these sizes each resampling draws: the same for every statistic."""
    rng = stream(0, "resampling")
    return [[rng.integers(size, size=size) for size in sizes] for _ in range(DRAWS)]


def _samples(samples: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(samples, dtype=float).ravel()
    if np.isnan(x).any():
        raise Undecided(f"{int(np.isnan(x).sum())} of {len(x)} values are not numbers")
    return x
