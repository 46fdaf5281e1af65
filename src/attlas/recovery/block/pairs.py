"""Heads behind a known network, from pairs of tokens that stay inside a linear cell of it.

With two tokens [q + w; q] y = q + D(w), D(w) = sum_i sigma(q^T Theta_i w) w V_i. While q and y share a cell, the answer less
G(q) is D(w) J(q), and J(q) is known. Then

1. D(w) - D(-w) = w sum_i V_i, exactly, for any number of heads: linear in sum_i V_i S, pooled over cells, which is how a
   single output sees all of it;
2. with one head D(w) = sigma w V, and the logit of its share is linear in Theta;
3. with all Theta_i known D is linear in all V_i S.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.block.asking import Asking
from attlas.recovery.block.network import Network
from attlas.recovery.oracle import Lost

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_EQUATIONS = 1.5  # over unknowns
_SHARES = (0.003, 0.997)  # between which a share has a logit
_SHALLOW = 0.05  # of the median depth: cells shallower than this are left out
_CONDITION = 1e6  # of a design, beyond which more pairs are drawn
_SHORTER = (1.0, 1 / 3, 1 / 9, 1 / 30, 1 / 100)  # pairs, in turn, until none leaves its cell


class Pairs(NamedTuple):
    """Pairs that were asked: q, w (n, d), the answers less G(q), (n, d_out), and S^T J(q), (n, s, d_out)."""

    q: Array
    w: Array
    D: Array
    J: Array


def sum_of_values(ask: Asking, network: Network, S: Array, rng: np.random.Generator) -> tuple[Array, Pairs]:
    """Return sum_i V_i S (d, s), and the pairs it was found from.

    Raises
    ------
    Lost
        If the pairs leave their cells however short they are.
    """
    d, s = S.shape
    n = int(np.ceil(_EQUATIONS * d * s / min(network.outputs, s)))
    missed = np.inf
    for shorter in _SHORTER:
        q, w, J, design = _conditioned(network, S, n, 5.0, shorter, np.zeros((1, d, d)), rng)
        forth, back = (_answers(ask, network, q, side * w) for side in (1, -1))
        target = (forth - back).ravel()
        total = 0.5 * np.linalg.lstsq(design, target, rcond=None)[0]  # with Theta = 0 every share is a half
        missed = float(np.linalg.norm(2 * design @ total - target) / np.linalg.norm(design) * np.sqrt(d * s))
        if missed < max(1e-7, 1e3 * ask.eps / shorter):
            return np.asarray(total.reshape(d, s)), Pairs(q, w, forth, J)
    raise Lost(f"opposite pairs of tokens are not opposite (by {missed:.0e})")


def one_head(
    ask: Asking, network: Network, S: Array, V: Array, pairs: Pairs, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return Theta (d, d) of a single head of value V S (d, s), and by how much the logits miss it, relative."""
    d, wanted = len(V), int(np.ceil(_EQUATIONS * len(V) ** 2))
    parts, size = [pairs], 1.0
    for _ in range(6):
        known = Pairs(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        logits, weights = _logits(known, V)
        usable = int(np.sum(weights > 0))
        if usable >= wanted:
            break
        if usable < 0.5 * len(weights):
            size /= 3
        parts.append(_asked(ask, network, S, wanted - usable, 5.0, size, rng))
    design = np.einsum("na,nb->nab", known.q, known.w).reshape(len(logits), -1) * weights[:, None]
    target = logits * weights
    Theta = np.linalg.lstsq(design, target, rcond=None)[0]
    missed = float(np.linalg.norm(design @ Theta - target)) / max(float(np.linalg.norm(weights)), 1e-300)
    return Theta.reshape(d, d), missed if usable >= d * d else np.inf


def values(ask: Asking, network: Network, S: Array, Theta: Array, rng: np.random.Generator) -> Array:
    """Return V_i S (m, d, s) of heads with known Theta.

    Raises
    ------
    Lost
        If they are not determined, or pairs leave their cells however short they are.
    """
    (d, s), m = S.shape, len(Theta)
    n = int(np.ceil(_EQUATIONS * m * d * s / min(network.outputs, s)))
    why = ""
    for shorter in _SHORTER:
        q, w, _, design = _conditioned(network, S, n, 10.0, shorter, Theta, rng)
        target = _answers(ask, network, q, w).ravel()
        found = np.linalg.lstsq(design, target, rcond=None)[0]
        missed = float(np.linalg.norm(design @ found - target)) / max(float(np.linalg.norm(target)), 1e-300)
        if missed < max(1e-4, 1e4 * ask.eps):
            return np.asarray(found.reshape(m, d, s))
        why = f"pairs of tokens do not fit {m} heads (by {missed:.0e})"
    raise Lost(why)


def _conditioned(
    network: Network, S: Array, n: int, size: float, shorter: float, Theta: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Return n or more q, w, S^T J(q) that determine V_i S of heads with these Theta, and the design; nothing is asked."""
    for _ in range(6):
        q, w = _drawn(network, n, size, shorter, rng)
        J = S.T @ network.slope(q)
        design = _value_rows(Theta, q, w, J).reshape(n * network.outputs, -1)
        if np.linalg.cond(design / np.maximum(np.linalg.norm(design, axis=1, keepdims=True), 1e-300)) < _CONDITION:
            return q, w, J, design
        n = int(np.ceil(1.4 * n))
    raise Lost("pairs do not tell the values apart: two heads may be nearly the same")


def _value_rows(Theta: Array, q: Array, w: Array, J: Array) -> Array:
    """Return the derivatives of D(w) J by V_i S, (n, d_out, m, d, s)."""
    shares = 1 / (1 + np.exp(-np.clip(np.einsum("na,mab,nb->nm", q, Theta, w), -700, 700)))
    return np.asarray(np.einsum("nm,na,nbo->nomab", shares, w, J, optimize=True))


def _logits(pairs: Pairs, V: Array) -> tuple[Array, Array]:
    """Return the logits of shares, and how much each counts: nothing where it is saturated."""
    whole = np.einsum("na,as,nso->no", pairs.w, V, pairs.J, optimize=True)
    size = np.sum(whole**2, axis=1)
    share = np.einsum("no,no->n", pairs.D, whole) / np.maximum(size, 1e-300)
    fine = (share > _SHARES[0]) & (share < _SHARES[1])
    p = np.where(fine, share, 0.5)
    weights = np.sqrt(size) * p * (1 - p) / (1 + np.linalg.norm(pairs.q, axis=1))
    return np.log(p / (1 - p)), np.where(fine, weights, 0.0)


def _asked(
    ask: Asking, network: Network, S: Array, n: int, size: float, shorter: float, rng: np.random.Generator
) -> Pairs:
    q, w = _drawn(network, n, size, shorter, rng)
    return Pairs(q, w, _answers(ask, network, q, w), S.T @ network.slope(q))


def _answers(ask: Asking, network: Network, q: Array, w: Array) -> Array:
    return np.array([ask.pair(last, step) for last, step in zip(q, w, strict=True)]) - network(q)


def _drawn(network: Network, n: int, size: float, shorter: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return final tokens q deep in their cells, and steps w, a fraction of that depth long.

    Cells are drawn with equal probability: drawn by volume, few of them would show all of V where outputs are few.
    """
    q = size * rng.standard_normal((40 * n + 400, network.d))
    depth = network.depth(q)
    cells, counts = _cells(network.places(q))
    steep = np.linalg.norm(network.slope(q), axis=(1, 2))
    fine = _deeper_half(depth, cells, counts) & (depth >= _SHALLOW * np.median(depth)) & (steep > 1e-9 * steep.max())
    if not fine.any():
        raise Lost("the network is flat wherever its cells are deep")
    q, depth, chance = q[fine], depth[fine], 1.0 / counts[cells[fine]]
    chosen = rng.choice(len(q), n, p=chance / chance.sum())
    w = rng.standard_normal((n, network.d))
    length = shorter * np.minimum(1.0, 0.9 * depth[chosen] / 4)
    return q[chosen], w * (length / np.linalg.norm(w, axis=1))[:, None]


def _cells(places: Array) -> tuple[Integers, Integers]:
    """Return in which cell each row is, by number, and how many there are in each."""
    if not places.shape[1]:
        return np.zeros(len(places), dtype=np.int64), np.array([len(places)])
    packed = np.packbits(places > 0, axis=1)
    _, which, counts = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    return which.ravel().astype(np.int64), counts.astype(np.int64)


def _deeper_half(depth: Array, cells: Integers, counts: Integers) -> NDArray[np.bool_]:
    """Return which rows belong to the deeper half of their own cell."""
    order = np.lexsort((depth, cells))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.concatenate([[0], np.cumsum(counts)[:-1]])[cells[order]]
    return np.asarray(rank >= counts[cells] // 2)
