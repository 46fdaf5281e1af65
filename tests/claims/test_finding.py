import pytest

from attlas.claims.finding import ending, factor, factors, interval, named, off, span, spans, within


def test_numbers_are_found_by_the_end_of_their_name():
    numbers = {"d=4 gap": 1.0, "d=4 gap ±": 0.1, "d=8 gap": 2.0}
    assert ending(numbers, " gap") == [1.0, 2.0]
    with pytest.raises(LookupError, match="slope"):
        ending(numbers, " slope")


@pytest.mark.parametrize(
    ("values", "said"),
    [([1.0, 0.974], "0.97 to 1.00"), ([2.0], "2.00"), ([0.9999, 1.0001], "1.00")],
)
def test_a_range_whose_ends_read_the_same_is_one_number(values, said):
    assert span(values) == said


def test_a_number_comes_with_its_interval():
    numbers = {"gap": 1.0, "gap ±": 0.03, "share": 0.95, "share, low": 0.9, "share, high": 0.98, "bare": 2.0}
    assert interval(numbers, "gap") == "1.00 ± 0.03"
    assert interval(numbers, "share", ".0%") == "95% (90% to 98%)"
    with pytest.raises(LookupError):
        interval(numbers, "bare")
    with pytest.raises(LookupError):
        interval(numbers, "absent")


def test_a_range_comes_with_the_widest_interval():
    assert spans({"a gap": 1.0, "a gap ±": 0.1, "b gap": 2.0, "b gap ±": 0.2}, " gap") == "1.00 to 2.00 (± 0.20)"


@pytest.mark.parametrize(
    ("half", "form", "said"), [(0.03, ".2f", "± 0.03"), (0.0004, ".2f", "± 0.0004"), (0.0004, ".0%", "± 0.04%")]
)
def test_an_interval_is_never_rounded_to_nothing(half, form, said):
    assert off(half, form) == said


def test_a_share_below_one_is_never_all():
    numbers = {
        "found": 287 / 288,
        "found, low": 0.974,
        "found, high": 1.0,
        "all": 1.0,
        "all, low": 0.9,
        "all, high": 1.0,
    }
    assert interval(numbers, "found", ".0%") == "99.7% (97.4% to 100.0%)"
    assert interval(numbers | {"found": 1391 / 1392}, "found", ".0%").startswith("99.9% (")
    assert interval(numbers, "all", ".0%") == "100% (90% to 100%)"


def test_numbers_with_an_interval_are_found_by_both_ends_of_their_name():
    numbers = {"a gap": 1.0, "a gap ±": 0.1, "b gap": 2.0, "b gap ±": 0.2, "a bare gap": 3.0}
    assert named(numbers, end=" gap") == ["a gap", "b gap"]
    assert named(numbers, "a", " gap") == ["a gap"]
    assert within(numbers, ["b gap", "a gap"]) == "1.00 to 2.00 (± 0.20)"
    with pytest.raises(LookupError, match="bare"):
        named(numbers, "a bare")


def test_a_logarithm_is_told_as_a_factor_with_both_ends_of_its_interval():
    numbers = {"small": 0.0, "small ±": 0.1, "large": 1.0, "large ±": 0.5}
    assert factor(numbers, "large", ".1f") == "2.7 (1.6 to 4.5)"
    assert factors(numbers, ["large", "small"], ".1f") == "1.0 (0.9 to 1.1) to 2.7 (1.6 to 4.5)"
    assert factors(numbers, ["small"], ".1f") == "1.0 (0.9 to 1.1)"
