"""The margin of a verdict as a picture: the interval of a number, and the region where it must lie.

All pictures share one scale: distance from the nearest edge of the region, in standard errors, in steps that get shorter
further out. Where a number has no scatter the scale is the orders of magnitude by which it is inside.
"""

import math

from markupsafe import Markup

from attlas.claims.estimate import Student
from attlas.claims.verdict import Test, Verdict
from attlas.lab import Judged
from attlas.report.typeset import number

WIDTH, HEIGHT = 120.0, 12.0
LEAST, MOST = -5.0, 40.0  # standard errors at both ends of the picture
EVEN = 5.0  # up to about here the scale is even
MAGNITUDES = 8.0  # standard errors that an order of magnitude is drawn as


def deciding(verdict: Verdict | None) -> Test | None:
    """Return the test that the strength of a verdict is that of, if any."""
    tests = verdict.tests if verdict else ()
    return next(
        (test for test in tests if verdict and (test.strength, test.unit) == (verdict.strength, verdict.unit)), None
    )


def picture(test: Test) -> Markup:
    """Return the interval of a number in its region as SVG, for who can see it: the numbers stand beside it."""
    low, high = _ends(test)
    middle = _distance(test)
    start, end = _place(0.0), _place(_room(test))
    dot = f'<circle cx="{_place(middle):.1f}" cy="6" r="2.6" class="value"/>'
    bar = f'<line x1="{_place(low):.1f}" x2="{max(_place(high), _place(low) + 1):.1f}" y1="6" y2="6" class="interval"/>'
    return Markup(  # noqa: S704 - numbers alone
        f'<svg class="margin" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" aria-hidden="true">'
        f'<line class="scale" x1="{_place(LEAST):.0f}" x2="{_place(MOST):.0f}" y1="6" y2="6"/>'
        f'<rect class="region" x="{start:.1f}" y="0" width="{max(end - start, 1):.1f}" height="{HEIGHT:.0f}"/>'
        f'<line class="edge" x1="{start:.1f}" x2="{start:.1f}" y1="0" y2="{HEIGHT:.0f}"/>'
        f"{bar if low < high else ''}{dot}</svg>"
    )


def rank(entry: Judged) -> str:
    """Return where a claim stands among others by its margin: standard errors, then what has no scatter; or nothing."""
    if not entry.margin or not entry.verdict:
        return ""
    beyond = 1000.0 if entry.verdict.unit.startswith("orders") and entry.verdict.strength > 0 else 0.0
    return f"{min(max(beyond + entry.verdict.strength, -1e6), 1e6):.4g}"


def value(test: Test) -> str:
    """Return the number of a test, with as many decimals as its interval has and at least three digits."""
    return _to_the_decimals_of(_half(test), test.estimate.value)


def spread(test: Test) -> str:
    """Return half the 99 % interval of a number, or its ends where they are not as far off; nothing without scatter."""
    if test.exact:
        return ""
    low, high = test.estimate.interval()
    half = _half(test)
    if isinstance(test.estimate, Student) and abs(low + high - 2 * test.estimate.value) < 0.02 * half:
        return number(half, 2, zeros=True)
    return f"{_to_the_decimals_of(half, low)} to {_to_the_decimals_of(half, high)}"


def _half(test: Test) -> float:
    low, high = test.estimate.interval()
    return 0.0 if test.exact else (high - low) / 2


def _to_the_decimals_of(half: float, value: float) -> str:
    """Return a number to where two digits of half its interval end: 1.003 beside 0.010."""
    if not half or not value or not math.isfinite(half) or not math.isfinite(value):
        return number(value)
    last = math.floor(math.log10(half) + 1e-9) - 1  # the power of ten of the second digit
    digits = math.floor(math.log10(abs(round(value, -last)) or abs(value))) - last + 1
    return number(value, min(max(digits, 1), 6), zeros=True)


def _distance(test: Test) -> float:
    """Return how far inside the nearest edge the number is."""
    return test.strength * (MAGNITUDES if test.exact else 1)


def _unit(test: Test) -> tuple[float, float]:
    """Return the nearest edge, and one standard error towards the inside of the region."""
    low, high = test.region.low, test.region.high
    from_low, from_high = test.estimate.distance(low), -test.estimate.distance(high)
    edge, away = (low, test.estimate.value - low) if from_low <= from_high else (high, high - test.estimate.value)
    step = away / test.strength if test.strength and math.isfinite(test.strength) else 0.0
    return edge, step if edge == low else -step


def _ends(test: Test) -> tuple[float, float]:
    if test.exact:
        return (_distance(test),) * 2
    edge, step = _unit(test)
    if not step or not math.isfinite(step):
        return (_distance(test),) * 2
    low, high = sorted((end - edge) / step for end in test.estimate.interval())
    return low, high


def _room(test: Test) -> float:
    """Return how wide the region is, from its nearest edge on."""
    _, step = _unit(test)
    width = test.region.high - test.region.low
    return abs(width / step) if not test.exact and step and math.isfinite(width) else math.inf


def _place(distance: float) -> float:
    """Return the place of a distance in the picture."""
    inside = min(max(distance, LEAST), MOST)
    low, high = math.asinh(LEAST / EVEN), math.asinh(MOST / EVEN)
    return 3 + (WIDTH - 6) * (math.asinh(inside / EVEN) - low) / (high - low)
