import numpy as np
import pytest

from attlas.context import contexts, gaussian_prior
from attlas.errors import InputError
from attlas.numerics import stream

mp = pytest.importorskip("mpmath")


@pytest.mark.parametrize(
    ("alpha", "noise", "error"), [(2, 0.1, 0.1844288770), (1, 0.25, 0.6403882032), (0.5, 0.5, 1.2071067812)]
)
def test_isotropic(alpha, noise, error):
    assert gaussian_prior.ridge_in_context(alpha, noise).value == pytest.approx(error, abs=5e-11)


@pytest.mark.parametrize("noise", [1e-12, 1e-3, 0.7])
def test_structured_solves_its_equation_to_many_digits(noise):
    c, alpha = np.array([0.01, 0.5, 2.0, 3.0]), 1.7
    found = gaussian_prior.ridge_in_context(alpha, noise, c)
    with mp.workdps(40):
        m = mp.findroot(
            lambda m: sum(mp.mpf(x) / (1 + mp.mpf(x) * mp.mpf(alpha) / (mp.mpf(noise) + m)) for x in c) / 4 - m,
            found.variance,
        )
    assert found.converged
    assert found.variance == pytest.approx(float(m), rel=1e-11)


def test_equal_eigenvalues_are_the_isotropic_case():
    exact = gaussian_prior.ridge_in_context(2, 0.1)
    near = gaussian_prior.ridge_in_context(2, 0.1, [1 - 1e-9, 1 + 1e-9])
    assert near.value == pytest.approx(exact.value, abs=1e-9)
    assert near.information == pytest.approx(exact.information, abs=1e-8)
    assert gaussian_prior.ridge_in_context(2, 0.2, [2, 2]).value == pytest.approx(2 * exact.value)


def test_without_noise_the_missing_dimensions_are_left():
    assert gaussian_prior.ridge_in_context(0.25, 0.0).value == pytest.approx(0.75)
    assert gaussian_prior.ridge_in_context(2, 0.0).value == 0
    assert gaussian_prior.ridge_in_context(0.6, 0.0, [0, 1, 2, 0]).value == 0
    assert gaussian_prior.ridge_in_context(0.4, 0.0, [0, 1, 2, 0]).value > 0.01


def test_information_is_the_integral_of_half_the_signal():
    """d i/d alpha = (1/2) log(1 + m/noise): each example says what a Gaussian channel does."""
    step = 1e-5
    for spectrum in (None, [0.2, 1.0, 4.0]):
        slope = (
            gaussian_prior.information(2 + step, 0.1, spectrum) - gaussian_prior.information(2 - step, 0.1, spectrum)
        ) / (2 * step)
        m = gaussian_prior.ridge_in_context(2, 0.1, spectrum).variance
        assert slope == pytest.approx(0.5 * np.log1p(m / 0.1), rel=1e-7)
    assert gaussian_prior.information(0.1, 0.1) == pytest.approx(0.118, abs=5e-4)


def test_drawn_contexts_agree():
    """Structured tasks of exponent 1: d = 100, alpha = 2, noise 0.1."""
    c = 1 / np.arange(1, 101)
    c /= c.mean()
    rng = stream(0, "test")
    w = np.sqrt(c) * rng.standard_normal((120, 100))
    X, y = contexts.draw_contexts(w, 200, 0.1, rng)
    errors = contexts.task_errors(gaussian_prior.ridge_estimate(X, y, 0.1, c), w, 0.1)
    theory = gaussian_prior.ridge_in_context(2, 0.1, c).value
    assert theory == pytest.approx(0.1704, abs=5e-5)
    assert abs(errors.mean() - theory) < 4 * errors.std() / np.sqrt(len(w))
    plain = contexts.task_errors(gaussian_prior.ridge_estimate(X, y, 0.1), w, 0.1)
    assert plain.mean() > errors.mean()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((0, 0.1), "alpha"), ((1, -0.1), "noise"), ((1, 0.1, [1, -1]), "spectrum"), ((1, 0.1, [0, 0]), "spectrum")],
)
def test_bad_input(arguments, words):
    with pytest.raises(InputError, match=words):
        gaussian_prior.ridge_in_context(*arguments)


def test_a_spectrum_of_another_length():
    with pytest.raises(InputError, match="5"):
        gaussian_prior.ridge_estimate(np.ones((2, 3, 5)), np.ones((2, 3)), 0.1, [1, 2])
