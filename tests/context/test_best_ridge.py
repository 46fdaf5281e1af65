"""The best ridge against checked numbers and a fine grid."""

from math import inf

import numpy as np
import pytest

from attlas import context
from attlas.errors import InputError


@pytest.mark.parametrize(
    ("point", "icl", "idg"),
    [
        ((2, 0.5, 0.5), (2.69194, 0.977174), (0.92397, 0.611881)),
        ((2, 2, 1), (1.17829, 0.847891), (0.95513, 0.712254)),
        ((2, 2, 2), (0.60911, 0.740321), (0.55549, 0.590875)),
        ((10, 0.5, 1), (0.44018, 0.776589), (0.21346, 0.261815)),
        ((10, 2, 4), (0.03606, 0.316327), (0.07465, 0.246878)),
        ((2, 0.5, inf), (0.06030, 0.802219), (0.0, 0.293140)),
    ],
)
def test_checked_numbers(point, icl, idg):
    for error, (ridge, value) in (("icl", icl), ("idg", idg)):
        found = context.best_ridge(*point, 0.1, error=error)
        assert found.converged
        assert found.ridge == pytest.approx(ridge, abs=6e-6)
        assert getattr(found, error) == pytest.approx(value, abs=6e-7)
        there = context.theory(*point, found.ridge, 0.1)
        assert (found.icl, found.idg) == (there.icl, there.idg)


def test_no_ridge_of_a_grid_is_better():
    c, t = np.geomspace(3, 0.1, 6), np.ones(6)
    found = context.best_ridge(3, 0.8, 1.2, 0.2, test_alpha=10, spectrum=c, test_spectrum=t)
    grid = [
        context.theory(3, 0.8, 1.2, ridge, 0.2, test_alpha=10, spectrum=c, test_spectrum=t).icl
        for ridge in np.geomspace(1e-6, 1e4, 300)
    ]
    assert min(grid) == pytest.approx(found.icl, rel=1e-3)
    assert found.icl <= min(grid)


def test_at_the_best_ridge_more_data_and_longer_contexts_help():
    for alpha in (2, 10):
        for kappa in (0.5, 2):
            assert np.all(np.diff([context.best_ridge(alpha, kappa, tau, 0.1).icl for tau in (0.1, 0.5, 1, 2, 4)]) < 0)
    for kappa in (0.2, 1, inf):
        values = [context.best_ridge(alpha, kappa, 0.5, 0.1).icl for alpha in (0.2, 1, 10, 100, 1000)]
        assert np.all(np.diff(values) < 0)
    for error, sign in (("icl", -1), ("idg", 1)):
        values = [getattr(context.best_ridge(2, kappa, 1, 0.1, error=error), error) for kappa in (0.2, 0.5, 1, 2, 8)]
        assert np.all(sign * np.diff(values) > 0)


def test_bad_input():
    with pytest.raises(InputError, match='error must be "icl" \\(new tasks\\) or "idg"'):
        context.best_ridge(2, 1, 1, error="test")
    with pytest.raises(InputError, match="alpha must be"):
        context.best_ridge(0, 1, 1)
