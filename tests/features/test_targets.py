"""Targets by hand."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import targets

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


def test_targets_have_names():
    found = {
        name: targets.named(name, 4, 0) for name in ("query 2", "keys 1", "correlation 2", "rotated 1", "weighted 2")
    }
    degrees = {"query 2": (2, 0), "keys 1": (0, 1), "correlation 2": (2, 2), "rotated 1": (1, 1), "weighted 2": (2, 3)}
    assert {name: target.degrees for name, target in found.items()} == degrees
    np.testing.assert_allclose(found["keys 1"].beta, found["query 2"].beta)  # of one seed
    assert np.linalg.norm(found["keys 1"].beta) == pytest.approx(1)
    assert not np.allclose(found["rotated 1"](X), targets.named("correlation 1", 4, 0)(X))


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
        (lambda: targets.named("kyes 2", 4, 0), "no target family 'kyes'"),
        (lambda: targets.named("keys", 4, 0), "family and power"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
