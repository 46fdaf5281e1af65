"""Estimates: against simulation with known truth, closed forms and SciPy."""

import numpy as np
import pytest
from scipy import stats

from attlas.claims.estimate import (
    Exact,
    FiniteSize,
    Share,
    Student,
    Undecided,
    correlation,
    finite_size,
    mean,
    resampled,
    share,
    slope,
)

SIZES = {16: 24, 32: 16, 64: 8, 128: 6}


def rows(rng, limit=1.0, C=3.0, power=1.0, sizes=SIZES):
    """Values limit + C/d^power with scatter 4/d."""
    return [(d, limit + C / d**power + 4 / d * rng.normal()) for d, seeds in sizes.items() for _ in range(seeds)]


def test_a_mean_has_students_interval():
    x = [1.0, 2.0, 4.0, 9.0]
    low, high = mean(x).interval(0.95)
    expected = stats.t.interval(0.95, 3, np.mean(x), stats.sem(x))
    assert (low, high) == pytest.approx(expected)
    assert mean(x).distance(1.0) == pytest.approx(3.0 / stats.sem(x))


def test_samples_that_cannot_be_averaged():
    with pytest.raises(Undecided, match="1 of 3 values are not numbers"):
        mean([1, np.nan, 2])
    with pytest.raises(Undecided, match="two seeds"):
        mean([1.0])
    assert mean([1.0, np.inf]) == Exact(np.inf)
    assert finite_size([(10, 1.0), (20, np.inf)]) == Exact(np.inf)


def test_a_share_and_its_distance():
    assert share([True, 1, 0, np.True_]) == Share(3, 4)
    low, high = Share(9, 10).interval(0.99)
    assert low == pytest.approx(stats.binomtest(9, 10).proportion_ci(0.99, "exact").low)
    assert high == pytest.approx(stats.binomtest(9, 10).proportion_ci(0.99, "exact").high)
    assert Share(10, 10).distance(0.8) == pytest.approx(0.2 / np.sqrt(0.16 / 10))
    with pytest.raises(Undecided):
        share([])


def test_a_slope_is_scipys():
    rng = np.random.default_rng(0)
    x = np.arange(12.0)
    y = 3 * x + rng.normal(size=12)
    fit = stats.linregress(x, y)
    assert (slope(x, y).value, slope(x, y).error) == pytest.approx((fit.slope, fit.stderr))
    with pytest.raises(Undecided):
        slope([1, 1, 1], [1, 2, 3])


def test_a_correlation_of_five_pairs_is_no_proof():
    found = correlation([1, 2, 3, 4, np.inf], [1, 4, 9, 16, 25])
    assert (found.value, found.pairs) == (pytest.approx(1.0), 5)
    assert found.interval()[0] < 0.5


def test_intervals_of_the_limit_cover_it():
    """99 % intervals in 1000 simulated sweeps of unequal seeds and scatters: at least 98 % cover, by three errors."""
    rng = np.random.default_rng(1)
    fits = [finite_size(rows(rng)) for _ in range(1000)]
    covered = np.mean([low < 1 < high for low, high in (fit.interval() for fit in fits)])
    assert covered > 0.99 - 3 * np.sqrt(0.99 * 0.01 / 1000)
    assert np.mean([fit.misfit < 0.01 for fit in fits]) < 0.03
    assert np.mean([fit.value for fit in fits]) == pytest.approx(1, abs=0.003)
    # the stated error is the scatter that is seen
    assert np.std([fit.value for fit in fits]) == pytest.approx(np.mean([fit.error for fit in fits]), rel=0.15)


def test_weights_beat_equal_ones():
    """Where small sizes scatter more, a fit that knows it is sharper."""
    rng = np.random.default_rng(2)
    found, plain = [], []
    for _ in range(400):
        drawn = rows(rng)
        found.append(finite_size(drawn).value)
        d, y = np.array(drawn).T
        plain.append(np.polyfit(1 / d, y, 1)[1])
    assert np.std(found) < 0.9 * np.std(plain)


def test_a_wrong_law_is_seen_and_widens_the_interval():
    rng = np.random.default_rng(3)
    found = finite_size(rows(rng, C=20.0, power=0.5, sizes={16: 200, 32: 200, 64: 200, 128: 200}))
    assert found.misfit < 1e-6
    low, high = found.interval()
    assert low < 1 < high  # that of the powers 1/2, 1, 2 together
    assert not Student.interval(found)[0] < 1 < Student.interval(found)[1]


def test_three_sizes_are_needed():
    with pytest.raises(Undecided, match="needs 3 sizes and two seeds at each"):
        finite_size([(10, 1.0), (10, 1.1), (20, 1.0), (20, 1.1)])
    two = finite_size([(10, 1.0), (10, 1.1), (20, 1.0), (20, 1.1)], sizes=2)
    assert isinstance(two, FiniteSize)
    assert np.isnan(two.misfit)


def test_measurements_without_scatter_are_extrapolated():
    found = finite_size([(d, 2 + 3 / d) for d in (10, 20, 40) for _ in range(3)])
    assert (found.value, found.slope) == pytest.approx((2, 3))


def test_resampling_finds_the_error_of_a_mean():
    rng = np.random.default_rng(4)
    x = rng.normal(size=50)
    found = resampled(lambda groups: float(groups["x"].mean()), {"x": x})
    assert found.value == x.mean()
    assert found.error == pytest.approx(mean(x).error, rel=0.15)
    with pytest.raises(Undecided, match="three seeds"):
        resampled(lambda groups: 0.0, {"x": [1, 2]})
    assert resampled(lambda groups: float(groups["x"].mean()), {"x": x}) == found


@pytest.mark.parametrize("estimate", [Student(1.0, 0.1, 9), FiniteSize(1.0, 0.1, 9, 3.0, 0.5, (Student(2.0, 0.1, 9),))])
def test_a_shift_moves_everything(estimate):
    moved = estimate.shifted(0.5)
    assert moved.value == 1.5
    assert np.subtract(moved.interval(), estimate.interval()) == pytest.approx([0.5, 0.5])
    assert [other.value for other in getattr(moved, "others", ())] == [
        other.value + 0.5 for other in getattr(estimate, "others", ())
    ]
