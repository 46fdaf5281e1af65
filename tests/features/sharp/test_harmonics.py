"""Harmonics and their moments against counting, mpmath and quadrature."""

from math import comb

import numpy as np
import pytest

from attlas.features.sharp.harmonics import half_moments, harmonics, legendre, power_moment, sphere_nodes

mp = pytest.importorskip("mpmath")


@pytest.mark.parametrize("d", [3, 4, 8, 33])
def test_harmonics_are_counted(d):
    """Homogeneous polynomials of degree a, less those of degree a - 2 times |x|^2."""
    for a in range(9):
        assert harmonics(a, d) == comb(a + d - 1, a) - (comb(a + d - 3, a - 2) if a >= 2 else 0)


def expected(f, d):
    """E[f(t)], t a coordinate of a uniform point, in high precision."""
    weight = lambda t: (1 - t * t) ** (mp.mpf(d - 3) / 2)  # noqa: E731
    return mp.quad(lambda t: f(t) * weight(t), [-1, 0, 1]) / mp.quad(weight, [-1, 0, 1])


def exact_legendre(a, t, d):
    return mp.gegenbauer(a, mp.mpf(d) / 2 - 1, t) / mp.gegenbauer(a, mp.mpf(d) / 2 - 1, 1)


@pytest.mark.parametrize("d", [3, 8, 16])
def test_moments(d):
    m = half_moments(d, 30, 5)
    for k, a in ((0, 0), (3, 1), (7, 4), (29, 2), (1, 3)):
        integral = expected(lambda t: ((1 + t) / 2) ** k * exact_legendre(a, t, d), d)  # noqa: B023
        assert m[k, a] == pytest.approx(float(integral), rel=1e-12, abs=1e-15)
    for p, a in ((0, 0), (2, 0), (3, 1), (5, 3), (4, 4), (3, 2)):
        integral = expected(lambda t: t**p * exact_legendre(a, t, d), d)  # noqa: B023
        assert power_moment(p, a, d) == pytest.approx(float(integral), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("d", [3, 8, 128])
def test_legendre_polynomials_are_orthogonal(d):
    t, weights = sphere_nodes(40, d)
    P = legendre(20, t, d)
    root = np.sqrt(harmonics(np.arange(20), d))[:, None]
    np.testing.assert_allclose((root * P * weights) @ (root * P).T, np.eye(20), atol=1e-9)
    assert legendre(6, np.array([0.3]), d)[5, 0] == pytest.approx(float(exact_legendre(5, 0.3, d)), rel=1e-12)
