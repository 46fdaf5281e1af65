"""Which tokens may be attended to: a causal mask, padding, and the softmax over what they leave."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import plain

Array = NDArray[Any]
Mask = NDArray[np.bool_]


def padding_mask(padding: ArrayLike, n: int, k: int) -> Mask:
    """Return `padding` as booleans (n, k), True where a token is padding, or raise `InputError`."""
    found = plain(padding, "padding", "booleans of shape (n, k)")
    if found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise InputError("padding must be True (padding) or False (a token), of shape (n, k)")
    if found.shape != (n, k):
        raise InputError(f"padding must have shape ({n}, {k}), one entry for each key token; got {found.shape}")
    return found.astype(bool)


def allowed(queries: int, keys: int, causal: bool, padding: Mask | None) -> Mask | None:
    """Return who may attend to whom, (1 or n, queries, keys), or None if everybody may to everybody."""
    if not causal and padding is None:
        return None
    found = np.ones((1, queries, keys), dtype=bool)
    if causal:
        found &= np.tri(queries, keys, dtype=bool)
    return found if padding is None else found & ~padding[:, None, :]


def masked_softmax(scores: Array, mask: Mask) -> Array:
    """Return the softmax along the last axis over what `mask` allows, zero elsewhere; zero where nothing is allowed."""
    scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))
