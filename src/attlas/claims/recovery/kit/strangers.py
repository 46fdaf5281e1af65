"""Functions that are no sum of softmax heads: pieces that a layer may have besides its heads, by kind.

A piece is a function of the tokens X (n, k, d), the layer it is added to, and a stream for its own parameters. What replaces
a layer by another one (a mask, a temperature) is the difference of the two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attlas.layers import softmax
from attlas.recovery import Layer

Array = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Tokens, a layer on them, and a stream of random numbers."""

    X: Array
    layer: Layer
    rng: np.random.Generator

    @cached_property
    def F(self) -> Array:
        """Outputs of the layer."""
        return np.asarray(self.layer(self.X))

    @cached_property
    def f(self) -> Array:
        """Outputs of mean square one."""
        return np.asarray(self.F / np.sqrt(np.mean(self.F**2)))

    @cached_property
    def logits(self) -> Array:
        """Logits of all heads (m, n, k, k)."""
        return self.between(self.X)

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """0, ..., k - 1."""
        return np.arange(self.X.shape[1])

    def between(self, X: Array, Theta: Array | None = None) -> Array:
        """Return the logits between such tokens."""
        heads = self.layer.Theta if Theta is None else Theta
        return np.asarray((X @ heads[:, None]) @ X.transpose(0, 2, 1))

    def head(self, Theta: Array) -> Array:
        """Return a head with random values."""
        return np.asarray(softmax(self.between(self.X, Theta[None])[0]) @ self.linear(self.X))

    def summed(self, weights: Array, X: Array | None = None) -> Array:
        """Return sum_i P_i X W_i for given weights P."""
        return np.asarray(np.sum(weights @ (self.X if X is None else X) @ self.layer.W[:, None], axis=0))

    def instead(self, logits: Array, allowed: NDArray[np.bool_] | None = None) -> Array:
        """Return how the outputs change with these logits and this mask."""
        return self.summed(softmax(logits if allowed is None else np.where(allowed, logits, -1e9))) - self.F

    def linear(self, x: Array) -> Array:
        """Return random linear functions of tokens, as many as there are outputs."""
        return np.asarray(x @ self.rng.standard_normal((x.shape[-1], self.F.shape[2])))

    def along(self, scale: float = 1.0) -> Array:
        """Return every token along a random direction (n, k, 1)."""
        w = self.rng.standard_normal((self.X.shape[2], 1))
        return np.asarray(scale * self.X @ (w / np.linalg.norm(w)))

    def row(self, size: int = 1) -> Array:
        """Return random numbers for every output."""
        return self.rng.standard_normal((size, self.F.shape[2]))

    def columns(self, x: Array) -> Array:
        """Return a random entry of tokens for every output."""
        return np.asarray(x[:, :, self.rng.integers(0, x.shape[2], self.F.shape[2])])


def normal(x: Array) -> Array:
    """LayerNorm without parameters."""
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-6))


def _random_head(scale: float) -> Callable[[World], Array]:
    def piece(w: World) -> Array:
        d = w.X.shape[2]
        return w.head(scale / d * w.rng.standard_normal((d, d)))

    return piece


def _rank_one(w: World) -> Array:
    d = w.X.shape[2]
    return w.head(2 / d * np.outer(w.rng.standard_normal(d), w.rng.standard_normal(d)))


def _near(w: World) -> Array:
    theta = w.layer.Theta[0]
    return w.head(theta + 0.5 * np.sqrt(np.mean(theta**2)) * w.rng.standard_normal(theta.shape))


def _one_output(piece: Callable[[World], Array]) -> Callable[[World], Array]:
    return lambda w: np.asarray(piece(w) * (np.arange(w.F.shape[2]) == 0))


def _repeated(x: Array, w: World) -> Array:
    """Give what a sequence has, (n, columns), to all its rows."""
    return np.repeat(x[:, None], w.X.shape[1], axis=1)


def _all_rows(row: Array, w: World) -> Array:
    return np.array(np.broadcast_to(row, w.F.shape))


def _alike(w: World) -> Array:
    """Return how many tokens are close to that of a row."""
    apart = np.sum((w.X[:, :, None] - w.X[:, None]) ** 2, axis=3)
    return np.asarray(np.sum(apart < np.median(apart), axis=2)[:, :, None] * w.row())


def _rare(w: World) -> Array:
    along = w.along()
    return np.asarray(along > np.quantile(along, 0.97))


def _network(w: World) -> Array:
    x = np.concatenate([w.f, w.X], axis=2)
    return w.linear(np.maximum(x @ w.rng.standard_normal((x.shape[2], 8)) + w.rng.standard_normal(8), 0))


def _ordered(w: World, width: int) -> NDArray[np.bool_]:
    return np.asarray(np.abs(w.places[:, None] - w.places) <= width)


# kinds that the certificate claims to see
SEEN: dict[str, dict[str, Callable[[World], Array]]] = {
    "constants and places": {
        "constant": lambda w: _all_rows(w.row(), w),
        "constant in one output": _one_output(lambda w: _all_rows(w.row(), w)),
        "position": lambda w: _all_rows(w.row(w.X.shape[1]), w),
        "linear by position": lambda w: w.linear(w.X) * w.rng.standard_normal((w.X.shape[1], 1)),
        "first token": lambda w: _repeated(w.linear(w.X)[:, 0], w),
        "previous token": lambda w: w.linear(np.concatenate([0 * w.X[:, :1], w.X[:, :-1]], axis=1)),
        "temperature by position": lambda w: w.instead(w.logits * (0.3 + w.places[:, None])),
        "place in the logits": lambda w: w.instead(w.logits - np.abs(w.places[:, None] - w.places)),
    },
    "other attention": {
        "causal mask": lambda w: w.instead(w.logits, w.places[:, None] >= w.places),
        "window mask": lambda w: w.instead(w.logits, _ordered(w, 1)),
        "without itself": lambda w: w.instead(w.logits, w.places[:, None] != w.places),
        "temperature": lambda w: w.instead(1.5 * w.logits),
        "key bias": lambda w: w.instead(w.logits + w.along()[:, :, 0][:, None]),
        "hard attention": _random_head(1e6),  # of its own: that of a fitted head is the limit of sharper ones
        "sigmoid attention": lambda w: w.summed(0.5 + 0.5 * np.tanh(w.logits / 2)),
        "linear attention": lambda w: w.summed(w.logits),
        "ReLU attention": lambda w: w.summed(np.maximum(w.logits, 0)),
        "LayerNorm before": lambda w: w.summed(softmax(w.between(normal(w.X))), normal(w.X)) - w.F,
        "cosine attention": lambda w: w.instead(w.between(2 * w.X / np.linalg.norm(w.X, axis=2, keepdims=True))),
        "squared values": lambda w: w.summed(softmax(w.logits), w.X**2),
    },
    "more heads": {
        "flat head": _random_head(0.5),
        "head": _random_head(2.0),
        "sharp head": _random_head(6.0),
        "head of rank 1": _rank_one,
        "head in one output": _one_output(_random_head(2.0)),
        "two heads": lambda w: _random_head(2.0)(w) + _random_head(2.0)(w),
        "head near another": _near,
        "mean token": lambda w: _repeated(w.linear(w.X).mean(1), w),
    },
    "functions of the token": {
        "residual": lambda w: w.linear(w.X) if w.F.shape[2] != w.X.shape[2] else w.X,
        "linear": lambda w: w.linear(w.X),
        "squares": lambda w: w.columns(w.X**2),
        "cubes": lambda w: w.columns(w.X**3),
        "absolute value": lambda w: np.abs(w.along()) * w.row(),
        "sign": lambda w: np.sign(w.along()) * w.row(),
        "sine": lambda w: np.sin(w.along(2.0)) * w.row(),
        "product of two entries": lambda w: w.columns(w.X) * w.columns(w.X),
        "rare tokens": lambda w: _rare(w) * w.row(),
    },
    "functions of several tokens": {
        "largest": lambda w: _repeated(w.linear(w.X.max(1)), w),
        "largest projection": lambda w: _repeated(w.along().max(1), w) * w.row(),
        "spread": lambda w: _repeated(w.linear(w.X.std(1)), w),
        "tokens alike": _alike,
        "rare tokens in context": lambda w: _repeated(_rare(w).mean(1), w) * w.row(),
        "product with the first": lambda w: w.columns(w.X)[:, :1] * w.columns(w.X),
        "product with the previous": lambda w: w.columns(np.roll(w.X, 1, axis=1)) * w.columns(w.X),
    },
    "behind the layer": {
        "ReLU": lambda w: np.maximum(w.F, 0),
        "tanh": lambda w: np.tanh(2 * w.f),
        "clipping": lambda w: np.clip(w.f, -1, 1) - w.f,
        "LayerNorm": lambda w: normal(w.F) - w.f,
        "network": _network,
        "gate of the token": lambda w: w.F / (1 + np.exp(-w.along(2.0))),
        "gate of the sequence": lambda w: w.F * w.along().mean(1, keepdims=True),
        "scale by the token": lambda w: w.F * np.linalg.norm(w.X, axis=2, keepdims=True),
        "second layer": lambda w: np.sum(softmax(w.logits) @ w.F, axis=0),
        "second layer behind ReLU": lambda w: np.sum(softmax(w.logits) @ np.maximum(w.F, 0), axis=0),
    },
}
# and what it does not claim to see
UNSEEN: dict[str, Callable[[World], Array]] = {
    "product of three tokens": lambda w: (
        np.prod(w.columns(w.X[:, :3]), axis=1, keepdims=True) * np.ones((1, w.X.shape[1], 1))
    ),
    "cosine of the sequence": lambda w: _repeated(np.cos(3 * w.linear(w.X).sum(1)), w),
    "fast sine": lambda w: np.sin(w.along(6.0)) * w.row(),
    "parity of signs": lambda w: np.prod(np.sign(w.X), axis=2, keepdims=True) * np.sign(w.X[:, :1, :1]) * w.row(),
    "hash": lambda w: w.rng.standard_normal(w.F.shape),
}


def piece(kind: str, world: World) -> Array:
    """Return the piece of a kind, of the mean square of the outputs."""
    every = {name: make for group in SEEN.values() for name, make in group.items()} | UNSEEN
    g = np.asarray(every[kind](world), dtype=float)
    return np.asarray(g * np.sqrt(np.mean(world.F**2) / np.mean(g**2)))


def group(kind: str) -> str:
    """Return the group of a kind."""
    return next((name for name, kinds in SEEN.items() if kind in kinds), "not claimed")


KINDS = tuple(kind for kinds in SEEN.values() for kind in kinds)
