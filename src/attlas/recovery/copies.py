"""Rational interpolation over copies of a token: the literature's way to the logits of several heads, and its conditioning.

With t copies of a and q of b, b last, the answer is f = a V_sum + sum_h (b - a) V_h / (1 + (t/q) e^{s_h}), s_h = b^T Theta_h
(a - b): a rational function of t/q whose poles -e^{-s_h} are the logits. They are the eigenvalues of a Loewner pencil. In
double precision this gives out at a handful of heads, because poles on one side are told apart by values on the other; both
sides, t > q and t < q, buy about two heads more, several outputs about as much.

References
----------
kim2026queries for the idea; mayo2007framework for the pencil.
"""

from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, described, integer
from attlas.numerics import stream
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer
from attlas.recovery.oracle import CountingOracle, Oracle
from attlas.recovery.variable_projection import eliminate

Array = NDArray[np.float64]


class Copies(NamedTuple):
    """What `copies` returns: the logits b^T Theta_h (a - b), ascending; how well they were determined; the queries used.

    `conditioning` is the smallest over the largest of the `heads` singular values of the Loewner matrix; `next_value` the
    one after them over the largest, which rounding alone should explain if the number of heads is right.
    """

    logits: Array
    conditioning: float
    next_value: float
    queries: int


def copies(
    oracle: Oracle, a: ArrayLike, b: ArrayLike, heads: int, *, grid: Literal["ratios", "copies"] = "ratios"
) -> Copies:
    """Return the logits b^T Theta_h (a - b) of all heads, from sequences of copies of two tokens.

    Parameters
    ----------
    oracle : callable
        As for `learn_from_queries`.
    a, b : arrays of shape (d,)
        Two different tokens.
    heads : int
    grid : {"ratios", "copies"}
        "copies" takes t = 1 .. 2H of a and one b; "ratios" takes t of one and one of the other, t = 1 .. H + 1, which is
        better conditioned.

    Notes
    -----
    About 2H queries and, for V_sum, two more; sequences of up to 2H + 1 tokens. Logits that come out complex, a sign of
    lost precision, are returned as NaN.

    Examples
    --------
    >>> from attlas import recovery
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=2, d=4, seed=0))
    >>> a, b = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]
    >>> found = recovery.copies(lambda X: layer(X[None])[0, -1], a, b, heads=2)
    >>> truth = sorted(float(Theta[1] @ [1.0, -1.0, 0.0, 0.0]) for Theta in layer.Theta)
    >>> bool(abs(sorted(found.logits)[0] - truth[0]) < 1e-6)
    True
    """
    first, second = array(a, "a", ("d",)), array(b, "b", ("d",))
    H = integer(heads, "heads")
    if first.shape != second.shape or np.array_equal(first, second):
        raise InputError("a and b must be two different tokens of the same dimension")
    if not isinstance(grid, str) or grid not in ("ratios", "copies"):
        raise InputError(f"grid must be ratios or copies; got {described(grid)}")
    ask = CountingOracle(oracle, len(first))
    at_a, at_b = ask(first[None]), ask(second[None])  # a V_sum and b V_sum
    return _family(ask, first, second, H, _counts(H, grid), at_a, at_b)


def learn_from_copies(ask: CountingOracle, total: Array, heads: int, seed: int) -> Layer | None:
    """Return a layer of so many heads from copies alone, or None where the logits of a family came out complex.

    `total` (d, d_out) is the sum of all values, the answers to single unit vectors.

    For every final token b of a basis, the logits b^T Theta_h v of the directions v of another one, each an unordered set.
    Which belongs to which head is told by additivity: the logits of v + v' are the sums of those of v and v', and those of
    b + b' likewise. 2 d^2 - 1 families; all H! orders are tried, so this is for a handful of heads. The values are then
    linear in the answers to ordinary queries.
    """
    d, rng = len(total), stream(seed, "copies")
    tokens, directions = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    counts = _counts(heads, "ratios")

    def logits(b: Array, v: Array) -> Array:
        return _family(ask, b + v, b, heads, counts, (b + v) @ total, b @ total).logits

    first = directions[0]
    measured = np.empty((heads, d, d))  # [h, i, j] = b_i^T Theta_h v_j
    for i, b in enumerate(tokens):
        measured[:, i, 0] = logits(b, first)
        if i:  # the order of the heads at the first token
            measured[:, i, 0] = _matched(measured[:, 0, 0], measured[:, i, 0], logits(tokens[0] + b, first))
        for j, v in enumerate(directions[1:], start=1):
            measured[:, i, j] = _matched(measured[:, i, 0], logits(b, v), logits(b, first + v))
    if np.isnan(measured).any():
        return None
    Theta = tokens.T @ measured @ directions
    X = np.clip(rng.standard_normal((2 * heads * d, 4, d)), -4, 4)
    answers = Examples.of(X, np.array([ask(x) for x in X]))
    return Layer(Theta, eliminate(answers, Theta).W.reshape(heads, d, -1))


def _matched(first: Array, second: Array, sums: Array) -> Array:
    """Return `second` in the order that makes first + second the sums, as sets."""
    orders = np.array(list(permutations(range(len(first)))))
    missed = np.abs(np.sort(first + second[orders], axis=1) - np.sort(sums)).max(1)
    return np.asarray(second[orders[np.argmin(missed)]])


def _counts(heads: int, grid: str) -> list[tuple[int, int]]:
    """Return how many copies of a and of b to ask for."""
    if grid == "copies":
        return [(t, 1) for t in range(1, 2 * heads + 1)]
    return [(1, 1), *((t, 1) for t in range(2, heads + 2)), *((1, t) for t in range(2, heads + 2))]


def _family(
    ask: CountingOracle, a: Array, b: Array, H: int, counts: list[tuple[int, int]], at_a: Array, at_b: Array
) -> Copies:
    """Return the logits b^T Theta_h (a - b) from the answers to t copies of a and q of b."""
    x = np.array([0.0, *(t / q for t, q in counts)])
    F = np.array([at_b - at_a, *(ask(np.array([a] * t + [b] * q)) - at_a for t, q in counts)])
    order = np.argsort(x)
    x, F = x[order], F[order]
    left, right = slice(0, None, 2), slice(1, None, 2)
    gaps = x[left][:, None] - x[right][None, :]
    values, shifted = [], []
    for f in F.T:
        values.append((f[left][:, None] - f[right][None, :]) / gaps)
        shifted.append(((x * f)[left][:, None] - (x * f)[right][None, :]) / gaps)
    L, M = np.concatenate(values), np.concatenate(shifted)
    U, s, V = np.linalg.svd(L, full_matrices=False)
    if len(s) < H or s[H - 1] == 0:
        raise InputError(f"the answers do not show {H} different heads on these tokens")
    poles = np.linalg.eigvals((U[:, :H].T @ M @ V[:H].T) / s[:H, None])
    real = np.where((np.abs(poles.imag) < 1e-6 * np.abs(poles)) & (poles.real < 0), poles.real, np.nan)
    after = float(s[H] / s[0]) if len(s) > H else 0.0
    return Copies(np.sort(-np.log(-real)), float(s[H - 1] / s[0]), after, ask.queries)
