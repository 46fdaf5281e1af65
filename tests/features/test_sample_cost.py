import numpy as np
import pytest

from attlas.errors import InputError
from attlas.features import exponent, sample_cost


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
