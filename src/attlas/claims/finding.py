"""What findings are made of: numbers of a verdict by the ends of their names, and ranges as people write them."""

from collections.abc import Iterable

import numpy as np

from attlas.claims.claim import Numbers


def ending(numbers: Numbers, end: str) -> list[float]:
    """Return the numbers of a verdict whose names end so.

    Raises
    ------
    LookupError
        If there is none.
    """
    found = [value for name, value in numbers.items() if name.endswith(end)]
    if not found:
        raise LookupError(end)
    return found


def span(values: Iterable[float], form: str = ".2f") -> str:
    """Return "0.97 to 1.02", or "0.97" where both ends read the same."""
    ends = sorted(values)
    low, high = (format(end, form) for end in (ends[0] + 0.0, ends[-1] + 0.0))
    low, high = (end.removeprefix("-") if not end.strip("-0.%") else end for end in (low, high))
    return low if low == high else f"{low} to {high}"


def interval(numbers: Numbers, name: str, form: str = ".2f") -> str:
    """Return a number of a verdict with its 99 % interval: "1.00 ± 0.03", or "95% (90% to 98%)" where it is lopsided.

    Raises
    ------
    LookupError
        If the verdict has no such number, or no interval of it.
    """
    form = _short_of_all(numbers[name], form)
    value = format(numbers[name], form)
    if f"{name} ±" in numbers:
        return f"{value} {off(numbers[f'{name} ±'], form)}"
    low, high = (format(numbers[f"{name}, {end}"], form) for end in ("low", "high"))
    return f"{value} ({low} to {high})"


def _short_of_all(share: float, form: str) -> str:
    """Return a form of percentages in which a share below one does not read 100%; any other form as it is."""
    while form.endswith("%") and share < 1 and float(format(share, form)[:-1]) == 100:
        form = f".{int(form[1:-1]) + 1}%"
    return form


def named(numbers: Numbers, start: str = "", end: str = "") -> list[str]:
    """Return the names of the numbers with an interval that start and end so.

    Raises
    ------
    LookupError
        If there is none.
    """
    found = [name for name in numbers if name.startswith(start) and name.endswith(end) and f"{name} ±" in numbers]
    if not found:
        raise LookupError(f"{start} ... {end}")
    return found


def within(numbers: Numbers, names: Iterable[str], form: str = ".2f") -> str:
    """Return the range of some numbers with the widest of their intervals: "0.97 to 1.02 (± 0.03)"."""
    values, halves = zip(*((numbers[name], numbers[f"{name} ±"]) for name in names), strict=True)
    return f"{span(values, form)} ({off(max(halves), form)})"


def spans(numbers: Numbers, end: str, form: str = ".2f") -> str:
    """Return the range of all numbers whose names end so, with the widest of their intervals: "0.97 to 1.02 (± 0.03)"."""
    widest = max(ending(numbers, f"{end} ±"))
    return f"{span(ending(numbers, end), form)} ({off(widest, form)})"


def factor(numbers: Numbers, name: str, form: str = ".2f") -> str:
    """Return a number of which the verdict has the logarithm, with its interval: "1.8 (1.6 to 2.1)"."""
    middle, half = numbers[name], numbers[f"{name} ±"]
    value, low, high = (format(float(np.exp(end)), form) for end in (middle, middle - half, middle + half))
    return f"{value} ({low} to {high})"


def factors(numbers: Numbers, names: Iterable[str], form: str = ".2f") -> str:
    """Return the smallest and the largest of such numbers: "1.8 (1.6 to 2.1) to 2.4 (2.1 to 2.7)"."""
    least, *_, most = sorted([*names] * 2, key=lambda name: numbers[name])
    return (
        factor(numbers, least, form) if least == most else " to ".join(factor(numbers, n, form) for n in (least, most))
    )


def off(half: float, form: str = ".2f") -> str:
    """Return half the width of an interval as "± 0.03", with one digit at least that is not zero."""
    said = format(half, form)
    if any(digit in said for digit in "123456789") or half == 0:
        return f"± {said}"
    return f"± {100 * half:.1g}%" if form.endswith("%") else f"± {half:.1g}"
