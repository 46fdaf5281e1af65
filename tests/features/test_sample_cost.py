import numpy as np
import pytest

from attlas.errors import InputError
from attlas.features import cost_interval, exponent, sample_cost


def test_interpolation_is_in_logarithms():
    n = np.array([10.0, 20, 40, 80])
    assert sample_cost(n, 10 / n) == pytest.approx(20)  # at a size itself
    assert sample_cost(n, 15 / n) == pytest.approx(30)  # a power law is followed exactly
    assert sample_cost(n, 15 / n, level=0.25) == pytest.approx(60)


def test_censored_costs_are_not_numbers_to_fit():
    assert sample_cost([10, 20], [0.4, 0.3]) == 0
    assert sample_cost([10, 20], [1.1, 0.9]) == np.inf
    found = exponent([4, 8, 16, 32, 64], [16, 64, 256, np.inf, 0])
    assert found.line.slope == pytest.approx(2)
    assert found.censored == 2
    with pytest.raises(InputError, match="three measured costs"):
        exponent([4, 8, 16], [np.inf, 0, 3])


@pytest.mark.parametrize(("sizes", "errors"), [([10, 5], [1, 0.5]), ([5, 10], [1, 0]), ([5, 10, 20], [1, 0.5])])
def test_bad_input_is_one_sentence(sizes, errors):
    with pytest.raises(InputError, match="sizes must increase"):
        sample_cost(sizes, errors)


def test_the_interval_covers():
    """Its share of repeats, whether or not some are censored: the median of a lognormal is its geometric mean."""
    rng = np.random.default_rng(0)
    for cap in (np.inf, 150.0):
        inside = 0
        for _ in range(400):
            costs = np.exp(rng.normal(np.log(100), 0.5, 12))
            _, low, high = cost_interval(np.where(costs > cap, np.inf, costs), 0.9)
            inside += low <= 100 <= high
        assert 0.85 < inside / 400 <= 1  # order statistics cover more than they promise


def test_few_or_censored_repeats_leave_an_end_open():
    middle, low, high = cost_interval([30.0, np.inf, np.inf])
    assert (middle, low, high) == (np.inf, 0.0, np.inf)
    assert cost_interval([100.0, 100.0 * np.e])[0] == pytest.approx(100 * np.sqrt(np.e))
    for costs, level in ([[1.0], 0.9], [[1.0, np.nan], 0.9], [[1.0, -2.0], 0.9], [[1.0, 2.0], 1.0]):
        with pytest.raises(InputError):
            cost_interval(costs, level)
