"""The features of sequences and sets under finitely many frozen heads, and sums of products with them, in blocks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.sets import NUMBERS, Sets, compact
from attlas.features.threads import each
from attlas.features.token_maps import TokenMap
from attlas.layers import pooled_feature_attention, random_feature_attention
from attlas.numerics import Event, Progress

Array = NDArray[Any]

HEADS = 128  # used at a time: n x 128 (d + 1) float32 numbers
ROWS = 2048  # used at a time in the primal, with all heads
PIECE = 256  # made at a time, which stay in the cache
HELD = 1 << 30  # bytes of features that are held; larger ones are made again each time


@dataclass(frozen=True)
class HeadFeatures:
    """The features Phi (n, M (d + 1)) of sequences or sets X under heads (M, d + 1, d + 1), in float32.

    They are made once if `hold` is true and `HELD` bytes hold them; else whenever they are needed. Rows are in the order of
    the samples. Sets of different size are padded in buckets of similar size, a bounded number at a time.
    """

    X: Array | Sets
    heads: Array
    activation: Any
    hold: bool = True
    prepare: TokenMap = field(default_factory=TokenMap)  # what tokens go through before the heads see them
    n_jobs: int | None = None  # threads; the numbers are the same for any

    @property
    def width(self) -> int:
        """Features of one sequence, p = M (d + 1)."""
        return int(self.heads.shape[0] * self.heads.shape[1])

    @cached_property
    def by_heads(self) -> Iterable[Array]:
        """Columns of Phi, those of `HEADS` heads at a time."""
        return self._parts(lambda: self._columns(self.X))

    @cached_property
    def by_rows(self) -> Iterable[tuple[Array, slice]]:
        """Rows of Phi, `ROWS` at a time, and which sequences they are."""
        parts = [slice(start, start + ROWS) for start in range(0, len(self.X), ROWS)]
        return self._parts(lambda: ((self._rows(self.X[s]), s) for s in parts))

    def gram(self, progress: Progress | None = None) -> Array:
        """Return Phi Phi^T."""
        return self._products(((block, block) for block in self.by_heads), len(self.X), progress)

    def cross(self, X: Array | Sets, progress: Progress | None = None) -> Array:
        """Return Phi(X) Phi^T."""
        return self._products(zip(self._columns(X), self.by_heads, strict=True), len(X), progress)

    def times(self, values: Array) -> Array:
        """Return Phi values."""
        found, start = np.zeros((len(self.X), values.shape[1])), 0
        for block in self.by_heads:
            found += block @ values[start : start + block.shape[1]]
            start += block.shape[1]
        return found

    def values(self, dual: Array) -> Array:
        """Return Phi^T dual, the values of the heads."""
        return np.concatenate([block.T @ dual for block in self.by_heads])

    def _columns(self, X: Array | Sets) -> Iterator[Array]:
        return feature_columns(X, self.heads, self.activation, np.dtype("float32"), self.prepare, self.n_jobs)

    def _rows(self, X: Array | Sets) -> Array:
        return features_of(X, self.heads, self.activation, np.dtype("float32"), self.prepare, self.n_jobs)

    def _products(self, pairs: Iterable[tuple[Array, Array]], rows: int, progress: Progress | None) -> Array:
        """Return the sum of left right^T over blocks of heads: float64 sums of float32 products."""
        K, M = np.zeros((rows, len(self.X))), len(self.heads)
        for number, (left, right) in enumerate(pairs, 1):
            K += left @ right.T
            if progress is not None:
                done = min(number * HEADS, M)
                progress(Event(done, M, f"Gram matrix: {done} of {M} heads"))
        return finite(K, "the features")

    def _parts(self, make: Callable[[], Iterator[Any]]) -> Iterable[Any]:
        return list(make()) if self.hold and 4 * len(self.X) * self.width <= HELD else _Remade(make)


@dataclass(frozen=True)
class _Remade:
    """Parts that are made anew each time they are gone through."""

    make: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self.make()


def features_of(
    X: Array | Sets,
    heads: Array,
    activation: Any,
    dtype: np.dtype[Any],
    prepare: TokenMap = TokenMap(),
    n_jobs: int | None = None,
    over: float | None = None,
) -> Array:
    """Return the features over sqrt(M), or over another number, (n, M (d + 1)); arguments as for `feature_columns`."""
    make = _Maker(activation, prepare, dtype.type(np.sqrt(len(heads)) if over is None else over), n_jobs)
    return make(_pieces(X, prepare), len(X), heads)


def feature_columns(
    X: Array | Sets,
    heads: Array,
    activation: Any,
    dtype: np.dtype[Any],
    prepare: TokenMap = TokenMap(),
    n_jobs: int | None = None,
) -> Iterator[Array]:
    """Yield the features over sqrt(M), those of `HEADS` heads at a time, (n, HEADS (d + 1)).

    Parameters
    ----------
    X : array of shape (n, tokens, d) or Sets
    heads : array of shape (M, d + 1, d + 1)
    activation : str or function
    dtype : dtype
        Of the features, and of everything that is computed for them.
    prepare : TokenMap
        What tokens go through before the heads see them.
    n_jobs : int, optional
        Threads that share the rows.
    """
    make = _Maker(activation, prepare, dtype.type(np.sqrt(len(heads))), n_jobs)
    pieces = list(_pieces(X, prepare))
    for start in range(0, len(heads), HEADS):
        yield make(pieces, len(X), heads[start : start + HEADS])


class _Piece(NamedTuple):
    """Some samples, and their tokens as the heads see them, (rows, tokens, d), NaN where one is missing."""

    rows: Any
    seen: Array


class _Maker(NamedTuple):
    """How features are made of pieces: the activation, what tokens went through, what to divide by, and threads."""

    activation: Any
    prepare: TokenMap
    over: Any
    n_jobs: int | None

    def __call__(self, pieces: Iterable[_Piece], n: int, heads: Array) -> Array:
        """Return the features (n, heads (d + 1)) of n samples, in the precision of `over`."""
        found = np.empty((n, heads.shape[0] * heads.shape[1]), dtype=self.over.dtype)

        def fill(piece: _Piece) -> None:
            made = make_features(piece.seen, heads, self.activation, found.dtype, self.prepare)
            found[piece.rows] = np.divide(made, self.over, out=made)

        each(fill, pieces, self.n_jobs)
        return found


def _pieces(X: Array | Sets, prepare: TokenMap) -> Iterator[_Piece]:
    """Cut X into pieces that are made at a time: rows of an array as they come, sets in buckets of similar size.

    In a padded array the place of a key may matter, so it is left as it is if there are position codes.
    """
    if not isinstance(X, Sets) and not prepare.positions:
        X = compact(X)
    if isinstance(X, Sets):
        yield from (_Piece(rows, prepare(X.padded(rows))) for rows in X.buckets(NUMBERS, PIECE))
    else:
        for start in range(0, len(X), PIECE):
            rows = slice(start, start + PIECE)
            yield _Piece(rows, prepare(X[rows]))


def make_features(X: Array, heads: Array, activation: Any, dtype: np.dtype[Any], prepare: TokenMap) -> Array:
    """Return the features (n, heads (d + 1)) of tokens as the heads see them, without the factor 1/sqrt(M)."""
    missing = np.isnan(X[:, :, 0])
    if np.abs(X).max(initial=0, where=~np.isnan(X)) > np.sqrt(np.finfo(dtype).max):
        raise InputError(f"X has entries too large for features in {dtype}; scale the tokens down")
    padded = bool(missing.any())
    tokens, weights = np.nan_to_num(X.astype(dtype)) if padded else X.astype(dtype), heads.astype(dtype)
    if prepare.query is None:
        found = pooled_feature_attention(tokens, weights, activation, ~missing if padded else None, prepare.codes)
    else:
        found = random_feature_attention(tokens, weights, activation, ~missing[:, 1:] if padded else None)
    return np.asarray(found.reshape(len(X), -1))


def finite(found: Array, what: str) -> Array:
    """Return `found`, or raise `InputError` if something overflowed on the way."""
    if not np.isfinite(found).all():
        raise InputError(f"{what} overflow on these tokens; scale them down")
    return found
