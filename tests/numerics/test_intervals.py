import numpy as np
import pytest
from scipy import stats

from attlas.errors import InputError
from attlas.numerics import fit_line, mean_interval, rank_correlation, share_interval


def test_mean_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = sum(low < 2 < high for _, low, high in (mean_interval(rng.normal(2, 1, 5), 0.9) for _ in range(2000)))
    assert stats.binomtest(hits, 2000, 0.9).pvalue > 1e-3


def test_line_against_scipy():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=12), rng.normal(size=12)
    expected, line = stats.linregress(x, y), fit_line(x, y)
    assert line.slope == pytest.approx(expected.slope)
    assert line.intercept == pytest.approx(expected.intercept)
    assert line.slope_error == pytest.approx(expected.stderr)
    assert line.intercept_error == pytest.approx(expected.intercept_stderr)


def test_line_covers_as_often_as_it_says():
    rng = np.random.default_rng(2)
    x = np.repeat([0.1, 0.5, 1.0], 4)
    hits = 0
    for _ in range(1500):
        low, high = fit_line(x, 3 - 2 * x + rng.normal(0, 0.3, len(x))).intercept_interval(0.9)
        hits += low < 3 < high
    assert stats.binomtest(hits, 1500, 0.9).pvalue > 1e-3


def test_bad():
    with pytest.raises(InputError, match="at least two"):
        mean_interval([1.0])
    with pytest.raises(InputError, match="three points"):
        fit_line([1, 1, 1], [1, 2, 3])


def test_rank_correlation_is_spearmans_and_its_interval_covers():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 9))
    assert rank_correlation(x, y)[0] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert rank_correlation([1, 2, 3, 4, np.inf], [1, 8, 9, 20, 21])[0] == pytest.approx(1)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)  # of a binormal with correlation 0.6
    inside = 0
    for _ in range(400):
        a, b = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 14).T
        _, low, high = rank_correlation(a, b, 0.9)
        inside += low <= truth <= high
    assert 0.84 < inside / 400 < 0.97
    for bad in ([1, 2, 3, 4], [1, 1, 1, 1, 1], [1, 2, 3, 4, np.nan]):
        with pytest.raises(InputError):
            rank_correlation(bad, np.arange(len(bad)))


def test_a_share_has_the_interval_of_clopper_and_pearson():
    found = share_interval(7, 10, 0.95)
    peer = stats.binomtest(7, 10).proportion_ci(0.95, method="exact")
    assert found == pytest.approx((0.7, peer.low, peer.high))
    assert share_interval(0, 5)[1] == 0
    assert share_interval(5, 5)[2] == 1
    with pytest.raises(InputError):
        share_interval(6, 5)
