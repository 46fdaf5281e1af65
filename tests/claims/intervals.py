"""Which numbers of a sentence have an interval, for tests of findings."""

import math
import re

NUMBER = r"[-+]?\d+(?:\.\d+)?%?"
INTERVAL = re.compile(rf"± ?{NUMBER}|\({NUMBER} to {NUMBER}\)")
TOLD = re.compile(rf"(?: to {NUMBER})?[^\d.;:]*?(?:{INTERVAL.pattern})")
CONSTANT = "chance is "  # nothing estimated
SEEN = 1e-3  # an interval is seen where it is wider than this share of the last digit


def bare(text, numbers):
    """Return the decimals and percentages of a text that no interval follows, though the verdict has one of them."""
    inside = [match.span() for match in INTERVAL.finditer(text)]
    return [
        found.group()
        for found in re.finditer(rf"(?<![\w.^+-])(?<!{CONSTANT}){NUMBER}(?!\w)", text)
        if re.search(r"[.%]", found.group())
        and not any(start <= found.start() < end for start, end in inside)
        and not TOLD.match(text, found.end())
        and _estimated(found.group(), numbers)
    ]


def _estimated(said, numbers):
    """Return whether a number is one of those with an interval, or what one of them is the logarithm of, and no other."""
    bare_of_sign = said.lstrip("+-")
    digits = len(bare_of_sign.rstrip("%").partition(".")[2])
    form = f".{digits}{'%' if said.endswith('%') else 'f'}"
    last = 10.0 ** -(digits + 2 * said.endswith("%"))

    def reads(value):
        return format(abs(value), form) == bare_of_sign

    exact = (value for name, value in numbers.items() if "predicted" in name and not _half(name, numbers))
    if any(map(reads, exact)):
        return False
    return any(
        reads(value) or ("log" in name and reads(math.exp(value)))
        for name, value in numbers.items()
        if _half(name, numbers) > SEEN * last
    )


def _half(name, numbers):
    """Return half the width of the interval of a number, or zero where it has none."""
    if f"{name}, low" in numbers:
        return (numbers[f"{name}, high"] - numbers[f"{name}, low"]) / 2
    return numbers.get(f"{name} ±", 0.0)
