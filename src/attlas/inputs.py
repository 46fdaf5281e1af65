"""Checks at the door: shapes, finiteness, sizes. Each says what was given and what is accepted."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError

TINIEST, HUGEST = 1e-60, 1e60  # of a quantity that is positive: beyond, its powers are no floats any more
LARGEST = 2.0**40  # entries of an array: eight terabytes

Word = TypeVar("Word")


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
    shape = f"({', '.join(axes)})"
    result = plain(value, name, f"an array of shape {shape}")
    if result.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers of shape {shape}; got dtype {result.dtype}")
    if result.dtype.kind != "f" or result.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # an infinity is refused below
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


def integer(value: object, name: str, least: int = 1, most: int = 2**53) -> int:
    """Return `value` as an integer of at least `least` and at most `most`, or raise `InputError`.

    Beyond 2^53 integers are no longer floats, and no array or loop is that long.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}; got {described(value)}")
    if value > most:
        raise InputError(f"{name} must be an integer of at most {most:g}; got {described(value)}")
    return int(value)


def size(value: float, name: str) -> int:
    """Return a number of entries that was computed from other arguments, or raise `InputError` if no memory holds them."""
    if not value <= LARGEST:
        raise InputError(f"{name} would be {value:.3g}, more than any memory holds; choose smaller sizes")
    return int(value)


def real(value: object, name: str, *, above: float = -np.inf, least: float = -np.inf, below: float = np.inf) -> float:
    """Return `value` as a finite float, greater than `above`, at least `least` and less than `below`, or raise."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} must be a number; got {described(value)}")
    try:
        found = float(value)
    except OverflowError:
        raise InputError(f"{name} must be a finite number; got an integer that is larger than any float") from None
    if np.isfinite(found) and found > 0 and max(above, least) >= 0 and not TINIEST <= found <= HUGEST:
        raise InputError(
            f"{name} must lie between {TINIEST:g} and {HUGEST:g}, where its powers are numbers; got {described(value)}"
        )
    if not np.isfinite(found) or found <= above or found < least or found >= below:
        bound = f" greater than {above:g}" if above > -np.inf else f" of at least {least:g}" if least > -np.inf else ""
        bound += f" and less than {below:g}" if below < np.inf else ""
        raise InputError(f"{name} must be a finite number{bound}; got {described(value)}")
    return found


def choice(value: Word, name: str, options: Iterable[str], wanted: str = "") -> Word:
    """Return `value` if it is one of the words in `options`, or raise `InputError`; `wanted` may say what they mean."""
    words = list(options)
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{name} must be {wanted or 'one of ' + ', '.join(words)}; got {described(value)}")
    return value


def flag(value: object, name: str) -> bool:
    """Return `value`, True or False (or 1 or 0), as a bool, or raise `InputError`."""
    if not isinstance(value, bool | np.bool_ | int | np.integer) or value not in (0, 1):
        raise InputError(f"{name} must be True or False; got {described(value)}")
    return bool(value)


def level(value: object, name: str = "level") -> float:
    """Return the level of an interval, between 0 and 1, or raise `InputError`."""
    return real(value, name, above=0.0, below=1.0)


def ranked(value: object, name: str) -> NDArray[np.float64]:
    """Return numbers that are compared and not computed with, so that infinities and NaN are the caller's to judge."""
    result = plain(value, name, "numbers")
    if result.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers; got {described(value)}")
    return result.astype(np.float64)


def require_parts(value: object, name: str, parts: Sequence[str], wanted: str) -> None:
    """Check that a thing has the parts that will be asked of it; `wanted` says where such things come from."""
    if isinstance(value, type) or not all(hasattr(value, part) for part in parts):
        raise InputError(f"{name} must be {wanted}; got {described(value)}")


def described(value: object) -> str:
    """Return a value as a sentence quotes it: on one line, short, whatever it is."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "an integer of more than 30 digits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a class of somebody else's
        text = f"a {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:97]}..."


def plain(value: object, name: str, wanted: str) -> NDArray[Any]:
    """Return what was given as an array without a mask, whatever it holds."""
    if _masked(value):
        raise InputError(f"{name} is masked; fill it (.filled) or drop what is masked (.compressed)")
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} must be {wanted}; got rows of unequal length") from error
    except Exception as error:
        raise InputError(f"{name} must be {wanted}; got {described(value)} ({error})") from error


def _masked(value: object, depth: int = 4) -> bool:
    """Return whether something, or an item of its nested lists, is a masked array, whose mask numpy would drop."""
    if isinstance(value, list | tuple) and depth:
        return any(_masked(item, depth - 1) for item in value)
    return isinstance(value, np.ma.MaskedArray)


def numbers(value: ArrayLike, name: str, *, above: float = -np.inf, least: float = -np.inf) -> NDArray[np.float64]:
    """Return `value`, of any shape, as finite floats greater than `above` and at least `least`, or raise `InputError`."""
    result = plain(value, name, "numbers")
    if result.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers; got {described(value)}")
    with np.errstate(over="ignore"):  # an infinity is refused below
        result = result.astype(np.float64)
    if not result.size:
        raise InputError(f"{name} is empty")
    good = np.isfinite(result) & (result > above) & (result >= least)
    if not good.all():
        bound = (
            f" and greater than {above:g}" if above > -np.inf else f" and at least {least:g}" if least > -np.inf else ""
        )
        raise InputError(f"{name} must be finite{bound}; got {result[~good].flat[0]:g}")
    if max(above, least) >= 0 and not np.all((result == 0) | ((result >= TINIEST**2) & (result <= HUGEST**2))):
        raise InputError(f"{name} must lie between {TINIEST**2:g} and {HUGEST**2:g}, where their powers are numbers")
    return result
