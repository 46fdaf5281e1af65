"""Targets and weights in blocks, checked where the blocks are; a few numbers come back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.base import regression_targets
from attlas.inputs import numbers, plain

Array = NDArray[Any]

WANTED = "y and weights must be arrays in blocks like X, such as dask.array.from_array(y, chunks=1000)"


def in_blocks(X: Any) -> bool:
    """Return whether X is an array in blocks, such as a `dask.array`."""
    return all(hasattr(X, name) for name in ("chunks", "rechunk", "map_blocks", "persist"))


def require_sets(X: Any) -> None:
    """Check that an array in blocks has the axes of sets."""
    if X.ndim != 3:
        raise InputError(f"X in blocks must have three axes (n, tokens, d); got {X.ndim}")


def first_set(X: Any) -> Array:
    """Return the first set of an array in blocks, (1, tokens, d); blocks without any are passed over."""
    for number, size in enumerate(X.chunks[0]):
        if size == 0:
            continue
        block = np.asarray(X.blocks[number].compute())  # of unknown size it may be empty after all
        if len(block):
            return block[:1]
    raise InputError("X in blocks is empty: it has no set in any of its blocks")


def target_blocks(y: Any, model: str) -> Any:
    """Return targets in blocks as floats (n, targets), not computed yet; what is no number raises once they are."""
    if not in_blocks(y):
        raise InputError(WANTED)
    if y.ndim not in (1, 2):
        raise InputError(f"y in blocks must have shape (n,) or (n, targets); got {y.ndim} axes")
    table = y[:, None] if y.ndim == 1 else y.rechunk({1: -1})
    return table.map_blocks(_targets, model, dtype=float, meta=np.empty((0, 0)))


def weight_blocks(weight: Any, X: Any) -> Any:
    """Return weights in blocks as floats (n,), finite and not negative; two must be positive, which is computed."""
    if not in_blocks(weight):
        raise InputError(WANTED)
    sizes = [weight.shape[0], X.shape[0]] if weight.ndim else [0, 1]
    if weight.ndim != 1 or (sizes[0] != sizes[1] and not np.isnan(sizes).any()):
        raise InputError(
            f"sample_weight must have shape (n,) with n = {X.shape[0]}, one weight per sample; got {weight.shape}"
        )
    found = weight.map_blocks(_weights, dtype=float, meta=np.empty(0))
    counted = int((found > 0).sum().compute())
    if not counted:
        raise InputError("sample_weight is zero for all samples; at least one must be positive")
    if counted < 2:
        raise InputError("sample_weight has one positive weight only; a fit needs at least two samples that count")
    return found


def _targets(block: Any, model: str) -> Array:
    return regression_targets(block, len(block), model) if len(block) else np.empty(block.shape)


def _weights(block: Any) -> Array:
    given = plain(block, "sample_weight", "numbers of shape (n,)")
    if not given.size:
        return np.empty(0)
    return numbers(given.astype(float) if given.dtype.kind == "b" else given, "sample_weight", least=0)
