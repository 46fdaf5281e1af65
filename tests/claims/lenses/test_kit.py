import numpy as np

from attlas import aim, layers, tokens
from attlas.claims.lenses import kit


def test_tokens_with_their_place_express_the_teacher():
    """softmax(Z Theta Z^T), Z the tokens with their place: Theta = S/sqrt(d) and -Tr S/(2 sqrt(d)) for the place."""
    d = 8
    task = aim.sample(kit.CHANNEL, d, 1.0, 0.5, 0)
    Theta = np.zeros((d + 1, d + 1))
    Theta[:d, :d], Theta[d, d] = task.S / np.sqrt(d), -np.trace(task.S) / (2 * np.sqrt(d))
    Z = kit.placed(task.X)
    assert np.allclose(layers.softmax(Z @ Theta @ Z.transpose(0, 2, 1)), task.y)


def test_pairs_hold_each_token_with_the_other():
    X = tokens.gaussian(3, 2, 4, 0)
    found = kit.pairs(X)
    assert np.allclose(2 * found[0], X[0])
    assert np.allclose(2 * found[1], X[0, ::-1])
    assert np.allclose(2 * found[4], X[2])
