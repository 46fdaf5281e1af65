"""Blocks of rows that bound the memory of a layer, and matrix products over a stack."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK = 1 << 23  # numbers of scratch: 64 MB


def blocks(n: int, numbers_per_row: int) -> Iterator[slice]:
    """Cut n rows into slices whose scratch stays below `BLOCK` numbers (one row at the least)."""
    size = max(1, BLOCK // max(1, numbers_per_row))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def times(X: Array, matrix: Array) -> Array:
    """Return X @ matrix for a stack X, as one matrix product instead of one per sequence."""
    return (X.reshape(-1, X.shape[-1]) @ matrix).reshape(*X.shape[:-1], -1)
