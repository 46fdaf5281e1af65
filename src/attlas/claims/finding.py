"""What findings are made of: numbers of a verdict by the ends of their names, and ranges as people write them."""

from collections.abc import Iterable

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
    low, high = (format(end, form) for end in (ends[0], ends[-1]))
    return low if low == high else f"{low} to {high}"
