import pytest

from attlas.claims.finding import ending, span


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
