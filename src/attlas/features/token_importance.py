"""Which tokens of a set moved its output: each is left out in turn."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.sets import Sets, items_of

Array = NDArray[np.float64]

NUMBERS = 1 << 22  # in the tokens that are predicted from at a time


def is_array(X: Any) -> bool:
    """Return whether X is one array, or rows of numbers; else it is a collection of sets."""
    return not isinstance(X, Sets) and items_of(X) is None


def sets_of(X: Any, token_dim: int | None) -> list[Array]:
    """Return sets, which have been checked, as arrays (tokens, d) with rows of NaN where a token is missing."""
    items = X if isinstance(X, Sets) else items_of(X)
    if items is not None:
        return [_filled(one) for one in items]
    given = _filled(X)
    if given.ndim == 3:
        return list(given)
    if token_dim is None:
        raise InputError("X has one token per sample, which cannot be left out; give sets of tokens (n, tokens, d)")
    return list(given.reshape(len(given), -1, token_dim))


def _filled(X: Any) -> Array:
    return np.asarray(np.ma.filled(X.astype(float), np.nan) if isinstance(X, np.ma.MaskedArray) else X, dtype=float)


def importance_of(
    outputs: Callable[[Array], Array], sets: Sequence[Array], has_query: bool, ordered: bool
) -> list[Array]:
    """Return the output of every set minus that of the set without a token, (tokens, outputs); NaN for missing ones.

    Parameters
    ----------
    outputs : callable
        From sets (n, tokens, d) to outputs (n, outputs).
    sets : sequence of arrays (tokens, d)
    has_query : bool
        Token 0 is a query, which is never left out.
    ordered : bool
        A token that is left out leaves a gap; else the others close ranks.
    """
    alike = defaultdict(list)
    for number, tokens in enumerate(sets):
        alike[len(tokens)].append(number)
    found: dict[int, Array] = {}
    for length, members in alike.items():
        step = max(1, NUMBERS // (length * (length + 1) * sets[members[0]].shape[1]))
        for start in range(0, len(members), step):
            chosen = members[start : start + step]
            batch = np.stack([sets[number] for number in chosen])
            found |= zip(chosen, _of_one_length(outputs, batch, has_query, ordered), strict=True)
    return [found[number] for number in range(len(sets))]


def _of_one_length(outputs: Callable[[Array], Array], X: Array, has_query: bool, ordered: bool) -> Array:
    full, known = outputs(X), ~np.isnan(X[:, :, 0])
    known[:, :has_query] = False
    known &= known.sum(1, keepdims=True) > 1  # one token or key must stay
    which, token = np.nonzero(known)
    found = np.full((*X.shape[:2], full.shape[1]), np.nan)
    step = max(1, NUMBERS // X[0].size)
    for start in range(0, len(which), step):
        part = slice(start, start + step)
        found[which[part], token[part]] = full[which[part]] - outputs(_without(X, which[part], token[part], ordered))
    return found


def _without(X: Array, which: Any, token: Any, ordered: bool) -> Array:
    """Return the sets `which`, each without one token."""
    left = X[which]
    left[np.arange(len(left)), token] = np.nan
    if not ordered:
        order = np.argsort(np.isnan(left[:, :, 0]), axis=1, kind="stable")
        left = np.take_along_axis(left, order[:, :, None], axis=1)
    return left
