"""What a residual may depend on if it is not noise: families of functions of a sequence, each a suspect with a name.

A family is a set of features of every row, of shape (n, rows, columns). They may use the tokens and the fitted layer; they
never see the residual. All random features come from one named stream, so a family is the same on every machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attlas.layers import softmax
from attlas.layers.masks import masked_softmax
from attlas.numerics import stream
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer

Array = NDArray[np.float64]

COLUMNS = 360  # of a family: of a larger one so many are drawn
_WORDS = 256  # different tokens, up to which each is a feature of its own
_SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)  # standard deviations of the logits of random heads
_HEADS = 40


@dataclass(frozen=True)
class Scene:
    """Examples and the layer that was fitted to them, as the families see them: tokens of mean square one."""

    data: Examples
    layer: Layer

    @cached_property
    def size(self) -> float:
        """Root mean square of the entries of the tokens."""
        return float(np.sqrt(np.mean(self.data.X**2)))

    @cached_property
    def X(self) -> Array:
        """All tokens (n, k, d)."""
        return np.asarray(self.data.X / self.size)

    @cached_property
    def x(self) -> Array:
        """The token of every row (n, rows, d)."""
        queries = self.data.queries
        return np.asarray(queries / (np.sqrt(np.mean(queries**2)) if self.data.cross else self.size))

    @cached_property
    def mean(self) -> Array:
        """The mean token, for every row."""
        return self.each_row(self.X.mean(1))

    @cached_property
    def heads(self) -> Array:
        """The fitted Theta, with key biases as last rows if there are any."""
        return self.layer.stacked() if self.data.bias else self.layer.Theta

    @cached_property
    def logits(self) -> list[Array]:
        """Logits of the fitted heads, each (n, rows, k)."""
        return [(self.data.asking @ theta) @ self.data.X.transpose(0, 2, 1) for theta in self.heads]

    @cached_property
    def attention(self) -> list[Array]:
        """Attention of the fitted heads, each (n, rows, k)."""
        return [self.attend(L) for L in self.logits]

    def attend(self, logits: Array) -> Array:
        """Return the attention of these logits, to what may be attended to."""
        return softmax(logits) if self.data.allowed is None else masked_softmax(logits, self.data.allowed)

    @cached_property
    def attended(self) -> Array:
        """Attended tokens of all fitted heads, side by side."""
        return np.concatenate([P @ self.X for P in self.attention], axis=2)

    @cached_property
    def F(self) -> Array:
        """The fitted outputs, of mean square one."""
        F = self.data.predict(self.layer)
        return np.asarray(F / max(float(np.sqrt(np.mean(F**2))), np.finfo(float).tiny))

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """The place of every row in its sequence, (n, rows): all of them, or the last one that is no padding.

        Queries of another sequence have places of their own, up to the number of keys.
        """
        n, k, rows = len(self.X), self.X.shape[1], self.x.shape[1]
        if self.data.cross:
            return np.broadcast_to(np.minimum(np.arange(rows), k - 1), (n, rows))
        if rows == k:
            return np.broadcast_to(np.arange(k), (n, k))
        return np.broadcast_to(self.lengths[:, None] - 1, (n, rows))

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The number of every row, (n, rows): its place, or its place among the queries."""
        n, rows = self.x.shape[:2]
        return np.broadcast_to(np.arange(rows), (n, rows)) if self.data.cross else self.places

    @cached_property
    def lengths(self) -> NDArray[np.intp]:
        """The number of tokens of every sequence up to its last one that is attended to."""
        n, k = self.X.shape[:2]
        if self.data.allowed is None:
            return np.full(n, k)
        attended: NDArray[np.bool_] = np.any(self.data.allowed, axis=1)
        return np.asarray(k - np.argmax(attended[:, ::-1], axis=1))

    def each_row(self, values: Array) -> Array:
        """Give (n, columns) of a sequence to every row of it."""
        return np.repeat(values[:, None], self.x.shape[1], axis=1)

    def at(self, shift: int) -> Array:
        """The token `shift` places after that of a row, zero where there is none."""
        there = self.places + shift
        inside = (there >= 0) & (there < self.X.shape[1])
        return np.asarray(
            np.take_along_axis(self.X, np.where(inside, there, 0)[:, :, None], axis=1) * inside[:, :, None]
        )


def families(scene: Scene) -> Iterator[tuple[str, Array]]:
    """Yield name and features (n, rows, columns) of every family, one at a time."""
    draws = stream(0, "suspects")
    one = np.ones((*scene.x.shape[:2], 1))
    x, mean, F, Z = scene.x, scene.mean, scene.F, scene.attended
    covariance = scene.each_row(_covariance(scene.X))
    place = np.eye(max(scene.X.shape[1], x.shape[1]))[scene.rows]
    first, last = scene.each_row(scene.X[:, 0]), scene.each_row(scene.X[:, -1])
    before, after = scene.at(-1), scene.at(1)
    yield "a constant", one
    if np.ptp(scene.lengths) > 0:
        yield "the length", scene.each_row(np.eye(scene.X.shape[1])[scene.lengths - 1])
    if x.shape[1] > 1:
        yield "the position", place
        yield "the position times tokens and outputs", _times(place, np.concatenate([x, mean, F], axis=2), draws)
    yield "a linear function of the tokens", _side(one, x, mean)
    yield "neighbouring tokens", _side(before, after, first, last)
    yield "masked attention", _masked(scene)
    yield "another temperature", _temperatures(scene)
    yield "a function of one token", _token(x)
    yield "a function of one token, random features", _waves(x, 240, draws, (0.5, 1.0, 2.0))
    shape = _shapes(scene)
    yield (
        "a function of the outputs",
        _side(F**2, F**3, np.abs(F), np.tanh(F), np.tanh(2 * F), _normal(F), _norm(F), shape),
    )
    yield "a gate", _times(F, _side(x, mean, shape), draws)
    yield "tokens times their covariance", _times(x, covariance, draws)
    yield "pairs of coordinates", _side(_times(x, x, draws), covariance, _times(x, mean, draws))
    pairs = [_times(x, before, draws), _times(x, after, draws)]
    ends = [_times(first, scene.each_row(scene.X[:, 1]), draws), _times(first, last, draws)]
    yield "pairs of coordinates of two places", _side(*pairs, *ends)
    yield "another head", _heads(scene, draws)
    yield "pooled tokens", _pools(scene, draws)
    network = _side(x, mean, Z)
    yield "a network behind", _side(_waves(network, 150, draws, (0.5, 1.0)), _ramps(network, 150, draws))
    whole = scene.each_row(scene.X.reshape(len(x), -1))
    yield "the whole sequence", _waves(_side(whole, 3 * place), 200, draws, (0.5, 1.0))
    yield "attention without softmax", _other_attention(scene)
    if x.shape[1] == scene.X.shape[1] and not scene.data.cross:
        yield "a second layer", _stacked(scene)
    yield "rare tokens", _rare(scene, draws)


def _side(*parts: Array) -> Array:
    return np.concatenate(parts, axis=2)


def _norm(x: Array) -> Array:
    return np.asarray(np.linalg.norm(x, axis=2, keepdims=True))


def _normal(x: Array) -> Array:
    """LayerNorm without parameters."""
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-6))


def _unit(x: Array) -> Array:
    """Tokens of mean square one: RMSNorm without parameters."""
    return np.asarray(x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6))


def _times(a: Array, b: Array, rng: np.random.Generator) -> Array:
    """Return all products of a column of a and one of b, or as many of them as a family may have."""
    p, q = a.shape[2], b.shape[2]
    chosen = np.arange(p * q) if p * q <= COLUMNS else rng.choice(p * q, COLUMNS, replace=False)
    return np.asarray(a[:, :, chosen // q] * b[:, :, chosen % q])


def _waves(x: Array, columns: int, rng: np.random.Generator, scales: tuple[float, ...]) -> Array:
    """Return random Fourier features of several bandwidths."""
    each, p = columns // len(scales), x.shape[2]
    w = np.concatenate([scale * rng.standard_normal((p, each)) for scale in scales], axis=1)
    w *= np.sqrt(min(1.0, 6 / p))
    return np.asarray(np.cos(x @ w + rng.uniform(0, 2 * np.pi, w.shape[1])))


def _ramps(x: Array, columns: int, rng: np.random.Generator) -> Array:
    """Return random ReLU features."""
    w = rng.standard_normal((x.shape[2], columns)) / np.sqrt(x.shape[2])
    return np.asarray(np.maximum(x @ w + 0.5 * rng.standard_normal(columns), 0))


def _covariance(X: Array) -> Array:
    mean = X.mean(1)
    C = X.transpose(0, 2, 1) @ X / X.shape[1] - mean[:, :, None] * mean[:, None, :]
    rows, columns = np.triu_indices(X.shape[2])
    if len(rows) > COLUMNS:
        chosen = stream(0, "suspects", "covariance").choice(len(rows), COLUMNS, replace=False)
        rows, columns = rows[chosen], columns[chosen]
    return np.asarray(C[:, rows, columns])


def _masked(scene: Scene) -> Array:
    """Return what the fitted heads would attend to before a token, next to it, and without itself."""
    keys, at = np.arange(scene.X.shape[1]), scene.places[:, :, None]
    masks = [keys <= at, np.abs(keys - at) <= 1, keys != at]
    if scene.data.allowed is not None:
        masks = [mask & scene.data.allowed for mask in masks]
        masks.append(
            np.any(scene.data.allowed, axis=1, keepdims=True) & np.any(scene.data.allowed, axis=2, keepdims=True)
        )
    return _side(*[masked_softmax(L, mask) @ scene.X for L in scene.logits for mask in masks])


def _temperatures(scene: Scene) -> Array:
    from scipy.special import logsumexp

    parts = [scene.attend(beta * L) @ scene.X for L in scene.logits for beta in (0.5, 1.5, 3.0)]
    logits = scene.logits if (mask := scene.data.allowed) is None else [np.where(mask, L, -1e9) for L in scene.logits]
    return _side(*parts, *[scene.data.counted * logsumexp(L, axis=2, keepdims=True) for L in logits])


def _token(x: Array) -> Array:
    waves = [wave(c * x) for c in (2, 4) for wave in (np.sin, np.cos)]
    return _side(x**2, x**3, np.abs(x), _norm(x) ** 2 * x, _normal(x), _norm(x), *waves)


def _shapes(scene: Scene) -> Array:
    """Return entropy, largest weight and weight of the own token, of every fitted head."""
    parts = []
    for P in scene.attention:
        own = np.take_along_axis(P, scene.places[:, :, None], axis=2)
        entropy = -np.sum(P * np.log(np.maximum(P, 1e-300)), axis=2, keepdims=True)
        parts += [entropy, P.max(2, keepdims=True), own]
    return _side(*parts)


def _heads(scene: Scene, rng: np.random.Generator) -> Array:
    """Return the attended tokens of random heads."""
    e, d = scene.x.shape[2], scene.X.shape[2]
    few = max(1, COLUMNS // _HEADS)
    parts = []
    for number in range(_HEADS):
        Theta = _SCALES[number % len(_SCALES)] / np.sqrt(e * d) * rng.standard_normal((e, d))
        attended = scene.attend((scene.x @ Theta) @ scene.X.transpose(0, 2, 1)) @ scene.X
        parts.append(attended if d <= few else attended @ (rng.standard_normal((d, few)) / np.sqrt(d)))
    return _side(*parts)


def _pools(scene: Scene, rng: np.random.Generator) -> Array:
    X, d = scene.X, scene.X.shape[2]
    projected = X @ (rng.standard_normal((d, 40)) / np.sqrt(d))
    pools = [X.max(1), X.min(1), X.std(1), np.maximum(X, 0).mean(1), projected.max(1), np.maximum(projected, 0).mean(1)]
    return scene.each_row(np.concatenate(pools, axis=1))


def _other_attention(scene: Scene) -> Array:
    """Return what the fitted heads would attend to with other normalisers, or if tokens were normalised first."""
    from scipy.special import expit

    X, parts = scene.X, []
    pairs = [(form(scene.data.queries), form(scene.data.X)) for form in (_normal, _unit)]
    mask = 1.0 if scene.data.allowed is None else scene.data.allowed
    for L, theta in zip(scene.logits, scene.layer.Theta, strict=True):
        weights = scene.attend(L)
        hardest = (weights.max(2, keepdims=True) == weights).astype(float)
        for P in (expit(L), L / max(float(np.abs(L).mean()), 1e-300), np.maximum(L, 0), hardest):
            parts.append((P * mask) @ X / X.shape[1])
        for (rows, tokens), values in zip(pairs, ((pairs[0][1],), (pairs[1][1], X)), strict=True):
            weights = scene.attend((rows @ theta) @ tokens.transpose(0, 2, 1))
            parts += [weights @ value for value in values]
    return _side(*parts)


def _stacked(scene: Scene) -> Array:
    """Return what a second layer with the same attention sees."""
    F = scene.F
    return _side(*[part for P in scene.attention for part in (P @ F, P @ np.maximum(F, 0), P @ (P @ scene.X))])


def _rare(scene: Scene, rng: np.random.Generator) -> Array:
    """Return which token a row has and which its sequence has, if there are few; else which half-spaces of few tokens."""
    X, rows = scene.X, scene.x.shape[1]
    n, k, d = X.shape
    some = X.reshape(-1, d)
    words, index = np.unique(some[:2000], axis=0, return_inverse=True)
    if len(words) <= _WORDS:
        words, index = np.unique(some, axis=0, return_inverse=True)
    if len(words) <= _WORDS:
        which = np.eye(len(words))[index.reshape(n, k)]
    else:
        along = some @ (rng.standard_normal((d, 100)) / np.sqrt(d))
        which = (along > np.quantile(along, 0.97, axis=0)).astype(float).reshape(n, k, -1)
    own = np.take_along_axis(which, scene.places[:, :, None], axis=1)
    return _side(own, np.repeat(which.mean(1)[:, None], rows, axis=1))
