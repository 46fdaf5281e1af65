"""Layers that hide a parity of any number of coordinates, and how often a learner has its sign on tokens it has not seen."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas import tokens
from attlas.claims.claim import Result
from attlas.claims.recovery.kit.tasks import LEARNERS, Budget, Name, examples
from attlas.errors import InputError
from attlas.inputs import integer
from attlas.numerics import stream
from attlas.recovery import Layer, control_layer, parity_layer

Array = NDArray[np.float64]


def hiding(coordinates: int, d: int, seed: int) -> Layer:
    """Return a layer that hides the parity of so many coordinates on pairs of tokens that differ in their last one.

    Attention is odd, F(-X) = -F(X), so an odd number m of coordinates is hidden by m heads (`parity_layer`), and for an even
    one the last coordinate, which everybody sees, joins: F_r[d] = x_rd prod_{j in S} x_rj. With Theta and W as there, but
    weights that change their sign with tau, F_r[d] = x_rd g(x_r(S)) for an even g. It has m/2 + 1 values: m/2 from the pairs
    tau = +-1, +-3, .., one from a further head Theta = -B e_d e_d^T, which gives a multiple of x_rd. So m + 1 heads hide it.
    """
    m, d = integer(coordinates, "coordinates"), integer(d, "d")
    if m % 2:
        return parity_layer(m, d, seed)
    if d <= m:
        raise InputError(f"d must exceed the number of hidden coordinates, {m}; got {d}")
    tau = np.arange(-m + 1, m, 2)
    sums = np.arange(-m, m + 1, 2)
    gates = np.concatenate([np.tanh(sums[:, None] - tau), np.full((len(sums), 1), -np.tanh(1.0))], axis=1)
    signs = (-1.0) ** ((m - sums) // 2)
    w = np.linalg.lstsq(gates, signs, rcond=None)[0]
    hidden, last = np.zeros(d), np.eye(d)[-1]
    hidden[stream(seed, "teacher").choice(d - 1, m, replace=False)] = 1.0
    Theta = [np.outer(hidden - t * last, last) for t in tau] + [-np.outer(last, last)]
    return Layer(np.array(Theta), w[:, None, None] * np.outer(last, last))


def parity(layer: Layer, X: Array) -> Array:
    """Return the product of the hidden coordinates of every token, and of its last one if those are even in number."""
    hidden = np.flatnonzero(np.abs(layer.Theta[:, :-1, -1]).sum(0) > 0)
    product = np.prod(X[:, :, hidden], axis=2)
    return np.asarray(product if len(hidden) % 2 else product * X[:, :, -1])


def on_slice(X: Array) -> Array:
    """Return the pairs of tokens that differ in their last coordinate: elsewhere the output betrays nothing."""
    return np.asarray(X[X[:, 0, -1] != X[:, 1, -1]])


def deviation(layer: Layer, X: Array) -> float:
    """Return how far the layer is from its parity, at most."""
    pairs = on_slice(X)
    return float(np.abs(layer(pairs)[:, :, -1] - parity(layer, pairs)).max())


def unseen_accuracy(truth: Layer, guess: Layer, X: Array, seen: Array) -> float:
    """Return how often two layers have the same sign in the last output, on slices of X, for tokens not on those of `seen`.

    A token and its negative count as one: whoever remembers the one knows the other. One half is chance, a little less where
    many tokens were seen: a parity is balanced over all tokens, so what leans one way on those seen leans the other way on
    the rest.
    """
    known = {_key(token) for pair in on_slice(seen) for token in pair}
    pairs = on_slice(X)
    fresh = np.array([[_key(token) not in known for token in pair] for pair in pairs], dtype=bool)
    if not fresh.any():
        raise InputError("every token of the test was in the examples; use a larger d or fewer examples")
    ours, theirs = (np.sign(layer(pairs)[:, :, -1])[fresh] for layer in (truth, guess))
    return float(np.mean(ours == theirs))


def _key(token: Array) -> bytes:
    return bytes((token * token[-1]).astype(np.int8).tobytes())


class Task(NamedTuple):
    """A layer that hides a parity, a control of the same norms, the tokens to learn from, and fresh ones."""

    parity: Layer
    control: Layer
    X: Array
    fresh: Array


def drawn_task(coordinates: int, d: int, n: int, seed: int) -> Task:
    """Return the layers of a seed, n pairs of tokens and 2000 fresh ones."""
    layer = hiding(coordinates, d, seed)
    X, fresh = (tokens.boolean(count, 2, d, stream(seed, name)) for name, count in (("data", n), ("test", 2000)))
    return Task(layer, control_layer(layer, seed), X, fresh)


def attempted(task: Task, name: Name, budget: Budget, seed: int) -> Result:
    """Return the accuracy and the error of a learner on the parity, and on the control."""
    found: Result = {"converged": True}
    for kind, truth in (("parity", task.parity), ("control", task.control)):
        fit = LEARNERS[name](examples(truth, task.X), truth.heads, seed, budget)
        found[kind] = unseen_accuracy(truth, fit.layer, task.fresh, task.X)
        found[f"{kind}_error"] = examples(truth, task.fresh).residual(fit.Theta, fit.W)
        found["converged"] = found["converged"] and fit.converged
    return found
