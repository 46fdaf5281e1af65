"""One head by asking, in closed form.

f(X) = sum_i softmax_i(x_N^T Theta x_i) x_i W. A single token betrays W: f(e_j) = W_j. Two tokens [q + t v; q] give f = q W +
sigma(t q^T Theta v) t v W, so that the share of v W in the answer is a logistic function of one number of Theta.

References
----------
bhattamishra2026provably for the problem; the choice of directions and of their size is ours.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery.layer import Layer
from attlas.recovery.oracle import CountingOracle, Task

Array = NDArray[np.float64]

_SATURATED = 12.0  # a logit beyond this is measured again with a shorter step


def one_head(
    ask: CountingOracle, d: int, rank: int | None, step: float, noise: float, seed: int, bias: bool = False
) -> Layer:
    """Return a layer of one head from d^2 + d queries, or 2 rank d + d if its rank is known; more where logits saturate.

    Parameters
    ----------
    ask : CountingOracle
    d : int
    rank : int or None
        Of Theta.
    step : float
        Length t of the steps [q + t v; q].
    noise : float
        Of the answers, relative: logits are kept where it does not drown them.
    seed : int
        Of the sketch that a known rank allows.
    bias : bool
        Whether there is a key bias u: the logits of q = 0 are then asked, too, which are u v.
    """
    largest = min(_SATURATED, max(float(np.log(0.05 / noise)), 1.0)) if noise > 0 else _SATURATED

    def logits(queries: Array, directions: Array) -> Array:
        asked = (_logit(q, v, W, step, largest) for q in queries for v in directions)
        return np.array(ask.run(*asked)).reshape(len(queries), -1)

    W = np.array(ask.many([row[None] for row in np.eye(d)]))
    if np.linalg.norm(W) == 0:
        raise InputError("the oracle's output is zero for every single token: W = 0, and Theta cannot be seen")
    directions = _equal_overlap(W)
    tokens = np.concatenate([np.eye(d), np.zeros((1, d))]) if bias else np.eye(d)
    if rank is None:
        return _layer(logits(tokens, directions) @ directions, W, bias)
    # M = (M V)(A M V)^+ (A M) for the logits M of all tokens, random V of `rank` columns and random mixtures A of tokens
    rng = stream(seed, "sketch")
    V = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    Q = np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    right = logits(tokens, V.T)
    left = logits(Q, directions) @ directions
    mixed = Q @ (right[:d] - right[d]) + right[d] if bias else Q @ right
    return _layer(right @ np.linalg.pinv(mixed) @ left, W, bias)


def _layer(seen: Array, W: Array, bias: bool) -> Layer:
    """Return the layer whose unit vectors, and the zero token, see the keys with these logits, Theta^T q + u."""
    if not bias:
        return Layer(seen[None], W[None])
    return Layer((seen[:-1] - seen[-1])[None], W[None], seen[-1:])


def _logit(q: Array, v: Array, W: Array, step: float, largest: float) -> Task:
    """Return q^T Theta v, from the share of v W in the answer; a saturated one is asked again with a shorter step."""
    value = v @ W
    t = step
    for _ in range(60):
        answer = (yield np.array([q + t * v, q])) - q @ W
        share = float(answer @ value) / (t * float(value @ value))
        if 0 < share < 1 and abs(np.log(share / (1 - share))) < largest:
            return float(np.log(share / (1 - share)) / t)
        t /= 4
    return 0.0  # noise drowns even the shortest step: the certificate will tell


def _equal_overlap(W: Array) -> Array:
    """Return an orthonormal basis (rows) whose every member has the same overlap with the top direction u of W, so v W != 0.

    The Householder reflection that takes (1, .., 1)/sqrt(d) to u, applied to the unit vectors.
    """
    d = len(W)
    u = np.linalg.svd(W)[0][:, 0]
    even = np.ones(d) / np.sqrt(d)
    if u @ even < 0:
        u = -u
    normal = even - u
    size = float(normal @ normal)
    return np.eye(d) - (2 / size * np.outer(normal, normal) if size > 1e-20 else 0)
