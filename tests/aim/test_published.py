"""Where a published curve comes from: the hardmax error of the public scripts, from the score they use."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from attlas import aim
from attlas.numerics.bivariate import log_bivariate_cdf

Q, RHO, ALPHA = 1.5, 0.5, 0.3417


def information(V, joint_density):
    """G2 of hardmax, two tokens, by quadrature over (a1, a2) and the four outcomes.

    The score is the partial derivative phi(a1) Phi(..) of the bivariate distribution function over Z; `joint_density` puts
    the density phi_2(a1, a2) in its place.
    """
    x, w = np.polynomial.hermite_e.hermegauss(60)
    z = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = np.outer(w, w).ravel() / w.sum() ** 2
    a = z @ np.linalg.cholesky(np.array([[1, 1 / 3], [1 / 3, 1]]) * (Q - V) / V).T
    total = 0.0
    for s1 in (1, -1):
        for s2 in (1, -1):
            r, u, v = s1 * s2 / 3, s1 * a[:, 0], s2 * a[:, 1]
            root = np.sqrt(1 - r * r)
            Z = np.exp(np.maximum(log_bivariate_cdf(u, v, r), -600))
            if joint_density:
                first = second = np.exp(-(u * u - 2 * r * u * v + v * v) / (2 * root**2)) / (2 * np.pi * root)
            else:
                first, second = (
                    np.exp(-p * p / 2) / np.sqrt(2 * np.pi) * ndtr((q - r * p) / root) for p, q in ((u, v), (v, u))
                )
            g = [s * part / Z / np.sqrt(3 * V) for s, part in ((s1, first), (s2, second))]
            total += np.sum(weight * Z * (2 * g[0] ** 2 + 2 * g[1] ** 2 + (g[0] + g[1]) ** 2))
    return total


def fixed_point(joint_density):
    def excess(V):
        return float(aim.mmse(1 / (2 * ALPHA * information(V, joint_density)), RHO)) - V

    return brentq(excess, 0.2, 0.95, xtol=1e-7)


def test_the_true_score_gives_our_curve():
    assert information(0.5, joint_density=False) == pytest.approx(float(aim.Hardmax(2).information(0.5, Q)), rel=1e-7)
    assert fixed_point(joint_density=False) == pytest.approx(0.32904, abs=1e-5)


def test_the_joint_density_in_its_place_gives_the_published_one():
    assert fixed_point(joint_density=True) == pytest.approx(0.593, abs=5e-4)


def test_published_descent_is_beside_these_bayes_errors():
    """Quadratic network, kappa = 0.5, without noise: V to the digits given with the published descents."""
    for alpha, V in ((0.102, 0.717), (0.3025, 0.123)):
        assert aim.state_evolution(aim.Linear(1), alpha, 0.5).value == pytest.approx(V, abs=5e-4)
    # alpha is given as 0.200 and V as 0.394, which alpha = 0.1995, rounded, gives
    assert aim.state_evolution(aim.Linear(1), 0.1995, 0.5).value == pytest.approx(0.394, abs=5e-4)
