"""The picture of a margin: one scale for all, the region to the right of its edge."""

import re

import pytest

from attlas.claims.estimate import Exact, Share, Student
from attlas.claims.verdict import Test as Tested
from attlas.claims.verdict import above, below, between, decide
from attlas.report.margin import deciding, picture, spread, value


def _drawn(test):
    """Return the edge, the ends of the interval and the value, in units of the picture."""
    text = str(picture(test))
    edge = float(re.search(r'class="edge" x1="([\d.]+)"', text)[1])
    bar = re.search(r'<line x1="([\d.]+)" x2="([\d.]+)" y1="6" y2="6" class="interval"', text)
    value = float(re.search(r'<circle cx="([\d.]+)"', text)[1])
    return edge, (float(bar[1]), float(bar[2])) if bar else None, value


@pytest.mark.parametrize("region", [above(1.0), below(3.0), between(1.0, 3.0)])
@pytest.mark.parametrize(("value", "error"), [(2.0, 0.1), (1.4, 0.1), (2.6, 0.1), (0.5, 0.1), (3.5, 0.1), (1.05, 0.5)])
def test_the_bar_lies_in_the_region_where_the_interval_does(region, value, error):
    test = Tested("x", Student(value, error, 50), region)
    edge, (low, high), place = _drawn(test)
    assert low <= place <= high
    low_end, high_end = test.estimate.interval()
    inside = min(low_end - region.low, region.high - high_end) > 0
    assert (low > edge) == inside


def test_a_strong_margin_is_drawn_further_in_than_a_weak_one_and_both_alike_from_either_side():
    places = [_drawn(Tested("x", Student(1 + away, 0.1, 50), above(1.0)))[2] for away in (0.3, 0.6, 1.2, 2.4)]
    assert places == sorted(places)
    assert places[-1] - places[0] > 30
    mirrored = _drawn(Tested("x", Student(-1.6, 0.1, 50), below(-1.0)))[2]
    assert mirrored == pytest.approx(places[1])


def test_an_open_test_shows_how_wide_its_interval_is_against_its_region():
    test = Tested("x", Student(1.0, 0.1, 50), between(0.9, 1.1))
    text = str(picture(test))
    region = float(re.search(r'class="region" x="[\d.]+" y="0" width="([\d.]+)"', text)[1])
    _, (low, high), _ = _drawn(test)
    assert high - low > region


def test_a_number_without_scatter_is_a_dot():
    edge, bar, place = _drawn(Tested("x", Exact(1e-5), below(1e-3)))
    assert bar is None
    assert place > edge
    assert _drawn(Tested("x", Exact(1e-1), below(1e-3)))[2] < edge
    assert _drawn(Tested("x", Exact(0.0), below(1e-3)))[2] > place  # as far in as can be


def test_the_deciding_test_is_the_one_the_verdict_tells():
    tests = [Tested("far", Student(9.0, 0.1, 50), above(1.0)), Tested("near", Student(1.5, 0.1, 50), above(1.0))]
    assert deciding(decide(tests)).name == "near"
    assert deciding(None) is None


def test_spreads_are_half_an_interval_or_its_ends():
    assert spread(Tested("x", Student(1.0, 0.1, 1e6), above(0.0))) == "0.26"
    assert spread(Tested("x", Share(48, 48), above(0.5))) == "0.895 to 1.000"
    assert spread(Tested("x", Exact(1.0), above(0.0))) == ""


@pytest.mark.parametrize(
    ("found", "error", "shown"),
    [(1.00341, 0.00391, "1.003"), (0.999998, 0.00391, "1.000"), (-12.345, 0.11, "−12.35"), (0.0, 0.1, "0"),
     (0.0002, 0.0077, "0.0002"), (2.12e-7, 3.9e-8, "2.1 × 10⁻⁷")],
)  # fmt: skip
def test_a_number_ends_where_two_digits_of_its_interval_do(found, error, shown):
    assert value(Tested("x", Student(found, error, 1e6), above(-100.0))) == shown
