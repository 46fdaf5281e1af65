"""Layers and examples of them, and oracles."""

import numpy as np

from attlas import layers, tokens
from attlas.numerics import stream
from attlas.recovery import Layer, planted_layer
from attlas.recovery.examples import Examples


def task(heads=2, d=5, k=4, n=300, seed=0, noise=0.0, law=tokens.boolean):
    Theta, W = planted_layer(heads, d, stream(seed, "teacher"), 3.0)
    X = law(n, k, d, stream(seed, "data"))
    Y = layers.multi_head_attention(X, Theta, W)
    return X, Y + noise * Y.std() * stream(seed, "noise").standard_normal(Y.shape), Layer(Theta, W)


def oracle_of(Theta, W, noise=0.0, seed=0):
    rng = stream(seed, "noise")

    def oracle(X):
        answer = layers.multi_head_attention(X[None], Theta, W)[0, -1]
        return answer + noise * np.sqrt(np.mean(answer**2)) * rng.standard_normal(answer.shape)

    return oracle


def planted(heads, d, seed=0, d_out=None):
    return planted_layer(heads, d, stream(seed, "teacher"), 2 * np.sqrt(d), d_out=d_out)


def examples(heads=2, d=4, k=3, n=40, d_out=3, last=False, seed=0):
    Theta, W = planted_layer(heads, d, stream(seed, "teacher"), 2.0, d_out=d_out)
    X = tokens.gaussian(n, k, d, stream(seed, "data"))
    Y = layers.multi_head_attention(X, Theta, W)
    return Examples.of(X, Y[:, -1] if last else Y), Layer(Theta, W)
