import numpy as np
import pytest

from attlas import aim
from attlas.aim.spectrum import spectrum, stieltjes
from attlas.errors import InputError

from .test_spectrum import goe

NOISES, WIDTHS = (1e-6, 1e-3, 0.05, 0.3, 2.0, 50.0, 1e4), (1e-3, 0.02, 0.1, 0.5, 0.9, 1.0, 1.5, 5.0)


@pytest.mark.parametrize("rho", WIDTHS)
def test_shrinkage_is_the_posterior_mean_on_the_support(rho):
    """rho^(3/2)/|sqrt(rho) - g|^2, with g from its cubic equation; and the nodes of the quadrature."""
    for delta in NOISES:
        ends = aim.edges(delta, rho)
        x = np.concatenate([np.linspace(a, b, 53)[1:-1] for a, b in zip(ends[::2], ends[1::2], strict=True)])
        expected = rho**1.5 / np.abs(np.sqrt(rho) - stieltjes(x, delta, rho)) ** 2
        np.testing.assert_allclose(aim.shrink(x, delta, rho), expected, rtol=1e-11)
        nodes = spectrum(delta, rho)
        np.testing.assert_allclose(aim.shrink(nodes.x, delta, rho), nodes.f, rtol=1e-9)


@pytest.mark.parametrize("rho", WIDTHS)
def test_on_the_whole_line_it_is_positive_increasing_and_inverts(rho):
    s = np.sqrt(rho)
    for delta in NOISES:
        ends = aim.edges(delta, rho)
        length = ends[-1] - ends[0]
        x = np.concatenate([ends, np.linspace(ends[0] - 2 * length, ends[-1] + 2 * length, 3001)])
        x = np.sort(np.concatenate([x, [-1e100, -1e12, -1e6, 1e6, 1e12, 1e100]]))
        f = aim.shrink(x, delta, rho)
        assert np.all(np.isfinite(f) & (f > 0))
        assert np.all(np.diff(f) >= -1e-14 * f[1:])
        gap = (x > ends[1]) & (x < ends[-2]) if len(ends) == 4 else np.zeros(len(x), dtype=bool)
        terms = np.array([f, delta * s * (1 - s / f), delta / (f + s * delta)])
        rounding = 1e-13 * np.abs(terms).max(0) + 1e-15 * delta * s  # 1 - s/f cancels
        assert np.all(np.abs(terms.sum(0) - x)[~gap] <= rounding[~gap])


def test_no_slope_is_large_off_the_support():
    """Past an edge x - 2 Delta Re g has a slope of 1/sqrt(distance), and message passing cannot settle."""
    for delta, rho in [(0.5, 1.5), (0.1, 1.0), (0.3, 0.5), (0.05, 0.5), (1e-3, 0.1)]:
        ends = aim.edges(delta, rho)
        for x in ends:
            near = aim.shrink(x + np.array([-2e-6, -1e-6, 1e-6, 2e-6]), delta, rho)
            assert np.all(np.diff(near) < 2e-6 * 1.6), (delta, rho, x)


def test_between_two_bulks_it_goes_on_from_the_upper_one():
    """The smallest nonzero eigenvalues of S lie there at finite size; below them f drops to the lower bulk."""
    delta, rho = 1e-6, 0.5
    ends = aim.edges(delta, rho)
    assert len(ends) == 4
    x = np.linspace(ends[2] / 2, ends[2], 20)
    np.testing.assert_allclose(aim.shrink(x, delta, rho), x, rtol=1e-3)
    assert aim.shrink(ends[1], delta, rho) < 1e-3


@pytest.mark.parametrize(("rho", "delta"), [(0.5, 0.3), (0.5, 1.5), (1, 0.3), (1.5, 1.5), (0.1, 1.5)])
def test_simulated_error_is_mmse(rho, delta):
    """d = 300, 6 draws: within three standard errors plus 3/d."""
    errors = []
    for seed in range(6):
        S = aim.teacher(300, rho, seed)
        R = S + np.sqrt(delta) * goe(300, 100 + seed)
        errors.append(np.sum((aim.denoise(R, delta, rho) - S) ** 2) / 300)
    F = float(aim.mmse(delta, rho))
    assert abs(np.mean(errors) - F) < 3 * np.std(errors, ddof=1) / np.sqrt(6) + 3 / 300 * F


def test_it_beats_keeping_and_shrinking_linearly():
    delta, rho, S = 0.7, 0.3, aim.teacher(200, 0.3, 0)
    R = S + np.sqrt(delta) * goe(200, 1)
    error = [
        np.sum((A - S) ** 2) / 200
        for A in (aim.denoise(R, delta, rho), R, (R + delta * np.sqrt(rho) * np.eye(200)) / (1 + delta))
    ]
    assert error[0] < error[2] < error[1]


def test_bad():
    with pytest.raises(InputError, match="R: axis 1"):
        aim.denoise(np.ones((2, 3)), 1.0, 1.0)
    with pytest.raises(InputError, match="delta must"):
        aim.denoise(np.eye(3), 0.0, 1.0)
