import numpy as np
import pytest

from attlas.context import contexts, softmax_layer
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import stream


def drawn(n, d, length, name):
    rng = stream(0, name)
    w = rng.standard_normal((n, d))
    X, y = contexts.draw_contexts(w, length, 0.1, rng)
    query = rng.standard_normal((n, d)) / np.sqrt(d)
    return X, y, query, np.sum(query * w, axis=1) + np.sqrt(0.1) * rng.standard_normal(n)


def test_gradient_by_differences():
    X, y, query, target = drawn(7, 3, 5, "gradient")
    rng = stream(1, "weights")
    K, v = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4))
    Z, queries = softmax_layer._tokens(X, y, query)
    _, dK, dv = softmax_layer.loss_and_gradient(K, v, Z, queries, target)
    for array, gradient in ((K, dK), (v, dv)):
        for place in np.ndindex(array.shape):
            was, values = array[place], []
            for step in (1e-5, -1e-5):
                array[place] = was + step
                values.append(softmax_layer.loss_and_gradient(K, v, Z, queries, target)[0])
            array[place] = was
            assert gradient[place] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-8)


def test_forward_by_hand():
    X, y, query, _ = drawn(2, 3, 4, "forward")
    rng = stream(2, "weights")
    layer = softmax_layer.SoftmaxLayer(rng.standard_normal((1, 3, 4)), rng.standard_normal((1, 4)))
    for n in range(2):
        tokens = [np.append(np.sqrt(3) * X[n, i], y[n, i]) for i in range(4)]
        weight = np.exp([np.sqrt(3) * query[n] @ layer.K[0] @ z for z in tokens])
        by_hand = sum(w * (layer.v[0] @ z) for w, z in zip(weight, tokens, strict=True)) / weight.sum()
        assert layer.predict(X, y, query)[n] == pytest.approx(by_hand)


def test_two_heads_of_opposite_sign_are_a_linear_layer():
    """y_hat tends to x'h as the scores tend to 0, with values to match."""
    X, y, query, _ = drawn(20, 3, 6, "two heads")
    small = 1e-4
    K = small * np.stack([np.eye(3, 4), -np.eye(3, 4)])
    v = np.zeros((2, 4))
    v[:, -1] = np.array([1, -1]) / (2 * small)
    h = 3 / 6 * np.einsum("nld,nl->nd", X - X.mean(axis=1, keepdims=True), y)
    found = softmax_layer.SoftmaxLayer(K, v).predict(X, y, query)
    assert found == pytest.approx(np.sum(query * h, axis=1), abs=1e-6)


def test_fit():
    data = drawn(1500, 4, 8, "fit")
    one = softmax_layer.fit_softmax(*data, heads=1, tol=1e-4)
    two = softmax_layer.fit_softmax(*data, heads=2, tol=1e-4, max_steps=2000)
    assert one.converged
    assert two.training < one.training < 1.0
    with pytest.raises(ConvergenceError):
        softmax_layer.fit_softmax(*data, heads=2, max_steps=3)
    with pytest.raises(InputError, match="heads"):
        softmax_layer.fit_softmax(*data, heads=0)
