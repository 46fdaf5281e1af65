"""The best layer that knows positions only, and the mean of the teacher's attention, which it has."""

import numpy as np
from numpy.typing import NDArray

from attlas.positional.model import Model, check_model
from attlas.positional.panels import panels

Array = NDArray[np.float64]

_SHARPEST = 1e12  # of sigma^2: beyond it attention is a step, to rounding
_NODES = 20  # of a panel
_END = 40.0  # of the exponential variable


def baseline(model: Model) -> float:
    """Return the test error of the best linear layer y = B x, which attends by place alone.

    B = E T. The error, in the units of `FixedPoint.test`, is 4 sigma^2 (1 - omega)^2 Var sig(S(S + R)) with S and R
    independent N(0, sigma^2). Attention by place can at best equal it.

    Examples
    --------
    >>> from attlas import positional
    >>> round(positional.baseline(positional.Model(mixture=0.3, encoding=3.0)), 4)
    0.0729
    """
    sigma = check_model(model).token_scale
    weights, p = _attention(sigma)
    variance = float(np.sum(weights * (p - np.sum(weights * p)) ** 2))
    return 4 * sigma**2 * (1 - model.mixture) ** 2 * variance


def mean_attention(model: Model) -> Array:
    """Return E T, of shape (2, 2): the mean attention of the teacher, and the best layer by place."""
    weights, p = _attention(check_model(model).token_scale)
    mean = float(np.sum(weights * p))
    first, second = (float((1 - model.mixture) * mean + model.mixture * own) for own in model.diagonal)
    return np.array([[first, 1 - first], [1 - second, second]])


def _attention(sigma: float) -> tuple[Array, Array]:
    """Return weights and values of sig(S(S + R)) on a grid that is fine where they change.

    In polar coordinates S(S + R) = sigma^2 E (1 + sqrt2 cos psi), E exponential and psi uniform on [0, pi]. The bracket
    vanishes at 3 pi/4; with psi = 3 pi/4 + x it is 2 sin(x/2) (sin(x/2) - cos(x/2)).
    """
    from scipy.special import expit

    sharp = min(sigma**2, _SHARPEST)
    E, E_weights = panels(_doubling(_END, 0.25 / max(sharp, 1.0)), _NODES)
    left, right = (_doubling(end, 0.25 / (_END * max(sharp, 1 / _END))) for end in (0.75 * np.pi, 0.25 * np.pi))
    x, x_weights = panels(np.concatenate([-left[:0:-1], right]), _NODES)
    bracket = 2 * np.sin(x / 2) * (np.sin(x / 2) - np.cos(x / 2))
    weights = (E_weights * np.exp(-E))[:, None] * (x_weights / np.pi)
    return weights / weights.sum(), np.asarray(expit(sharp * E[:, None] * bracket))


def _doubling(end: float, first: float) -> Array:
    """Return cuts of [0, end], each twice the one before, the first of about this size."""
    count = max(int(np.ceil(np.log2(end / first))), 1)
    return np.concatenate([[0.0], end * 2.0 ** np.arange(-count, 1)])
