"""The features of sequences under finitely many frozen heads, and sums of products with them, in blocks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.layers import random_feature_attention
from attlas.numerics import Event, Progress

Array = NDArray[Any]

HEADS = 128  # used at a time: n x 128 (d + 1) float32 numbers
ROWS = 2048  # used at a time in the primal, with all heads
HELD = 1 << 30  # bytes of features that are held; larger ones are made again each time


@dataclass(frozen=True)
class HeadFeatures:
    """The features Phi (n, M (d + 1)) of sequences X under heads (M, d + 1, d + 1), in float32.

    They are made once if `hold` is true and `HELD` bytes hold them; else whenever they are needed.
    """

    X: Array
    heads: Array
    activation: Any
    hold: bool = True
    prepare: Callable[[Array], Array] = np.asarray  # what tokens go through before the heads see them

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
        return self._parts(lambda: ((np.concatenate(list(self._columns(self.X[s])), axis=1), s) for s in parts))

    def gram(self, progress: Progress | None = None) -> Array:
        """Return Phi Phi^T."""
        return self._products(((block, block) for block in self.by_heads), len(self.X), progress)

    def cross(self, X: Array, progress: Progress | None = None) -> Array:
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

    def _columns(self, X: Array) -> Iterator[Array]:
        root, seen = np.float32(np.sqrt(len(self.heads))), self.prepare(X)
        for start in range(0, len(self.heads), HEADS):
            yield make_features(seen, self.heads[start : start + HEADS], self.activation, np.dtype("float32")) / root

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


def make_features(X: Array, heads: Array, activation: Any, dtype: np.dtype[Any]) -> Array:
    """Return the features (n, heads (d + 1)) without the factor 1/sqrt(M)."""
    missing = np.isnan(X[:, 1:, 0])
    if np.abs(X).max(initial=0, where=~np.isnan(X)) > np.sqrt(np.finfo(dtype).max):
        raise InputError(f"X has entries too large for features in {dtype}; scale the tokens down")
    tokens = np.nan_to_num(X.astype(dtype)) if missing.any() else X.astype(dtype)
    found = random_feature_attention(tokens, heads.astype(dtype), activation, ~missing if missing.any() else None)
    return np.asarray(found.reshape(len(X), -1))


def finite(found: Array, what: str) -> Array:
    """Return `found`, or raise `InputError` if something overflowed on the way."""
    if not np.isfinite(found).all():
        raise InputError(f"{what} overflow on these tokens; scale them down")
    return found
