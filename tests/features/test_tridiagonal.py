"""One reduction for every penalty, against inverses."""

import numpy as np
import pytest

from attlas.features.tridiagonal import Tridiagonal

rng = np.random.default_rng(0)
PENALTIES = np.logspace(-8, 3, 12)


@pytest.mark.parametrize("n", [1, 2, 3, 60, 300])
def test_solutions_and_forms_are_those_of_the_inverse(n):
    A = np.cov(rng.normal(size=(n, 3 * n))).reshape(n, n)
    Y, X = rng.normal(size=(n, 3)), rng.normal(size=(n, 7))
    reduced = Tridiagonal.of(A, PENALTIES)
    np.testing.assert_allclose(reduced.Qt @ reduced.Qt.T, np.eye(n), atol=1e-12)
    for penalty, found, form in zip(PENALTIES, reduced.solve(Y), reduced.forms(reduced.Qt @ X), strict=True):
        inverse = np.linalg.inv(A + penalty * np.eye(n))
        np.testing.assert_allclose(found, inverse @ Y, rtol=1e-8, atol=1e-10 * np.abs(found).max())
        np.testing.assert_allclose(form, np.einsum("ki,kl,li->i", X, inverse, X), rtol=1e-9)


def test_a_matrix_that_is_not_positive_definite_has_no_solution():
    """One eigenvalue is -1: penalties up to it give NaN, larger ones do not."""
    Q, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    A = (Q * np.r_[-1.0, np.linspace(1, 2, 29)]) @ Q.T
    reduced = Tridiagonal.of(A, np.array([0.5, 0.99, 1.01, 3.0]))
    known = np.isfinite(reduced.forms(reduced.Qt)).all(1)
    np.testing.assert_array_equal(known, [False, False, True, True])
    np.testing.assert_array_equal(np.isfinite(reduced.solve(np.ones((30, 1)))).all((1, 2)), known)
