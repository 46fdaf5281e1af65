import numpy as np
import pytest

from attlas import aim
from attlas.aim.spectrum import spectrum
from attlas.errors import InputError

from .test_spectrum import goe


def test_shrinkage_is_the_posterior_mean_on_the_support():
    for delta, rho in [(0.1, 0.5), (2.0, 0.1), (1e-3, 1.0), (50.0, 2.0)]:
        nodes = spectrum(delta, rho)
        np.testing.assert_allclose(aim.shrink(nodes.x, delta, rho), nodes.f, rtol=1e-6)


def test_off_the_support_it_is_positive_and_continuous():
    delta, rho = 0.5, 0.4
    low, high = aim.edges(delta, rho)
    just = aim.shrink(np.array([high - 1e-9, high + 1e-9]), delta, rho)
    assert just[0] == pytest.approx(just[1], rel=1e-3)
    assert np.all(aim.shrink(np.linspace(low - 2, low, 20), delta, rho) >= 0)
    far = aim.shrink(np.array([1e4]), delta, rho)
    assert far[0] == pytest.approx(1e4, rel=1e-3)


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
