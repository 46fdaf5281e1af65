"""Checks at the door: shapes, finiteness, sizes. Each says what was given and what is accepted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError


def array(value: ArrayLike, name: str, axes: Sequence[str], sizes: Sequence[int | None] = ()) -> NDArray[Any]:
    """Return `value` as a finite floating array with one axis per name in `axes`.

    Parameters
    ----------
    value : array_like
    name : str
        What the caller calls it; used in the message.
    axes : sequence of str
        The meaning of each axis, such as ``("n", "tokens", "d")``.
    sizes : sequence of int or None, optional
        The size each axis must have, None where any will do.

    Raises
    ------
    InputError
        If the number of axes or a size is wrong, or an entry is not finite.
    """
    try:
        result = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} must be an array of shape ({', '.join(axes)}); got rows of unequal length") from error
    shape = f"({', '.join(axes)})"
    if result.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers of shape {shape}; got dtype {result.dtype}")
    if result.dtype.kind != "f":
        result = result.astype(np.float64)
    if result.ndim != len(axes):
        raise InputError(f"{name} must have {len(axes)} axes {shape}; got {result.ndim}, shape {result.shape}")
    for axis, size in enumerate(sizes):
        if size is not None and result.shape[axis] != size:
            raise InputError(
                f"{name}: axis {axis} ({axes[axis]}) must be {size}; got {result.shape[axis]}, shape {result.shape}"
            )
    if result.size == 0:
        raise InputError(f"{name} is empty, shape {result.shape}; every axis of {shape} must be at least 1")
    if not np.isfinite(result).all():
        raise InputError(f"{name} has entries that are not finite (NaN or infinite)")
    return result


def integer(value: object, name: str, least: int = 1) -> int:
    """Return `value` as an integer of at least `least`, or raise `InputError`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}; got {value!r}")
    return int(value)


def real(value: object, name: str, *, above: float = -np.inf, least: float = -np.inf) -> float:
    """Return `value` as a finite float, greater than `above` and at least `least`, or raise `InputError`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} must be a number; got {value!r}")
    if not np.isfinite(value) or value <= above or value < least:
        bound = f" greater than {above:g}" if above > -np.inf else f" of at least {least:g}" if least > -np.inf else ""
        raise InputError(f"{name} must be a finite number{bound}; got {value!r}")
    return float(value)


def numbers(value: ArrayLike, name: str, *, above: float = -np.inf, least: float = -np.inf) -> NDArray[np.float64]:
    """Return `value`, of any shape, as finite floats greater than `above` and at least `least`, or raise `InputError`."""
    try:
        result = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} must be numbers; got rows of unequal length") from error
    if result.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers; got {value!r}")
    result = result.astype(np.float64)
    if not result.size:
        raise InputError(f"{name} is empty")
    good = np.isfinite(result) & (result > above) & (result >= least)
    if not good.all():
        bound = (
            f" and greater than {above:g}" if above > -np.inf else f" and at least {least:g}" if least > -np.inf else ""
        )
        raise InputError(f"{name} must be finite{bound}; got {result[~good].flat[0]:g}")
    return result
