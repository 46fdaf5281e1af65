"""The definitions of the layers as loops."""

import math

import numpy as np


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
