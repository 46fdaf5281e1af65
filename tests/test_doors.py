"""What is drawn at each door has the law that its docstring states."""

import numpy as np
import pytest

from attlas import aim, features, recovery, tokens
from attlas.errors import InputError
from attlas.layers import with_one


def test_teacher_moments():
    """E Tr S^2 / d = 1 + rho + 1/d and E Tr S / d = sqrt(rho), within four standard errors over 200 draws."""
    d, rho = 20, 0.5
    draws = [aim.teacher(d, rho, seed) for seed in range(200)]
    for values, expected in (
        ([np.sum(S * S) / d for S in draws], 1 + rho + 1 / d),
        ([np.trace(S) / d for S in draws], np.sqrt(rho)),
    ):
        assert abs(np.mean(values) - expected) < 4 * np.std(values) / np.sqrt(len(values))
    assert np.linalg.matrix_rank(draws[0]) == 10
    assert np.linalg.eigvalsh(draws[0]).min() > -1e-12


def test_scores_of_random_heads_are_standard_normal_about_the_bias():
    d, b = 6, 1.5
    Xt = with_one(tokens.sphere(1, 2, d, 0))[0]
    scores = np.einsum("j,mjk,k->m", Xt[0], features.attention_heads(20_000, d, 1, bias=b), Xt[1])
    mean = b * (Xt[0, :d] @ Xt[1, :d])
    assert abs(scores.mean() - mean) < 4 / np.sqrt(len(scores))
    assert abs(scores.var() - 1) < 4 * np.sqrt(2 / len(scores))


def test_preactivations_of_the_mlp_are_standard_normal():
    x = np.append(tokens.sphere(1, 3, 6, 0).ravel(), 1.0)
    values = features.mlp_neurons(20_000, 3, 6, 1) @ x
    assert abs(values.var() - 1) < 4 * np.sqrt(2 / len(values))


def test_logits_of_a_planted_layer_have_the_stated_scale():
    Theta, W = recovery.planted_layer(1, 8, 0, scale=3.0)
    X = tokens.boolean(4000, 2, 8, 1)
    logits = np.einsum("nj,jk,nk->n", X[:, 0], Theta[0], X[:, 1])
    # given Theta the variance is its squared Frobenius norm, whose mean over draws is s^2
    assert abs(logits.var() / np.sum(Theta**2) - 1) < 0.1
    norms = [np.sum(recovery.planted_layer(1, 8, seed, scale=3.0)[0] ** 2) for seed in range(300)]
    assert abs(np.mean(norms) - 9) < 4 * np.std(norms) / np.sqrt(300)
    assert W.shape == (1, 8, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.teacher(10, 0.001, 0), "width of zero"),
        (lambda: aim.teacher(10, -1.0, 0), "rho must be"),
        (lambda: recovery.planted_layer(0, 3, 0), "heads must be"),
        (lambda: features.attention_heads(3, 2, 0, bias=float("nan")), "bias must be"),
    ],
)
def test_impossible_draws_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
