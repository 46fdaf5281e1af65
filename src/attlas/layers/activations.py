"""What turns scores into weights: softmax and hardmax along rows; what random heads use, entry by entry or over the keys."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import plain, real

Array = NDArray[Any]


def softmax(h: ArrayLike, beta: float = 1.0) -> Array:
    """Return exp(beta h_ab) / sum_c exp(beta h_ac), along the last axis, without overflow.

    Examples
    --------
    >>> from attlas import layers
    >>> layers.softmax([[0.0, 0.0], [0.0, 1.0]]).round(3).tolist()
    [[0.5, 0.5], [0.269, 0.731]]
    """
    h = _rows_of_numbers(h)
    weights = real(beta, "beta", above=0) * (h - h.max(axis=-1, keepdims=True))
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights)


def hardmax(h: ArrayLike) -> Array:
    """Return one-hot rows: 1 where h is largest along the last axis (the first of equals), 0 elsewhere.

    Examples
    --------
    >>> from attlas import layers
    >>> layers.hardmax([[0.2, 1.5, -1.0]]).tolist()
    [[0.0, 1.0, 0.0]]
    """
    h = _rows_of_numbers(h)
    return np.asarray(np.arange(h.shape[-1]) == h.argmax(axis=-1)[..., None], dtype=np.float64)


def relu(scores: Array) -> Array:
    """Return max(s, 0), in place."""
    return np.clip(scores, 0, np.inf, out=scores)  # the same numbers as np.maximum(scores, 0), in a quarter of its time


def exp(scores: Array) -> Array:
    """Return exp(s), in place, or raise `InputError` where it overflows."""
    with np.errstate(over="ignore"):
        np.exp(scores, out=scores)
    if not np.isfinite(scores).all():
        raise InputError("exp overflows on these tokens and heads; scale them down or use softmax")
    return scores


def softmax_over_keys(scores: Array) -> Array:
    """Return N exp(s_i) / sum_j exp(s_j) over axis 1, in place; the layer divides by N."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores *= scores.shape[1] / scores.sum(axis=1, keepdims=True)
    return scores


def sigmoid(scores: Array) -> Array:
    """Return 1/(1 + exp(-s)), in place."""
    from scipy.special import expit

    return np.asarray(expit(scores, out=scores))


def erf(scores: Array) -> Array:
    """Return erf(s), in place."""
    from scipy import special

    return np.asarray(special.erf(scores, out=scores))


def tanh(scores: Array) -> Array:
    """Return tanh(s), in place."""
    return np.tanh(scores, out=scores)


def relu2(scores: Array) -> Array:
    """Return max(s, 0)^2, in place."""
    np.maximum(scores, 0, out=scores)
    return np.square(scores, out=scores)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": relu,
    "exp": exp,
    "sigmoid": sigmoid,
    "erf": erf,
    "tanh": tanh,
    "relu2": relu2,
    "softmax": softmax_over_keys,
}


def activation_of(given: Any) -> Callable[[Array], Array]:
    """Return the function of scores that is meant by a name, or the function given: one number for each score."""
    if isinstance(given, str) and given in ACTIVATIONS:
        return ACTIVATIONS[given]
    if not callable(given):
        raise InputError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, or a function of the scores; got {given!r}"
        )

    def weights(scores: Array) -> Array:
        found = plain(given(scores), "what activation returns", "one real number for each score")
        if found.shape != scores.shape or found.dtype.kind not in "fiub":
            raise InputError(
                f"activation must return one real number for each score; got shape {found.shape} for {scores.shape}"
            )
        return found.astype(scores.dtype, copy=False)

    return weights


def _rows_of_numbers(h: ArrayLike) -> Array:
    h = plain(h, "h", "an array of numbers")
    if h.dtype.kind not in "fiub" or h.ndim == 0 or h.size == 0 or np.isnan(h).any():
        raise InputError(f"h must be an array of numbers without NaN; got shape {h.shape}, dtype {h.dtype}")
    if np.isinf(h).any():
        raise InputError("h must be finite: weights of infinite scores are not defined; mask keys by leaving them out")
    return h if h.dtype.kind == "f" else h.astype(np.float64)
