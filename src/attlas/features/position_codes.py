"""Position codes: a one-hot of squared length gamma^2 beside every key, so that the order of the keys can be learned.

Keys become [x_i; gamma e_i], the query [x_0; 0]; head entries are N(0, 1/(2 (2 + gamma^2))), so that scores keep unit
variance on the sphere.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import real

Array = NDArray[Any]


def with_positions(X: Array, weight: float, slots: int | None = None) -> Array:
    """Return sequences (n, 1 + keys, d + slots) with position codes of squared length `weight`.

    Parameters
    ----------
    X : array of shape (n, 1 + keys, d)
        Missing keys are rows of NaN; so are their codes.
    weight : float
        gamma^2; 0 returns X.
    slots : int, optional
        Places for keys; as many as there are if not given.
    """
    if real(weight, "positions", least=0) == 0:
        return X
    keys = X.shape[1] - 1
    count = keys if slots is None else slots
    if keys > count:
        raise InputError(f"X has {keys} keys, the position codes were made for {count}")
    codes = np.zeros((*X.shape[:2], count), dtype=X.dtype)
    place = np.arange(keys)
    codes[:, place + 1, place] = np.sqrt(float(weight))
    codes[np.isnan(X[:, :, 0])] = np.nan
    return np.concatenate([X, codes], axis=2)


def score_scale(weight: float) -> float:
    """Return by how much heads are scaled, so that scores of tokens with codes have unit variance on the sphere."""
    return float(np.sqrt(2 / (2 + real(weight, "positions", least=0))))


def widened(W0: Array, slots: int) -> Array:
    """Return a bias matrix (d + 1, d + 1) for tokens with codes: zero on them."""
    d = len(W0) - 1
    kept = [*range(d), d + slots]
    found = np.zeros((d + slots + 1, d + slots + 1))
    found[np.ix_(kept, kept)] = W0
    return found
