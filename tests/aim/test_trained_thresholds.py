"""Where training finds the teacher, and where it fits the data exactly."""

import pytest

from attlas import aim


@pytest.mark.parametrize(
    ("rho", "trace", "psd"),
    [(0.01, 0.046284, 0.50995), (0.1, 0.315144, 0.595), (0.5, 0.844350, 0.875), (0.9, 0.994810, 0.995), (1.0, 1, 1)],
)
def test_thresholds(rho, trace, psd):
    found = aim.trained_threshold(rho)
    assert found.minimum_trace == pytest.approx(trace, abs=5e-7)
    assert found.psd_only == pytest.approx(psd, abs=5e-7)


@pytest.mark.parametrize(
    ("rho", "noise", "A", "peak"),
    [(0.5, 0.125, 0.64726, 1.558), (0.5, 0.5, 0.5822, 6.22), (0.1, 0.125, 0.5357, 5.12), (2.0, 0.125, 0.8327, 1.334)],
)
def test_the_peak_is_at_the_interpolation_threshold(rho, noise, A, peak):
    channel = aim.Linear(1, 2 * noise)
    alpha, error = aim.interpolation_threshold(channel, rho)
    assert 2 * alpha == pytest.approx(A, abs=6e-5)
    assert error == pytest.approx(peak, rel=5e-4)
    below, above = (aim.trained(channel, alpha * factor, rho, 0.0) for factor in (0.97, 1.03))
    assert max(below.value, above.value) < error
    assert below.training < 1e-10 < above.training
