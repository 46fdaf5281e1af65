"""The test that a residual is noise: its parts against brute force, its error rate, and what it sees."""

from dataclasses import replace

import numpy as np
import pytest

from attlas import tokens
from attlas.numerics import stream
from attlas.recovery import Layer, learn, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.residual_test import residual_test
from attlas.recovery.residuals import Residuals
from attlas.recovery.sequence_kernels import forms, kernels
from attlas.recovery.tangent import directions, tangent
from attlas.recovery.variable_projection import variable_projection


def noisy(piece, seed, n=400, noise=0.1):
    """A layer, noise and a piece that is no part of such a layer, with the layer that variable projection finds."""
    truth = Layer(*planted_layer(1, 4, stream(seed, "teacher")))
    X = tokens.gaussian(n, 3, 4, stream(seed, "data"))
    F = truth(X)
    Y = F + F.std() * (noise * stream(seed, "noise").standard_normal(F.shape) + piece(X, F / F.std()))
    data = Examples.of(X, Y)
    return data, variable_projection(data, truth.Theta, max_steps=30).layer


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_tangent_is_the_derivative(bias, masked):
    X = tokens.gaussian(5, 3, 4, stream(0, "data"))
    truth = Layer(*planted_layer(2, 4, stream(0, "teacher"), 2.0, d_out=3), causal=masked)
    if bias:
        u, b = stream(0, "bias").standard_normal((2, 8))
        truth = replace(truth, key_bias=u.reshape(2, 4), output_bias=b[:3])
    padding = np.zeros((5, 3), bool)
    padding[2, 2] = masked
    data = Examples.of(X, truth(X), bias=bias, causal=masked, padding=padding if masked else None)
    J = tangent(data, truth)
    change = 1e-6 * stream(0, "change").standard_normal(J.shape[2])
    stack, W, b = np.split(change, [2 * (4 + bias) * 4, 2 * (4 + bias) * 4 + truth.W.size])
    stack = stack.reshape(2, 4 + bias, 4)
    ends = []
    for sign in (1, -1):
        parts = {"Theta": truth.Theta + sign * stack[:, :4], "W": truth.W + sign * W.reshape(truth.W.shape)}
        if bias:
            parts |= {"key_bias": truth.key_bias + sign * stack[:, 4], "output_bias": truth.output_bias + sign * b}
        ends.append(data.predict(replace(truth, **parts)))
    assert J.shape[:2] == (5, 9)
    np.testing.assert_allclose((J @ change).ravel(), ((ends[0] - ends[1]) / 2).ravel(), rtol=1e-6, atol=1e-12)


def test_directions_keep_the_rank():
    Q, K = stream(0, "teacher").standard_normal((2, 2, 5, 2))
    layer = Layer(Q @ K.transpose(0, 2, 1), stream(0, "values").standard_normal((2, 5, 3)))
    moves = directions(layer, False, 2)
    assert moves.shape == (2 * (25 + 15), 2 * (2 * (10 - 2) + 15))
    step = (moves @ stream(0, "change").standard_normal(moves.shape[1]))[:50].reshape(2, 5, 5)
    third = [np.linalg.svd(layer.Theta + h * step, compute_uv=False)[:, 2].max() for h in (1e-3, 1e-4)]
    assert third[1] < 0.02 * third[0]  # of second order in the step
    assert directions(layer, False, 5) is None


def test_the_effect_of_fitting_is_that_of_least_squares():
    data, layer = noisy(lambda X, F: 0.3 * F**2, 0, n=60)
    found = Residuals(data, layer)
    J = tangent(data, layer).reshape(data.Y.size, -1)
    raw = (data.Y - layer(data.X)).ravel()
    left = raw - J @ np.linalg.lstsq(J, raw, rcond=1e-9)[0]
    np.testing.assert_allclose(found.E.ravel() * found.size, left, atol=1e-6 * np.abs(left).max())
    hat = J @ np.linalg.pinv(J, rcond=1e-9)
    first = slice(0, 12)  # the outputs of the first sequence
    larger = np.linalg.solve(np.eye(12) - hat[first, first], left[first])
    np.testing.assert_allclose(
        found.flipped[0].ravel() * found.size, larger, rtol=1e-4, atol=1e-6 * np.abs(larger).max()
    )


def test_anova_kernels_are_sums_over_pairs_and_triples():
    from itertools import combinations

    X = stream(0, "data").standard_normal((5, 2, 2))
    z = X.reshape(5, 4)
    z = (z - z.mean(0)) / z.std(0) / 2
    for order, (_, kernel) in zip((2, 3), kernels(X), strict=False):
        brute = sum(np.outer(p := z[:, list(c)].prod(1), p) for c in combinations(range(4), order))
        np.fill_diagonal(brute, 0)
        np.testing.assert_allclose(kernel, brute * [2, 6][order - 2], atol=1e-12)


def test_noise_passes():
    """Of 20 nulls at 1 % more than two refusals have probability 0.001."""
    found = [residual_test(*noisy(lambda X, F: 0.0, seed), seed=seed, sensitivity=False).p_value for seed in range(20)]
    assert sum(p <= 0.01 for p in found) <= 2


@pytest.mark.parametrize(
    "piece",
    [
        lambda X, F: 0.05,
        lambda X, F: 0.1 * np.maximum(F, 0),
        lambda X, F: 0.1 * X.max(1, keepdims=True),
        lambda X, F: 0.1 * np.arange(3)[:, None] / 2,
        lambda X, F: 0.1 * (X[:, :1, :1] * X[:, 1:2, 1:2] * X[:, 2:, 2:3]),
    ],
    ids=["constant", "ReLU", "largest", "position", "triple"],
)
def test_a_missing_piece_is_refused(piece):
    assert residual_test(*noisy(piece, 0)).p_value <= 0.01


@pytest.mark.parametrize("piece", [0.0, 0.3])
def test_masks_biases_and_low_rank_are_known_to_the_test(piece):
    """A causal layer of rank two with biases, on sequences of different length, and noise; then with a piece missing."""
    rng, X = stream(3, "teacher"), tokens.gaussian(500, 4, 6, stream(3, "data"))
    Q, K = rng.standard_normal((2, 2, 6, 2)) / 2
    W, b = rng.standard_normal((2, 6, 3)), rng.standard_normal(3)
    truth = Layer(Q @ K.transpose(0, 2, 1), W, None, b, causal=True)
    truth = replace(truth, key_bias=np.einsum("mr,mdr->md", rng.standard_normal((2, 2)) / 2, K))
    padding = np.arange(4) >= stream(3, "lengths").integers(2, 5, 500)[:, None]
    F = truth(X, padding=padding)
    Y = F + 0.1 * F.std() * stream(3, "noise").standard_normal(F.shape) + piece * np.tanh(X[:, :1, :3])
    found = learn(X, Y, 2, bias=True, causal=True, padding=padding, rank=2, max_starts=6)
    assert found.certificate.met == (piece == 0), found.certificate.reason
    assert (found.certificate.p_value <= 0.01) == (piece > 0)


def test_a_piece_of_twice_the_size_that_is_seen_is_refused():
    data, layer = noisy(lambda X, F: 0.0, 1)
    seen = residual_test(data, layer).seen
    assert 0 < seen["a constant"] < seen["another head"] < 0.1
    assert residual_test(*noisy(lambda X, F: 2 * seen["a constant"] * np.sqrt(1.01), 1)).p_value <= 0.01


def test_all_families_that_would_be_refused_are_suspects():
    assert residual_test(*noisy(lambda X, F: 0.0, 0), sensitivity=False).suspects == ()
    found = residual_test(*noisy(lambda X, F: 0.1, 0), sensitivity=False)
    assert found.suspects[0] == found.family
    assert "a constant" in found.suspects
    assert "a constant" not in residual_test(*noisy(lambda X, F: 0.1 * X, 0), sensitivity=False).suspects


def test_attention_to_normalised_tokens_is_seen():
    """Heads as they were fitted, on tokens of length one."""
    from attlas.layers import softmax

    truth = Layer(*planted_layer(1, 4, stream(0, "teacher")))

    def other(X, _):
        x = 2 * X / np.linalg.norm(X, axis=2, keepdims=True)
        g = (softmax((x @ truth.Theta[0]) @ x.transpose(0, 2, 1)) @ X) @ truth.W[0] - truth(X)
        return 0.08 * g / g.std()

    found = residual_test(*noisy(other, 0), sensitivity=False)
    assert found.p_value <= 0.01
    assert found.family == "attention without softmax"


def test_any_function_of_sequences_that_repeat_is_seen():
    X = np.tile(tokens.gaussian(100, 3, 4, 0), (4, 1, 1))
    truth = Layer(*planted_layer(1, 4, 0))
    wild = np.tile(stream(0, "hash").standard_normal((100, 3, 4)), (4, 1, 1))
    Y = truth(X) + 0.1 * stream(0, "noise").standard_normal(wild.shape) + 0.1 * wild
    E = Y - truth(X)
    signs = np.ones((200, 400), dtype=np.float32)
    signs[1:] = 2 * stream(0, "signs").integers(0, 2, (199, 400)) - 1
    of_repeats = next(S for name, S in forms(X, E, signs) if name == "sequences that repeat")
    assert of_repeats[0] > of_repeats[1:].max()
    assert residual_test(Examples.of(X, Y), truth).p_value <= 0.01
