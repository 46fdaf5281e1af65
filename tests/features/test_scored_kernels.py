"""Kernels of all scoring functions, position codes and two layers: against quadrature, many heads and theory."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import (
    RandomAttentionFeatures,
    RandomAttentionRegressor,
    attention_kernel,
    targets,
    theory,
)
from attlas.features.position_codes import with_positions
from attlas.layers import random_feature_attention

mp = pytest.importorskip("mpmath")

SPHERE = tokens.sphere(8, 4, 5, 1)
OFF = SPHERE * np.random.default_rng(0).uniform(0.4, 1.6, size=(8, 4, 1))
FUNCTIONS = {
    "sigmoid": lambda s: 1 / (1 + np.exp(-s)),
    "tanh": np.tanh,
    "erf": np.vectorize(lambda s: float(mp.erf(s))),
    "relu2": lambda s: np.maximum(s, 0) ** 2,
}


def by_quadrature(X, function, bias, nodes=140):
    """The kernel by its definition: two normal scores, each integral by Gauss-Hermite quadrature."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    Xt = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    W0 = np.diag([bias] * X.shape[2] + [0.0])
    n, N = len(X), X.shape[1] - 1
    K = np.zeros((n, n))
    for p in range(n):
        for q in range(p + 1):
            for i in range(1, N + 1):
                for j in range(1, N + 1):
                    a, b = Xt[p, 0] @ W0 @ Xt[p, i], Xt[q, 0] @ W0 @ Xt[q, j]
                    t = Xt[p, i] @ Xt[q, j]
                    sigma = np.sqrt((Xt[p, 0] @ Xt[p, 0]) * (Xt[p, i] @ Xt[p, i])) / 2
                    other = np.sqrt((Xt[q, 0] @ Xt[q, 0]) * (Xt[q, j] @ Xt[q, j])) / 2
                    rho = min((Xt[p, 0] @ Xt[q, 0]) * t / (4 * sigma * other), 1.0)
                    second = b + other * (rho * z[:, None] + np.sqrt(max(1 - rho**2, 0)) * z)
                    K[p, q] += weights @ (function(a + sigma * z) * (function(second) @ weights)) * t / N**2
            K[q, p] = K[p, q]
    return K


@pytest.mark.parametrize("X", [SPHERE[:3], OFF[:3]], ids=["sphere", "off the sphere"])
@pytest.mark.parametrize(("name", "bias"), [("sigmoid", 0.0), ("sigmoid", 1.5), ("tanh", -1.0)])
def test_smooth_kernels_to_ten_digits(X, name, bias):
    K = attention_kernel(X, activation=name, bias=bias)
    np.testing.assert_allclose(K, by_quadrature(X, FUNCTIONS[name], bias), atol=1e-10)
    np.testing.assert_allclose(attention_kernel(X, activation=FUNCTIONS[name], bias=bias), K, atol=1e-12)


@pytest.mark.parametrize("X", [SPHERE, OFF], ids=["sphere", "off the sphere"])
def test_closed_forms_are_the_series(X):
    """erf and relu2 have a closed form without bias; a function that is not known by name takes the series."""
    from scipy.special import erf

    np.testing.assert_allclose(
        attention_kernel(X, activation=lambda s: erf(s)), attention_kernel(X, activation="erf"), atol=1e-12
    )
    np.testing.assert_allclose(
        attention_kernel(X, activation=FUNCTIONS["relu2"]), attention_kernel(X, activation="relu2"), atol=1e-10
    )
    np.testing.assert_allclose(
        attention_kernel(X, activation=np.exp), attention_kernel(X, activation="exp"), rtol=1e-10
    )


def test_closed_forms_against_mpmath():
    """E[erf erf'] and E[relu2 relu2'] at one correlation, one integral each in high precision."""
    rho = 0.7
    root = mp.sqrt(1 - rho**2)
    inner = lambda z: mp.erf(rho * z / mp.sqrt(1 + 2 * root**2))  # noqa: E731  # E[erf(a + s y)]
    expected = mp.quad(lambda z: mp.npdf(z) * mp.erf(z) * inner(z), [-10, -3, 0, 3, 10])
    assert 2 / np.pi * np.arcsin(2 * rho / 3) == pytest.approx(float(expected), abs=1e-12)
    one, two = np.zeros((1, 2, 2)), np.zeros((1, 2, 2))
    one[0, 0], two[0, 0] = [1, 0], [1, 0]
    one[0, 1], two[0, 1] = [1, 0], [0.4, np.sqrt(1 - 0.16)]  # u = 1, t = 1.4: rho = 0.7
    assert attention_kernel(one, two, activation="erf")[0, 0] == pytest.approx(1.4 * float(expected), abs=1e-12)
    square = lambda a: (a**2 + 1) * mp.ncdf(a) + a * mp.npdf(a)  # noqa: E731  # E[relu2(a + z)]
    expected = mp.quad(lambda z: mp.npdf(z) * z**2 * root**2 * square(rho * z / root), [0, 1, 3, 12])
    assert attention_kernel(one, two, activation="relu2")[0, 0] == pytest.approx(1.4 * float(expected), abs=1e-11)


@pytest.mark.parametrize("options", [{"activation": "sigmoid"}, {"activation": "relu2", "bias": 1.0},
                                     {"positions": 0.8}, {"positions": 2.0, "bias": 1.0, "activation": "tanh"}])  # fmt: skip
def test_many_heads_approach_the_kernel(options):
    K, draws = attention_kernel(SPHERE, **options), []
    for seed in range(40):
        Phi = RandomAttentionFeatures(300, random_state=seed, **options).fit_transform(SPHERE)
        draws.append(Phi @ Phi.T)
    z = (np.mean(draws, 0) - K) / (np.std(draws, 0, ddof=1) / np.sqrt(40))
    assert np.abs(z).max() < 5
    assert np.sqrt(np.mean(z**2)) < 2


def test_position_codes_have_their_spectrum():
    """The trace of the theory is the mean of the kernel's diagonal; codes see the order, padding changes nothing."""
    X = tokens.sphere(300, 5, 5, 0)
    diagonal = np.diag(attention_kernel(X, positions=0.8))
    assert theory(5, 4, positions=0.8).trace == pytest.approx(diagonal.mean(), abs=4 * diagonal.std() / np.sqrt(300))
    turned = X[:, [0, 2, 1, 4, 3]]
    assert np.abs(attention_kernel(turned, X, positions=0.8) - attention_kernel(X, positions=0.8)).max() > 0.01
    padded = np.concatenate([X, np.full((300, 2, 5), np.nan)], axis=1)
    np.testing.assert_allclose(
        attention_kernel(padded, X, positions=0.8), attention_kernel(X, positions=0.8), atol=1e-12
    )
    coded = with_positions(X, 0.25)
    assert coded.shape == (300, 5, 9)
    np.testing.assert_allclose(coded[:, 1:, 5:], np.broadcast_to(0.5 * np.eye(4), (300, 4, 4)))


def test_position_codes_make_the_order_learnable():
    X = tokens.sphere(500, 5, 4, 0)
    y = targets.KeyAverage(np.eye(4)[0], 1, weights=[1.0, -1.0, 1.0, -1.0])(X)
    plain, coded = (
        RandomAttentionRegressor("infinite", positions=weight).fit(X[:300], y[:300]).score(X[300:], y[300:])
        for weight in (0.0, 1.0)
    )
    assert plain < 0.05
    assert coded > 0.9
    finite = RandomAttentionRegressor(300, positions=1.0, random_state=0).fit(X[:300], y[:300])
    assert finite.score(X[300:], y[300:]) > 0.8


def test_two_layers_learn_functions_of_two_keys():
    X = tokens.sphere(1000, 7, 6, 0)
    G = np.einsum("nid,njd->nij", X[:, 1:], X[:, 1:])
    y = (G.sum((1, 2)) - 6) / 30  # the mean of <x_i, x_j> over pairs
    one, two = (
        RandomAttentionRegressor(300, depth=depth, random_state=0).fit(X[:600], y[:600]).score(X[600:], y[600:])
        for depth in (1, 2)
    )
    assert one < 0.05
    assert two > 0.5
    made = RandomAttentionFeatures(20, depth=2, random_state=0).fit(X[:20])
    padded = np.concatenate([X[:20], np.full((20, 2, 6), np.nan)], axis=1)
    np.testing.assert_allclose(made.transform(padded), made.transform(X[:20]), atol=1e-12)
    np.testing.assert_allclose(made.transform(X[:20, [0, 3, 1, 2, 6, 5, 4]]), made.transform(X[:20]), atol=1e-12)


def test_sigmoid_learns_key_averages_from_fewer_samples():
    X = tokens.sphere(700, 9, 8, 0)
    beta = np.eye(8)[0]
    errors = {}
    for name in ("relu", "sigmoid"):
        for target in (targets.KeyAverage(beta, 2), targets.Query(beta, 2)):
            y = target(X)
            model = RandomAttentionRegressor("infinite", activation=name).fit(X[:400], y[:400])
            errors[name, type(target).__name__] = 1 - model.score(X[400:], y[400:])
    assert errors["sigmoid", "KeyAverage"] < 0.5 * errors["relu", "KeyAverage"]
    assert errors["sigmoid", "Query"] > 2 * errors["relu", "Query"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomAttentionFeatures(5, positions=-1.0).fit(SPHERE), "positions must be a finite number of at least 0"),
        (lambda: RandomAttentionFeatures(5, depth=3).fit(SPHERE), "depth must be 1 or 2"),
        (lambda: RandomAttentionRegressor("infinite", depth=2).fit(SPHERE, np.ones(8)), "no kernel in closed form"),
        (lambda: RandomAttentionRegressor("infinite", activation="softmax").fit(SPHERE, np.ones(8)), "couples the keys"),
        (lambda: RandomAttentionFeatures(5, positions=1.0).fit(SPHERE[:, :3]).transform(SPHERE), "made for 2"),
        (lambda: random_feature_attention(SPHERE, np.ones((2, 6, 6)), lambda s: s.sum()), "one real number for each"),
        (lambda: random_feature_attention(SPHERE, np.ones((2, 6, 6)), "gelu"), "or a function of the scores; got 'gelu'"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
