"""The kernel of infinitely many heads between sets of any size, whichever token asks."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.features.kernels import attention_kernel
from attlas.features.sets import Sets, compact
from attlas.features.token_maps import with_query
from attlas.numerics import Event, Progress

Array = NDArray[Any]

_NUMBERS = 1 << 18  # in a group of sequences, where every token asks
_ASKING = 512  # sequences in such a group


def set_kernel(
    X: Array | Sets,
    X2: Array | Sets | None = None,
    query: str | None = "first",
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Array:
    """Return the kernel of random-feature attention with infinitely many heads between sets.

    For ``query=None``, where every token asks all k in turn and the features are averaged,

        K(X, X') = (1/(k k')) sum_qq' K_first((x_q; x_1..x_k), (x'_q'; x'_1..x'_k')),

    K_first being `attention_kernel`.

    Parameters
    ----------
    X, X2 : arrays of shape (n, tokens, d) or Sets
        Rows of NaN are missing tokens. If X2 is not given it is X, and only half of the kernel is computed.
    query : {"first", "mean", None}
    progress : callable, optional
        Called with an `Event` as groups of rows are finished.
    **options
        bias, activation and positions, as for `attention_kernel`.

    Returns
    -------
    array of shape (n, n2)

    Notes
    -----
    For sets of k and k' tokens an entry costs k k' evaluations of the arc-cosine function (or its like) with one query, and
    k^2 k'^2 where every token asks: 4096 for sets of 8 tokens, beyond use for sets of some dozens; finitely many heads cost
    k^2 per head and set. Sets are padded in buckets of similar size, at most a quarter of which is padding. Memory is that
    of the tokens and of the kernel, and k k' numbers for the two largest sets.
    """
    if query == "first" and not isinstance(X, Sets) and not isinstance(X2, Sets):
        return attention_kernel(X, X2, progress=progress, **options)
    left = _groups(X, query, options)
    right = left if X2 is None else _groups(X2, query, options)
    K = np.zeros((len(X), len(X if X2 is None else X2)))
    done = 0.0
    for number, one in enumerate(left):
        for other in left[: number + 1] if X2 is None else right:
            same = X2 is None and other is one
            found = attention_kernel(one.padded(), None if same else other.padded(), **options)
            block = one.average(other.average(found.T).T)
            K[np.ix_(one.rows, other.rows)] += block
            if X2 is None and not same:
                K[np.ix_(other.rows, one.rows)] += block.T
        done += one.weight
        if progress is not None:
            progress(Event(min(round(done), len(K)), len(K), f"kernel: {round(done)} of {len(K)} rows"))
    return K


class _Group(NamedTuple):
    """Sequences of similar length: which samples they are of, how to make them, and how they are averaged.

    Attributes
    ----------
    rows : integers of shape (samples,)
        The samples.
    padded : callable
        Returns the sequences (count, 1 + keys, d).
    starts : integers of shape (samples,), optional
        Where the sequences of each sample begin, if there are several to a sample.
    shares : array of shape (count, 1), optional
        The weight of each sequence in the average over its sample.
    """

    rows: NDArray[np.intp]
    padded: Callable[[], Array]
    starts: NDArray[np.intp] | None = None
    shares: Array | None = None

    @property
    def weight(self) -> float:
        """How many samples these sequences are, in part or whole."""
        return len(self.rows) if self.shares is None else float(self.shares.sum())

    def average(self, found: Array) -> Array:
        """Return the averages over the sequences of each sample, (samples, columns), of numbers (count, columns)."""
        if self.starts is None or self.shares is None:
            return found
        return np.asarray(np.add.reduceat(found * self.shares, self.starts, axis=0))


def _groups(X: Array | Sets, query: str | None, options: dict[str, Any]) -> list[_Group]:
    """Cut sets into groups; with position codes a padded array stays as it is, because places matter."""
    if not isinstance(X, Sets) and not options.get("positions"):
        X = compact(X)
    X = X.astype(np.float64)
    parts = [(rows, X.padded(rows)) for rows in X.buckets()] if isinstance(X, Sets) else [(np.arange(len(X)), X)]
    if query is None:
        return [group for rows, tokens in parts for group in _asking(rows, tokens)]
    return [_Group(rows, partial(_asked, tokens, query)) for rows, tokens in parts]


def _asked(tokens: Array, query: str) -> Array:
    return tokens if query == "first" else with_query(tokens, query)


def _asking(rows: NDArray[np.intp], tokens: Array) -> Iterator[_Group]:
    """Yield the sequences (x_q; x_1..x_k) of all tokens of some sets, (rows, k, d), a bounded number at a time."""
    owner, token = np.nonzero(~np.isnan(tokens[:, :, 0]))
    share = 1 / np.bincount(owner)
    step = max(1, min(_ASKING, _NUMBERS // ((tokens.shape[1] + 1) * tokens.shape[2])))
    for start in range(0, len(owner), step):
        own, asks = owner[start : start + step], token[start : start + step]
        samples, starts = np.unique(own, return_index=True)
        yield _Group(rows[samples], partial(_with_token, tokens, own, asks), starts, share[own][:, None])


def _with_token(tokens: Array, own: NDArray[np.intp], asks: NDArray[np.intp]) -> Array:
    return np.concatenate([tokens[own, asks][:, None], tokens[own]], axis=1)
