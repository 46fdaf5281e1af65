"""What models do to tokens before a layer sees them: normalise each, and add its position."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real, size

Array = NDArray[Any]


def layer_norm(
    X: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, eps: float = 1e-5
) -> Array:
    """Return each token x as (x - mean x)/sqrt(var x + eps) * weight + bias, over its coordinates.

    Parameters
    ----------
    X : array of shape (n, k, d)
    weight, bias : arrays of shape (d,), optional
        One and zero, if not given.
    eps : float, default 1e-5

    Examples
    --------
    >>> from attlas import layers
    >>> layers.layer_norm([[[1.0, 2.0, 3.0]]]).round(3).tolist()
    [[[-1.225, 0.0, 1.225]]]
    """
    X = array(X, "X", ("n", "k", "d"))
    d = X.shape[2]
    gain = np.ones(d) if weight is None else array(weight, "weight", ("d",), (d,))
    shift = np.zeros(d) if bias is None else array(bias, "bias", ("d",), (d,))
    largest = float(np.abs(X).max())
    if largest > 1e100:
        raise InputError(f"X has a largest entry of {largest:.1e}; scale it to about one")
    centred = X - X.mean(axis=2, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=2, keepdims=True) + real(eps, "eps", above=0))
    return np.asarray(centred / spread * gain + shift)


def sinusoidal_positions(k: int, d: int, *, base: float = 1e4) -> Array:
    """Return the positions (k, d) of sines and cosines to add to tokens: entry 2j of row r is sin(r/base^(2j/d)).

    Entry 2j + 1 is the cosine of the same angle.

    Examples
    --------
    >>> from attlas import layers
    >>> layers.sinusoidal_positions(2, 4).round(3).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.841, 0.54, 0.01, 1.0]]

    References
    ----------
    vaswani2017attention, section 3.5.
    """
    size(float(integer(k, "k")) * integer(d, "d"), "the number of entries")
    pairs = np.arange(d) // 2
    angles = np.arange(k)[:, None] / real(base, "base", least=1) ** (2 * pairs / d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))
