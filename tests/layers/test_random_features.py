"""Each layer against loops that are its definition, written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import features, layers, recovery, tokens
from attlas.aim import teacher
from attlas.errors import InputError


def naive_attention(X, heads, activation):
    n, keys, d = X.shape[0], X.shape[1] - 1, X.shape[2]
    out = np.zeros((n, len(heads), d + 1))
    for s in range(n):
        xt = [np.append(x, 1.0) for x in X[s]]
        for m, W in enumerate(heads):
            scores = [xt[0] @ W @ xt[i + 1] for i in range(keys)]
            if activation == "relu":
                weights = [max(v, 0.0) / keys for v in scores]
            elif activation == "exp":
                weights = [math.exp(v) / keys for v in scores]
            else:
                weights = [math.exp(v) / sum(math.exp(u) for u in scores) for v in scores]
            out[s, m] = sum(w * xt[i + 1] for i, w in enumerate(weights))
    return out


def naive_softmax(row, beta=1.0):
    weights = [math.exp(beta * (v - max(row))) for v in row]
    return np.array(weights) / sum(weights)


def naive_indices(X, S):
    n, T, d = X.shape
    return np.array(
        [[[(X[s, a] @ S @ X[s, b] - (a == b) * np.trace(S)) / math.sqrt(d) for b in range(T)] for a in range(T)]
         for s in range(n)]
    )  # fmt: skip


@pytest.mark.parametrize("activation", ["relu", "exp", "softmax"])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_random_feature_attention(activation, bias):
    X, heads = tokens.sphere(6, 4, 3, 0), features.attention_heads(5, 3, 1, bias=bias)
    found = layers.random_feature_attention(X, heads, activation)
    np.testing.assert_allclose(found, naive_attention(X, heads, activation), rtol=1e-12, atol=1e-14)


def test_random_feature_attention_keeps_single_precision():
    X, heads = tokens.sphere(6, 4, 3, 0), features.attention_heads(5, 3, 1)
    found = layers.random_feature_attention(X.astype(np.float32), heads)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, layers.random_feature_attention(X, heads), atol=1e-5)


def test_random_feature_mlp():
    X, w = tokens.sphere(6, 4, 3, 0), features.mlp_neurons(7, 4, 3, 1)
    expected = [[max(float(np.append(x.ravel(), 1.0) @ v), 0.0) for v in w] for x in X]
    np.testing.assert_allclose(layers.random_feature_mlp(X, w), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("d_out", [None, 1, 5])
def test_multi_head_attention(d_out):
    X = tokens.boolean(5, 4, 3, 0)
    Theta, W = recovery.planted_layer(2, 3, 1, d_out=d_out)
    expected = np.zeros((5, 4, d_out or 3))
    for s in range(5):
        for theta, value in zip(Theta, W, strict=True):
            for a in range(4):
                p = naive_softmax([X[s, a] @ theta @ X[s, b] for b in range(4)])
                expected[s, a] += sum(p[b] * X[s, b] for b in range(4)) @ value
    np.testing.assert_allclose(layers.multi_head_attention(X, Theta, W), expected, rtol=1e-12, atol=1e-14)


def test_attention_indices():
    X, S = tokens.gaussian(6, 3, 8, 0), teacher(8, 0.5, 1)
    h = layers.attention_indices(X, S)
    np.testing.assert_allclose(h, naive_indices(X, S), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(h, h.transpose(0, 2, 1))


def test_deep_attention_of_two_layers():
    """x^(2) = (cI + softmax(beta h1)) x; its indices, centred by Tr S2 B B^T, give the output."""
    X, S = tokens.gaussian(4, 3, 6, 0), [teacher(6, 0.5, seed) for seed in (1, 2)]
    beta, c = 0.7, 0.4
    expected = []
    for x, h in zip(X, naive_indices(X, S[0]), strict=True):
        B = c * np.eye(3) + np.array([naive_softmax(row, beta) for row in h])
        moved = B @ x
        H = (moved @ S[1] @ moved.T - np.trace(S[1]) * B @ B.T) / math.sqrt(6)
        expected.append([naive_softmax(row, beta) for row in H])
    np.testing.assert_allclose(layers.deep_attention(X, S, beta, c), expected, rtol=1e-11, atol=1e-13)


def test_deep_attention_of_one_layer_is_softmax_of_indices():
    X, S = tokens.gaussian(4, 3, 6, 0), teacher(6, 0.5, 1)
    np.testing.assert_allclose(
        layers.deep_attention(X, [S], 2.0), layers.softmax(layers.attention_indices(X, S), 2.0), rtol=1e-13
    )


def test_softmax_and_hardmax():
    h = np.array([[1000.0, 0.0, -1000.0], [2.0, 2.0, 1.0]])
    p = layers.softmax(h, 3.0)
    np.testing.assert_allclose(p.sum(-1), 1)
    np.testing.assert_allclose(p[1], naive_softmax(h[1], 3.0))
    np.testing.assert_array_equal(layers.hardmax(h), [[1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("name", ["attention", "mlp", "multi", "indices", "deep"])
def test_blocks_change_nothing(monkeypatch, name):
    """The block size bounds memory and must not be seen in the result beyond rounding."""
    X = tokens.sphere(11, 4, 5, 0)
    S = [teacher(5, 1.0, 1), teacher(5, 1.0, 2)]
    call = {
        "attention": lambda: layers.random_feature_attention(X, features.attention_heads(7, 5, 1)),
        "mlp": lambda: layers.random_feature_mlp(X, features.mlp_neurons(7, 4, 5, 1)),
        "multi": lambda: layers.multi_head_attention(X, *recovery.planted_layer(2, 5, 1)),
        "indices": lambda: layers.attention_indices(X, S[0]),
        "deep": lambda: layers.deep_attention(X, S),
    }[name]
    whole = call()
    monkeypatch.setattr(layers, "BLOCK", 1)
    np.testing.assert_allclose(call(), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [2_000, 8_000])
def test_scratch_memory_does_not_grow_with_n(n):
    """Beyond input and output at most the stated 64 MB of scratch: an n x d x d tensor would take 0.7 to 2.6 GB."""
    import tracemalloc

    X, S = tokens.gaussian(n, 2, 200, 0), teacher(200, 0.5, 1)
    tracemalloc.start()
    h = layers.attention_indices(X, S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * h.nbytes + 8 * layers.BLOCK


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5), st.integers(2, 7), st.integers(1, 6), st.sampled_from(["relu", "exp", "softmax"]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_attention_does_not_see_the_order_of_keys(n, keys, d, activation, seed):
    rng = np.random.default_rng(seed)
    X = tokens.sphere(n, 1 + keys, d, rng)
    heads = features.attention_heads(3, d, rng, bias=rng.uniform(0, 2))
    order = np.concatenate([[0], 1 + rng.permutation(keys)])
    before = layers.random_feature_attention(X, heads, activation)
    after = layers.random_feature_attention(X[:, order], heads, activation)
    np.testing.assert_allclose(after, before, rtol=1e-10, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(2, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_other_layers_follow_the_order_of_tokens(n, T, d, seed):
    """Multi-head attention and indices are equivariant: permuting tokens permutes the output."""
    rng = np.random.default_rng(seed)
    X, order = tokens.gaussian(n, T, d, rng), rng.permutation(T)
    S, (Theta, W) = teacher(d, 1.0, rng), recovery.planted_layer(2, d, rng)
    np.testing.assert_allclose(
        layers.multi_head_attention(X[:, order], Theta, W),
        layers.multi_head_attention(X, Theta, W)[:, order],
        atol=1e-10,
    )
    np.testing.assert_allclose(
        layers.attention_indices(X[:, order], S), layers.attention_indices(X, S)[:, order][:, :, order], atol=1e-10
    )


GOOD = np.ones((2, 3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.random_feature_attention(GOOD[0], np.ones((1, 5, 5))), r"3 axes \(n, 1 \+ keys, d\)"),
        (lambda: layers.random_feature_attention(GOOD[:, :1], np.ones((1, 5, 5))), "at least one key"),
        (lambda: layers.random_feature_attention(GOOD, np.ones((1, 4, 4))), r"axis 1 \(d \+ 1\) must be 5; got 4"),
        (lambda: layers.random_feature_attention(GOOD * np.nan, np.ones((1, 5, 5))), "not finite"),
        (lambda: layers.random_feature_attention(GOOD, np.ones((1, 5, 5)), "gelu"), "one of relu, exp, softmax"),
        (lambda: layers.random_feature_attention(GOOD, 1e4 * np.ones((1, 5, 5)), "exp"), "exp overflows"),
        (lambda: layers.random_feature_mlp(GOOD, np.ones((2, 12))), r"must be 13; got 12"),
        (lambda: layers.multi_head_attention(GOOD, np.ones((1, 3, 3)), np.ones((1, 4, 4))), "must be 4; got 3"),
        (lambda: layers.multi_head_attention(GOOD, np.ones((2, 4, 4)), np.ones((1, 4, 4))), "must be 2; got 1"),
        (lambda: layers.attention_indices(GOOD, np.triu(np.ones((4, 4)))), "must be symmetric"),
        (lambda: layers.attention_indices(GOOD, np.eye(3)), "must be 4; got 3"),
        (lambda: layers.deep_attention(GOOD, []), "S must have 3 axes"),
        (lambda: layers.deep_attention(GOOD, None), "S must be real numbers"),
        (lambda: layers.deep_attention(GOOD, [[1], [1, 2]]), "rows of unequal length"),
        (lambda: layers.hardmax([np.nan, 1.0]), "without NaN"),
        (lambda: layers.softmax([[np.nan, 1.0]]), "without NaN"),
        (lambda: layers.random_feature_attention(GOOD, np.ones((1, 5, 5)), ["relu"]), "one of relu"),
        (lambda: layers.random_feature_attention(GOOD.astype("f4"), 1e60 * np.ones((1, 5, 5))), "too large for the"),
        (lambda: layers.softmax(GOOD, 0.0), "beta must be"),
        (lambda: layers.attention_indices(np.array([["a"]]), np.eye(1)), "real numbers"),
        (lambda: layers.attention_indices(np.ones((0, 2, 3)), np.eye(3)), "is empty"),
        (lambda: teacher(10, 0.001, 0), "width of zero"),
        (lambda: teacher(10, -1.0, 0), "rho must be"),
        (lambda: recovery.planted_layer(0, 3, 0), "heads must be"),
        (lambda: features.attention_heads(3, 2, 0, bias=float("nan")), "bias must be"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_matrix_symmetric_to_its_own_precision_is_symmetric():
    S = teacher(40, 0.5, 0).astype(np.float32)
    S[0, 1] *= 1 + 1e-6
    layers.attention_indices(tokens.gaussian(2, 2, 40, 0), S)
