"""Kernels against mpmath, against many heads, and as kernels must be."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import attention_heads, attention_kernel, kappa, mlp_kernel, mlp_neurons
from attlas.features.kernels import _add_biased_relu
from attlas.features.sequences import bias_matrix
from attlas.layers import random_feature_attention, random_feature_mlp

mp = pytest.importorskip("mpmath")

rng = np.random.default_rng(0)
SPHERE = tokens.sphere(14, 6, 5, 1)
OFF = rng.normal(size=(9, 4, 3)) * rng.uniform(0.3, 2, size=(9, 4, 1))


def exact(a, b, rho):
    """E[relu(a + z) relu(b + z')], one integral in high precision."""
    root = mp.sqrt(1 - mp.mpf(rho) ** 2)

    def inner(x):
        mean = b + rho * x
        return mp.npdf(x) * (a + x) * (mean * mp.ncdf(mean / root) + root * mp.npdf(mean / root))

    return float(mp.quad(inner, [-a, -a + 0.25, -a + 0.5, -a + 1, -a + 2, -a + 4, 14]))


def test_arc_cosine_to_rounding():
    rho = np.concatenate([np.linspace(-1, 1, 401), 1 - np.logspace(-15, -2, 40)])
    expected = [(mp.sqrt(1 - mp.mpf(r) ** 2) + r * (mp.pi - mp.acos(r))) / (2 * mp.pi) for r in rho]
    np.testing.assert_allclose([kappa.arc_cosine(r) for r in rho], np.array(expected, dtype=float), atol=5e-14)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.59, 0.61, 0.9, 0.99, 0.999, -0.5, -0.9])
def test_biased_relu_by_quadrature_and_by_series(rho):
    for a, b in ((0.0, 0.0), (1.0, -0.5), (-2.0, 2.5), (3.0, 3.0), (-1.5, -1.0)):
        expected = exact(a, b, rho)
        assert kappa.biased_relu(a, b, rho) == pytest.approx(expected, abs=1e-10)
        if abs(rho) < kappa.SERIES:
            series = np.empty((1, kappa.TERMS, 2))
            kappa.hermite_coefficients(np.array([[a, b]]), series)
            total = np.sum(series[0, :, 0] * series[0, :, 1] * rho ** np.arange(kappa.TERMS))
            assert total == pytest.approx(expected, abs=1e-10)


def test_the_diagonal_is_exact():
    for a in (-3.0, 0.0, 0.7, 4.0):
        expected = mp.quad(lambda x: mp.npdf(x) * (a + x) ** 2, [-a, -a + 1, -a + 3, 14])  # noqa: B023
        assert kappa.same_relu(a) == pytest.approx(float(expected), rel=1e-12)
        assert kappa.biased_relu(a, a, 1 - 1e-12) == pytest.approx(float(expected), rel=1e-6)


def test_large_correlations_take_the_quadrature():
    """Two equal keys and queries give rho = 1; near ones give rho just below: no jump between the ways."""
    near = OFF.copy()
    near[:, 0] *= 1 + 1e-9
    np.testing.assert_allclose(
        np.diag(attention_kernel(OFF, near, bias=1.3)), np.diag(attention_kernel(OFF, bias=1.3)), rtol=1e-7
    )
    assert _add_biased_relu.signatures  # the compiled loop ran


@pytest.mark.parametrize("X", [SPHERE, OFF], ids=["sphere", "off the sphere"])
@pytest.mark.parametrize("bias", [0.0, 1.0, -2.0])
@pytest.mark.parametrize("activation", ["relu", "exp"])
def test_many_heads_approach_the_kernel(X, bias, activation):
    """The mean over head draws of Phi Phi^T/M is the kernel within four standard errors, entry by entry."""
    if activation == "exp":
        X = 0.5 * X  # exponentials of normal scores have means that few heads find only where scores are small
    K = attention_kernel(X, bias=bias, activation=activation)
    draws = []
    for seed in range(60):
        heads = attention_heads(400, X.shape[2], seed, bias)
        Phi = random_feature_attention(X, heads, activation).reshape(len(X), -1)
        draws.append(Phi @ Phi.T / 400)
    z = (np.mean(draws, 0) - K) / (np.std(draws, 0, ddof=1) / np.sqrt(60))
    assert np.abs(z).max() < 5
    assert np.sqrt(np.mean(z**2)) < 2


def test_a_bias_matrix_of_ones_own():
    W0 = np.random.default_rng(3).normal(size=(3, 3))
    K = attention_kernel(OFF, bias=W0)
    draws = []
    for seed in range(60):
        Phi = random_feature_attention(OFF, attention_heads(400, 3, seed) + bias_matrix(W0, 3)).reshape(len(OFF), -1)
        draws.append(Phi @ Phi.T / 400)
    z = (np.mean(draws, 0) - K) / (np.std(draws, 0, ddof=1) / np.sqrt(60))
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(attention_kernel(OFF, bias=0.7 * np.eye(3)), attention_kernel(OFF, bias=0.7), rtol=1e-12)


def test_mlp_kernel():
    K = mlp_kernel(SPHERE)
    draws = []
    for seed in range(60):
        Phi = random_feature_mlp(SPHERE, mlp_neurons(2000, 6, 5, seed))
        draws.append(Phi @ Phi.T / 2000)
    z = (np.mean(draws, 0) - K) / (np.std(draws, 0, ddof=1) / np.sqrt(60))
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(np.diag(K), 0.5, rtol=1e-12)
    shuffled = SPHERE[:, [0, 2, 1, 3, 4, 5]]
    assert np.abs(mlp_kernel(shuffled, SPHERE) - K).max() > 0.01  # it knows the order


@pytest.mark.parametrize("options", [{}, {"bias": 1.0}, {"activation": "exp"}, {"bias": 4.0}])
def test_order_of_keys_padding_and_blocks_change_nothing(options):
    X = tokens.sphere(110, 5, 4, 2)  # more than one block
    K = attention_kernel(X, **options)
    np.testing.assert_allclose(attention_kernel(X[:, [0, 3, 1, 4, 2]], X, **options), K, rtol=1e-12, atol=1e-13)
    padded = np.concatenate([X, np.full((110, 2, 4), np.nan)], axis=1)
    np.testing.assert_allclose(attention_kernel(padded, X, **options), K, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention_kernel(SPHERE[:, :1]), "query token only"),
        (lambda: attention_kernel(SPHERE[0]), r"shape \(n, 1 \+ keys, d\)"),
        (lambda: attention_kernel(SPHERE, SPHERE[:, :, :3]), "dimension 3, the model was made for 5"),
        (lambda: attention_kernel(SPHERE, activation="softmax"), "has features only"),
        (lambda: attention_kernel(SPHERE, activation="gelu"), "must be one of relu, exp, .* got 'gelu'"),
        (lambda: attention_kernel(SPHERE, bias=np.nan), "bias must be a finite number"),
        (lambda: attention_kernel(SPHERE, bias=np.eye(3)), r"matrix of shape \(5, 5\) or \(6, 6\)"),
        (lambda: attention_kernel(np.where(np.arange(5) == 0, np.nan, SPHERE)), "NaN in part"),
        (lambda: attention_kernel(np.where(np.arange(6)[:, None] == 0, np.nan, SPHERE)), "missing query"),
        (lambda: attention_kernel(np.where(np.arange(6)[:, None] > 0, np.nan, SPHERE)), "no key left at row 0"),
        (lambda: attention_kernel(np.inf * SPHERE), "infinite"),
        (lambda: attention_kernel([["a"]]), "array of numbers"),
        (lambda: attention_kernel(np.empty((0, 3, 2))), "empty"),
        (lambda: mlp_kernel(SPHERE, SPHERE[:, :4]), "same number"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
