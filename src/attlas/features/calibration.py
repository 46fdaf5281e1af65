"""Scores of a classifier turned into log-odds, by what they were on samples that the fit had not seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax

Array = NDArray[Any]

_ROUNDING = 1e-7  # scores of codes of -1 and 1 that deviate by less are a constant


@dataclass(frozen=True)
class Calibration:
    """Log-odds z_c = slope s_c + shift_c of scores s.

    Attributes
    ----------
    slope : array of shape (outputs,)
        Not negative. The same for all classes of a multi-class problem.
    shift : array of shape (outputs,)
    """

    slope: Array
    shift: Array

    def __call__(self, scores: Array) -> Array:
        """Return the log-odds of scores (n, outputs)."""
        return np.asarray(self.slope * scores + self.shift)


def calibrate(scores: Array, codes: Array, weight: Array | None = None, exclusive: bool = False) -> Calibration:
    """Return the slope and the shifts of the smallest log loss on scores of samples that were left out.

        min sum_n w_n L(t_n, slope s_n + shift)   over   slope >= 0,

    L the log loss of a sigmoid, each output on its own, or that of a softmax over all of them with one slope for all.
    Targets t are not 0 and 1: a sample of a class with n_c samples counts as (n_c + 1)/(n_c + k) of its own class and
    1/(n_c + k) of each other one, k the number of classes. That is Laplace's rule, and for two classes Platt's; it keeps
    the slope finite where the scores separate the classes. Where nothing can be learned the slope is zero, and
    probabilities are frequencies. If a class has samples but none with a score, scores are taken at face value: the slope is
    that of (1 + s)/2 where all classes are equally probable.

    Parameters
    ----------
    scores : array of shape (n, outputs)
        Rows of NaN are left out.
    codes : array of shape (n, outputs)
        +1 for what a sample is and -1 for what it is not.
    weight : array of shape (n,), optional
    exclusive : bool
        Exactly one code of a sample is +1, and probabilities are a softmax.

    References
    ----------
    platt1999probabilistic.
    """
    counted = np.ones(len(codes), dtype=bool) if weight is None else weight > 0
    known = counted & np.isfinite(scores).all(1)
    w = np.ones(len(codes)) if weight is None else weight / weight[counted].mean()
    if exclusive:
        return _fit(scores[known], codes[known] > 0, w[known], np.any(codes[counted] > 0, axis=0))
    found = []
    for s, c in zip(scores.T, codes.T, strict=True):
        own = np.stack([c < 0, c > 0], axis=1)
        found.append(_fit(s[known, None], own[known], w[known], np.any(own[counted], axis=0)))
    return Calibration(np.concatenate([one.slope for one in found]), np.concatenate([one.shift for one in found]))


def with_common_mean(left_out: Array, codes: Array, weight: Array | None, mean: Array, total: float) -> Array:
    """Return leave-one-out scores under one intercept, the mean of all codes, in place of the mean without the sample.

    The latter, m - w_n (t_n - m)/(W - w_n), moves every score away from its label. Where little can be learned from few
    samples that is most of what the scores have to say about labels, and would hide the rest.

    Parameters
    ----------
    left_out, codes : arrays of shape (n, outputs)
    weight : array of shape (n,), optional
    mean : array of shape (outputs,)
        m, the weighted mean of the codes that were learned.
    total : float
        W, the sum of their weights.
    """
    w = np.ones((len(codes), 1)) if weight is None else weight[:, None]
    return np.asarray(left_out + w * (codes - mean) / (total - w))


def _fit(scores: Array, own: Array, w: Array, expected: Array) -> Calibration:
    """Return the calibration of one softmax, or of one sigmoid, whose samples are of the classes `own` (n, k)."""
    outputs, k = scores.shape[1], own.shape[1]
    if np.any(expected & ~own.any(0)):
        return Calibration(np.full(outputs, k / (2 if outputs > 1 else 1)), np.zeros(outputs))
    targets = _softened(own, w)[:, -outputs:]
    middle = w @ scores / w.sum()
    unit = float(np.sqrt(np.mean((scores - middle) ** 2)))
    if unit < _ROUNDING:
        scores, middle, unit = np.zeros_like(scores), np.zeros(outputs), 1.0
    s, share = (scores - middle) / unit, w[:, None] / w.sum()

    def loss(theta: Array) -> tuple[float, Array]:
        z = theta[0] * s + theta[1:]
        if outputs > 1:
            log_p = log_softmax(z, axis=1)
            value, missed = -targets * log_p, np.exp(log_p) - targets
        else:
            value, missed = -targets * log_expit(z) - (1 - targets) * log_expit(-z), np.exp(log_expit(z)) - targets
        missed = share * missed
        return float(np.sum(share * value)), np.concatenate([[np.sum(missed * s)], missed.sum(0)])

    prior = np.sum(share * targets, axis=0)
    # from frequencies on: where the slope makes no difference it stays zero
    start = np.concatenate([[0.0], np.log(prior) - np.log(1 - prior) * (outputs == 1)])
    bounds = [(0.0, None), *[(None, None)] * outputs]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    slope = found.x[0] / unit
    return Calibration(np.full(outputs, slope), found.x[1:] - slope * middle)


def _softened(own: Array, w: Array) -> Array:
    """Return the targets (n, k) for samples of one class each."""
    k, counts = own.shape[1], w @ own
    total = (own @ counts)[:, None] + k
    return np.asarray((1 + own * (total - k)) / total)
