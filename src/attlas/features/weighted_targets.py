"""Targets of ridge regression: centred, weighted, and what is left out of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """What a ridge regression learns: min sum_i w_i (y_i - b - f(x_i))^2 + penalty, b the weighted mean of y.

    Solutions are linear in the targets, so a column of ones beside them tells what another b would have done.

    Parameters
    ----------
    Y : array of shape (n, targets)
    intercept : bool
        b is 0 if false.
    weight : array of shape (n,), optional
        All 1 if not given.
    total : float
        sum(w), of all samples if these are a part of them.
    mean : array of shape (targets,)
        b, likewise.
    """

    Y: Array
    intercept: bool
    weight: Array | None
    total: float
    mean: Array

    @classmethod
    def all(cls, Y: Array, intercept: bool = False, weight: Array | None = None) -> "Targets":
        """Return the targets of all samples."""
        mean = mean_of(Y, weight) if intercept else np.zeros(Y.shape[1])
        return cls(Y, intercept, weight, float(len(Y) if weight is None else weight.sum()), mean)

    def of(self, samples: Any) -> "Targets":
        """Return those of some samples, a part of all."""
        weight = None if self.weight is None else self.weight[samples]
        return Targets(self.Y[samples], self.intercept, weight, self.total, self.mean)

    def alone(self, samples: Any) -> "Targets":
        """Return those of some samples, as if there were no others."""
        return Targets.all(self.Y[samples], self.intercept, None if self.weight is None else self.weight[samples])

    @cached_property
    def columns(self) -> Array:
        """Y - b, and a column of ones if there is an intercept. What differs from b by the rounding of b is b."""
        centred, rounding = self.Y - self.mean, 8 * np.finfo(float).eps * np.sqrt(len(self.Y)) * np.abs(self.mean)
        return with_constant(np.where(np.abs(centred) <= rounding, 0.0, centred), self.intercept)

    @cached_property
    def root(self) -> Array | None:
        """sqrt(w), (n,)."""
        return None if self.weight is None else np.sqrt(self.weight)

    @cached_property
    def weighted(self) -> Array:
        """The columns times sqrt(w)."""
        return self.columns if self.root is None else self.columns * self.root[:, None]

    def product(self, K: Array) -> Array:
        """Return sqrt(w) K sqrt(w)."""
        return K if self.root is None else K * self.root[:, None] * self.root

    def solution(self, coefficients: Array) -> Array:
        """Return the coefficients of the targets, given those of all columns."""
        return coefficients[:, : self.Y.shape[1]]

    def dual(self, coefficients: Array) -> Array:
        """Return the dual coefficients of the targets, given those of all columns under `product`."""
        found = self.solution(coefficients)
        return found if self.root is None else found * self.root[:, None]

    def missed(self, errors: Array) -> Array:
        """Return the leave-one-out errors (n, targets), given those of all columns at fixed b.

        Without sample i the mean of Y - b is m_i = -w_i (y_i - b)/(sum w - w_i), and a shift of all targets by m_i moves
        the error by -m_i times that of the constant.
        """
        if not self.intercept:
            return errors
        weight = np.ones(len(self.Y)) if self.weight is None else self.weight
        rest = self.total - weight
        if np.any(rest <= 0):
            raise InputError("leave-one-out with an intercept needs two samples with positive weights")
        means = -(weight / rest)[:, None] * self.columns[:, :-1]
        return np.asarray(errors[:, :-1] - means * errors[:, -1:])

    def left_out(self, fitted: Array, leverage: Array) -> Array:
        """Return the leave-one-out errors (n, targets), given predictions of all columns and phi^T (G + lam)^-1 phi."""
        kept = 1 - (leverage if self.weight is None else self.weight * leverage)
        return self.missed((self.columns - fitted) / np.maximum(kept, 1e-12)[:, None])

    def sum_square(self, missed: Array) -> Array:
        """Return sum_i w_i missed_i^2, (targets,)."""
        return np.asarray((missed**2).sum(0) if self.weight is None else self.weight @ missed**2)


def with_constant(Y: Array, intercept: bool) -> Array:
    """Return Y, with a column of ones appended if there is an intercept."""
    return np.concatenate([Y, np.ones((len(Y), 1))], axis=1) if intercept else Y


def mean_of(values: Array, weight: Array | None) -> Array:
    """Return the weighted mean over samples."""
    return np.asarray(values.mean(0) if weight is None else weight @ values / weight.sum())
