"""Complexities against published numbers, and against the kernel itself."""

import numpy as np
import pytest

from attlas import tokens
from attlas.features import attention_kernel, complexity, targets

X = tokens.sphere(400, 5, 4, 0)
BETA = np.array([0.6, 0.8, 0, 0])


def test_published_and_derived_complexities():
    """B of fu2023random at d = 16; 1/A_rs as derived."""
    b = np.eye(16)[0]
    assert [complexity(targets.Query(b, p), 16).B for p in (1, 2, 4)] == pytest.approx([4, 362.04, 131072], rel=1e-4)
    assert [complexity(targets.KeyAverage(b, p), 16).B for p in (1, 2)] == pytest.approx([1, 4])
    assert pytest.approx(92681.9, rel=1e-5) == complexity(targets.Correlation(2), 16).B
    assert [complexity(targets.KeyAverage(b, p), 16).rkhs for p in (1, 2, 3, 4)] == pytest.approx(
        [3.34, 12.87, 190.45, 6738.8], rel=2e-3
    )
    assert complexity(targets.Correlation(2), 16).rkhs == pytest.approx(8172, rel=1e-3)
    assert complexity(targets.KeyAverage(b, 2), 16).risk_bound(10_000, 1000, 16) == pytest.approx(2.93, abs=0.01)


@pytest.mark.parametrize(
    "target", [targets.Query(BETA, 1), targets.KeyAverage(BETA, 1), targets.KeyAverage(BETA, 2), targets.Correlation(1)]
)
def test_the_rkhs_norm_bounds_that_of_samples(target):
    """y^T K^-1 y grows with the samples to the squared norm, which lies below the bound and not far."""
    y = target(X)
    K = attention_kernel(X)
    sampled = [float(y[:n] @ np.linalg.solve(K[:n, :n] + 1e-10 * np.eye(n), y[:n])) for n in (100, 400)]
    bound = complexity(target, 4).rkhs
    assert sampled[0] < sampled[1] <= bound
    assert sampled[1] > 0.3 * bound
