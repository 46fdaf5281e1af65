"""Targets by hand, and their complexity against the kernel itself."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import attention_kernel, complexity, targets

X = tokens.sphere(400, 5, 4, 0)
BETA = np.array([0.6, 0.8, 0, 0])
S = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]


def test_values_by_hand():
    query, keys = X[3, 0], X[3, 1:]
    assert targets.Query(BETA, 3)(X)[3] == pytest.approx((BETA @ query) ** 3)
    assert targets.KeyAverage(BETA, 2)(X)[3] == pytest.approx(np.mean([(BETA @ k) ** 2 for k in keys]))
    assert targets.Correlation(2)(X)[3] == pytest.approx(np.mean([(query @ k) ** 2 for k in keys]))
    assert targets.Correlation(1, S=S)(X)[3] == pytest.approx(np.mean([query @ S @ k for k in keys]))
    weighted = targets.Correlation(1, beta=BETA, key_power=2)
    assert weighted(X)[3] == pytest.approx(np.mean([(query @ k) * (BETA @ k) ** 2 for k in keys]))
    assert weighted.degrees == (1, 3)
    padded = np.concatenate([X, np.full((400, 2, 4), np.nan)], axis=1)
    np.testing.assert_allclose(weighted(padded), weighted(X))


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


def test_noise_is_relative_to_the_target():
    y = targets.noisy(targets.Correlation(2)(X), 0.5, 0)
    clean = targets.noisy(targets.Correlation(2)(X), 0.0, 0)
    assert clean.std() == pytest.approx(1)
    assert np.var(y - clean) == pytest.approx(0.5, rel=0.3)
    with pytest.raises(InputError, match="constant"):
        targets.noisy(np.ones(5), 0.1, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: targets.Query(BETA, 0), "power must be"),
        (lambda: targets.KeyAverage([[1.0]], 1), "beta must"),
        (lambda: targets.Correlation(1, key_power=1), "needs beta"),
        (lambda: targets.KeyAverage([1.0, 0.0], 1)(X), "beta: axis 0"),
        (lambda: targets.Correlation(1, S=np.eye(3))(X), "S: axis 0"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
