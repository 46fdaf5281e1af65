"""The spectrum against high precision, moments, simulation and published digits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import aim
from attlas.aim.spectrum import spectrum
from attlas.errors import InputError

mp = pytest.importorskip("mpmath")

# F(Delta) found independently, by graded quadrature of the cubic in x; the last digits of (0.5, 0.1) by mpmath
VALUES = [
    (0.05, 1, 0.0947203748), (0.5, 0.1, 0.0665414932), (0.5, 1, 0.3969486359), (0.5, 5, 0.7914604037),
    (1, 0.1, 0.0805456705), (1, 1, 0.4438687356), (2, 0.1, 0.0865469970), (2, 1, 0.4704964089),
]  # fmt: skip


def exact_mmse(delta, rho, digits=26):
    """F by integrating the cubic's density between its edges at high precision: nothing of our parametrisation."""
    with mp.workdps(digits):
        delta, rho = mp.mpf(delta), mp.mpf(rho)
        s = mp.sqrt(rho)

        def g_of(x):
            roots = mp.polyroots([-s, x * s - rho + 1, -(x + delta * s), delta], maxsteps=500, extraprec=200, asc=True)
            return min(roots, key=lambda z: z.imag)

        k = mp.sqrt(rho * delta)
        roots = mp.polyroots([-(k**2), 2 * k, k**2 + rho - 1, -2 * k, 1], maxsteps=500, extraprec=200, asc=True)
        real = [z.real for z in roots if abs(z.imag) < mp.mpf(10) ** (-digits // 2)]
        points = [rho / (s - v / mp.sqrt(delta)) + mp.sqrt(delta) * v + mp.sqrt(delta) / v for v in real]
        near = [
            (rho / (s - v / mp.sqrt(delta)) + mp.sqrt(delta) * v + mp.sqrt(delta) / v).real
            for v in roots if abs(v.imag) > mp.mpf(10) ** (-digits // 2)
        ]  # fmt: skip
        points = sorted(points)
        total = mp.mpf(0)
        for low, high in zip(points[::2], points[1::2], strict=True):
            cuts = [low, *sorted({c for c in near if low < c < high}), high]
            for a, b in itertools.pairwise(cuts):
                # x = a + (b - a) sin^2(t) takes the square roots at the edges away
                def integrand(t, a=a, b=b):
                    x = a + (b - a) * mp.sin(t) ** 2
                    return (-g_of(x).imag) ** 3 * (b - a) * mp.sin(2 * t)

                total += mp.quad(integrand, mp.linspace(0, mp.pi / 2, 4))
        return float(delta - mp.mpf(4) / (3 * mp.pi) * delta**2 * total)


@pytest.mark.parametrize(("rho", "delta", "expected"), VALUES)
def test_published_digits(rho, delta, expected):
    assert float(aim.mmse(delta, rho)) == pytest.approx(expected, abs=6e-11)


@pytest.mark.parametrize(
    ("delta", "rho"),
    [(0.1, 0.5), (0.3, 0.5), (1e-3, 0.9), (0.5, 1.0), (1e-2, 1.0), (3.0, 2.0), (0.02, 0.1), (1e-4, 0.3)],
)
def test_mmse_against_mpmath(delta, rho):
    assert float(aim.mmse(delta, rho)) == pytest.approx(exact_mmse(delta, rho), abs=1e-11)


@pytest.mark.parametrize(("delta", "rho"), [(1e-8, 0.3), (1e-6, 1.0), (1e-8, 2.0)])
def test_mmse_at_little_noise_against_mpmath(delta, rho):
    assert float(aim.mmse(delta, rho)) / delta == pytest.approx(exact_mmse(delta, rho, 32) / delta, abs=1e-9)


@settings(max_examples=300, deadline=None)
@given(st.floats(-12, 12), st.floats(-2.5, 2.5))
def test_mmse_lies_between_zero_and_one_and_below_the_noise(log_delta, log_rho):
    delta, rho = 10.0**log_delta, 10.0**log_rho
    F = float(aim.mmse(delta, rho))
    assert 0 <= F <= min(1, delta) * (1 + 1e-9)
    assert delta / (1 + delta) + 1e-9 >= F  # the best linear estimate is never better


@settings(max_examples=200, deadline=None)
@given(st.floats(-8, 8), st.floats(-2.5, 2.5))
def test_mass_and_moments(log_delta, log_rho):
    """Mass 1, mean sqrt(rho), second moment 1 + rho + Delta; the posterior mean has the mean of S."""
    delta, rho = 10.0**log_delta, 10.0**log_rho
    nodes = spectrum(delta, rho)
    assert nodes.weight.sum() == pytest.approx(1, abs=1e-9)
    assert (nodes.weight * nodes.x).sum() == pytest.approx(np.sqrt(rho), rel=1e-9, abs=1e-11 * np.sqrt(delta))
    assert (nodes.weight * nodes.x**2).sum() == pytest.approx(1 + rho + delta, rel=1e-9)
    assert (nodes.weight * nodes.f).sum() == pytest.approx(np.sqrt(rho), rel=1e-9)
    assert np.all(np.diff(nodes.x) > 0)  # f rises with x: the parametrisation covers the support once


def test_two_forms_of_the_error_agree():
    """1 - int (f - s)^2 and Delta - (4 pi^2/3) Delta^2 int rho^3 are different integrals."""
    delta, rho = np.meshgrid(10.0 ** np.linspace(-3, 3, 25), 10.0 ** np.linspace(-2, 1, 20))
    nodes = spectrum(delta, rho)
    first = 1 - rho * np.sum(nodes.weight * np.expm1(nodes.log_f) ** 2, -1)
    second = delta - 4 * np.pi**2 / 3 * delta**2 * np.sum(nodes.weight * nodes.density**2, -1)
    np.testing.assert_allclose(first, second, atol=1e-11 * np.maximum(1, delta).max())


def test_small_noise_limits():
    """The leading corrections of F/Delta for rho below, above and at 1."""
    d = 1e-6
    for rho in (0.1, 0.5):
        slope = (float(aim.mmse(d, rho)) / d - (2 * rho - rho**2)) / d
        assert slope == pytest.approx(-(rho**2) * (1 + rho) / (1 - rho), rel=2e-2)
    assert (float(aim.mmse(d, 2.0)) / d - 1) / d == pytest.approx(-2, rel=1e-2)
    assert (1 - float(aim.mmse(d, 1.0)) / d) / d ** (2 / 3) == pytest.approx(1.315, rel=1e-2)


def test_narrow_limit():
    """rho -> 0 at fixed t = rho Delta: F = 2 t - t^2 below t = 1, and 1 above."""
    rho = 1e-5
    for t in (0.2, 0.5, 0.8):
        assert float(aim.mmse(t / rho, rho)) == pytest.approx(2 * t - t * t, abs=2e-3)
    assert float(aim.mmse(3 / rho, rho)) == pytest.approx(1, abs=1e-3)


def test_noise_over_error_is_monotone():
    """F/Delta falls strictly: the noiseless fixed point is unique."""
    delta = 10.0 ** np.linspace(-6, 4, 200)
    for rho in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1, 1.1, 2, 5):
        assert np.all(np.diff(aim.mmse(delta, rho) / delta) < 0)


@pytest.mark.parametrize(("delta", "rho"), [(0.1, 0.5), (0.02, 0.1), (1.0, 2.0), (1e-4, 1.0), (1e4, 0.3)])
def test_stieltjes_transform(delta, rho):
    """On the support against the quadrature's own g; off it against the integral that defines it; density nowhere else."""
    nodes = spectrum(delta, rho)
    g = aim.stieltjes(nodes.x, delta, rho)
    np.testing.assert_allclose(g.real, nodes.hilbert, atol=1e-9 * np.abs(g).max())
    np.testing.assert_allclose(-g.imag / np.pi, nodes.density, atol=1e-9 * np.abs(g).max())
    ends = aim.edges(delta, rho)
    outside = np.array([ends[0] - 1, ends[-1] + 1, ends[-1] * 10 + 10])
    if len(ends) == 4:
        outside = np.append(outside, ends[1:3].mean())
    expected = [(nodes.weight / (x - nodes.x)).sum() for x in outside]
    np.testing.assert_allclose(aim.stieltjes(outside, delta, rho), expected, rtol=1e-9)
    assert np.all(aim.density(outside, delta, rho) == 0)


def test_edges_hold_the_eigenvalues_of_a_sample():
    d, rho, delta = 400, 0.3, 0.02
    R = aim.teacher(d, rho, 0) + np.sqrt(delta) * goe(d, 1)
    ends = aim.edges(delta, rho)
    assert len(ends) == 4
    values = np.linalg.eigvalsh(R)
    low = values[values < ends[1:3].mean()]
    assert len(low) == round(0.7 * d)
    assert abs(low.min() - ends[0]) + abs(low.max() - ends[1]) < 0.05
    # Tracy-Widom at this size: 0.09 below the edge, 0.09 wide
    assert abs(values.max() - (ends[3] - 0.09)) < 4 * 0.09


def goe(d, seed):
    G = np.random.default_rng(seed).standard_normal((d, d))
    return (G + G.T) / np.sqrt(2 * d)


@pytest.mark.parametrize(("delta", "rho"), [(0, 1), (-1, 1), (1, 0), (np.nan, 1), (1, np.inf)])
def test_bad(delta, rho):
    with pytest.raises(InputError, match="must be finite and greater than 0"):
        aim.mmse(delta, rho)
