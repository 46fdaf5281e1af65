"""A whole block, against loops over tokens, heads and neurons."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.layers import transformer_block
from attlas.numerics import stream


def weights(d=3, m=2, h=4, d_out=3, seed=0):
    rng = stream(seed, "block")
    shapes = [(m, d, d), (m, d, d), (h, d), (h,), (d_out, h), (d_out,)]
    return [rng.standard_normal(shape) for shape in shapes]


def by_loops(x, parts, attention_residual, network_residual):
    Theta, W, A, a0, B, b0 = parts
    outputs = []
    for query in x:
        a = query * attention_residual
        for theta, value in zip(Theta, W, strict=True):
            scores = [np.exp(query @ theta @ key) for key in x]
            a = a + sum(score / sum(scores) * (key @ value) for score, key in zip(scores, x, strict=True))
        hidden = [max(0.0, float(row @ a + shift)) for row, shift in zip(A, a0, strict=True)]
        outputs.append(B @ hidden + b0 + network_residual * (a if network_residual else 0))
    return np.array(outputs)


@pytest.mark.parametrize(("d_out", "r_a", "r_g"), [(3, True, True), (3, False, False), (2, True, False)])
def test_it_is_what_loops_make_of_it(d_out, r_a, r_g):
    parts = weights(d_out=d_out)
    X = stream(1, "tokens").standard_normal((2, 5, 3))
    found = transformer_block(X, *parts, attention_residual=r_a, network_residual=r_g)
    assert np.allclose(found, [by_loops(x, parts, r_a, r_g) for x in X], rtol=1e-12)


def test_a_residual_around_the_network_needs_as_many_outputs():
    with pytest.raises(InputError, match="as many outputs as entries of a token, 3; got 2"):
        transformer_block(np.ones((1, 2, 3)), *weights(d_out=2), network_residual=True)
