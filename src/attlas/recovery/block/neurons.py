"""The network of a block, from single tokens: F(x) = G(x).

1. Kinks along one line are the neurons (`kinks`).
2. From cell to cell of the line the gradient jumps by 2 beta_j u_j^T: directions, good enough to know signs by.
3. With signs known, F is linear in all that is unknown, F(x) = c + x L + sum_j s_j(x) (x P_j + p_j), and P_j = u_j beta_j^T,
   p_j = t_j beta_j^T. Points on both sides of every hyperplane make it well conditioned, which is known before asking.

About 2.3 (h + 1)(d + 1) + 10 h + 20 queries.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.block.asking import Asking
from attlas.recovery.block.kinks import Line, Smooth
from attlas.recovery.block.network import Network
from attlas.recovery.oracle import Lost

Array = NDArray[np.float64]

_CONDITION = 1e5  # of the design, beyond which more points are drawn
_POINTS = 1.3  # over unknowns
_CLEAR = 1e-3  # of their size: how far points stay away from all hyperplanes
_SMOOTH = 2  # lines along which the answers bend everywhere, before another is not worth its queries
_ROUNDING = 1e-13  # noise above this shortens lines and widens the pieces looked at
_FRESH = 10  # points that the network is tested on


def network_from_single_tokens(ask: Asking, rng: np.random.Generator, lines: int = 6) -> Network:
    """Return the network G, which fresh points bear out.

    Raises
    ------
    Lost
        If no line gave one; it says why the last did not.
    """
    smooth = 0
    for attempt in range(lines):
        try:
            return _from_line(ask, rng)
        except Lost as why:
            smooth += isinstance(why, Smooth)
            if attempt == lines - 1 or smooth == _SMOOTH:
                raise Lost(f"no network was found: {why}") from why
    raise AssertionError


def _from_line(ask: Asking, rng: np.random.Generator) -> Network:
    start, along = rng.standard_normal((2, ask.d))
    along /= np.linalg.norm(along)
    line = Line(lambda s: ask.single(start + s * along), eps=ask.eps)
    if ask.eps > _ROUNDING:
        line = Line(line.f, 1e3, ask.eps, widths=(0.5, 0.1, 0.03, 0.01), near=0.03, slack=10.0)
    kinks = line.kinks()
    U, t = _hyperplanes(ask, start, along, np.array(kinks))
    network = _solved(ask, U, t, rng)
    X = 2 * rng.standard_normal((_FRESH, ask.d))
    answers = np.array([ask.single(x) for x in X])
    missed = float(np.linalg.norm(network(X) - answers)) / max(float(np.linalg.norm(answers)), 1e-300)
    if missed > 1e5 * ask.eps:
        raise Lost(f"fresh single tokens are missed by {missed:.0e}")
    return network


def _hyperplanes(ask: Asking, start: Array, along: Array, kinks: Array) -> tuple[Array, Array]:
    """Return U (h, d) and t (h,) from the jumps of the gradient between the cells of a line."""
    if not len(kinks):
        return np.empty((0, ask.d)), np.empty(0)
    ends = np.array([kinks[0] - 2 - abs(kinks[0]), kinks[-1] + 2 + abs(kinks[-1])])
    edges = np.concatenate([ends[:1], kinks, ends[1:]])
    share = float(np.clip(30 * np.sqrt(ask.eps), 1e-5, 0.03))  # noise asks for longer steps
    gradients = []
    for low, high in itertools.pairwise(edges):
        gradients.append(_gradient(ask, start + 0.5 * (low + high) * along, share * (high - low)))
    jumps = np.diff(gradients, axis=0)  # (h, d, d_out), of rank one
    U = np.linalg.svd(jumps)[0][:, :, 0]
    return U, -np.einsum("jd,jd->j", U, start + kinks[:, None] * along)


def _gradient(ask: Asking, x: Array, step: float) -> Array:
    here = ask.single(x)
    rows = []
    for i in range(len(x)):
        there = x.copy()
        there[i] += step
        rows.append((ask.single(there) - here) / (there[i] - x[i]))
    return np.array(rows)


def _solved(ask: Asking, U: Array, t: Array, rng: np.random.Generator) -> Network:
    """Return the network whose hyperplanes are about these: linear least squares with known signs."""
    (h, d), unknowns = U.shape, (len(U) + 1) * (U.shape[1] + 1)
    X = _points(U, t, int(np.ceil(_POINTS * unknowns)), rng)
    answers = np.array([ask.single(x) for x in X])
    weights = 1 / np.sqrt(1 + np.sum(X**2, axis=1))
    design, target = _design(X, U, t) * weights[:, None], answers * weights[:, None]
    found = np.linalg.lstsq(design, target, rcond=None)[0]
    residual = float(np.linalg.norm(design @ found - target)) / max(float(np.linalg.norm(target)), 1e-300)
    if residual > 1e4 * ask.eps:
        raise Lost(f"single tokens do not fit a network with {h} neurons: they are missed by {residual:.0e}")
    parts = found.reshape(h + 1, d + 1, -1)
    left, sizes, right = np.linalg.svd(parts[1:], full_matrices=False)
    planes = left[:, :, 0]  # (t_j, u_j), up to its length
    lengths = np.linalg.norm(planes[:, 1:], axis=1)
    if np.any(lengths < 1e-9) or (h and float(np.max(sizes[:, 1:], initial=0.0)) > 1e-3 * float(sizes.max())):
        raise Lost("a jump is not that of a ReLU")
    facing = np.sign(np.einsum("jd,jd->j", planes[:, 1:], U))  # signs were those of U
    planes = planes * (facing / lengths)[:, None]
    beta = right[:, 0] * (facing * sizes[:, 0] * lengths)[:, None]
    return Network(parts[0, 0], parts[0, 1:], planes[:, 1:], planes[:, 0], beta)


def _points(U: Array, t: Array, n: int, rng: np.random.Generator) -> Array:
    """Return at least n points beside all hyperplanes, of both sides, whose design is well conditioned."""
    h, d = U.shape
    if not h:
        return np.asarray(rng.standard_normal((n, d)))
    found = np.empty((0, d))
    for _ in range(12):
        while len(found) < n:
            found = np.concatenate([found, _beside(U, t, (n - len(found)) // h + 1, rng)])
        kept = found[:n]
        weights = 1 / np.sqrt(1 + np.sum(kept**2, axis=1))
        if np.linalg.cond(_design(kept, U, t) * weights[:, None]) < _CONDITION:
            return kept
        n = int(np.ceil(1.2 * n))
    raise Lost("no well conditioned points: two neurons may be nearly the same, or one too far away")


def _beside(U: Array, t: Array, each: int, rng: np.random.Generator) -> Array:
    """Return about `each` points on either side of every hyperplane, as far off as it is from the origin."""
    h, d = U.shape
    size = (1 + np.abs(t))[:, None, None]
    x = size * rng.standard_normal((h, each, d))
    x -= ((x @ U[:, :, None]) + t[:, None, None]) * U[:, None, :]
    sides = (-1.0) ** (np.arange(each) + rng.integers(2))
    x += size * (sides * np.abs(rng.standard_normal((h, each))))[:, :, None] * U[:, None, :]
    x = x.reshape(-1, d)
    clear = np.abs(x @ U.T + t).min(1) > _CLEAR * np.linalg.norm(x, axis=1)
    return np.asarray(x[clear][rng.permutation(int(clear.sum()))])


def _design(X: Array, U: Array, t: Array) -> Array:
    """Return rows (1, x) and s_j (1, x) for every j."""
    with_one = np.concatenate([np.ones((len(X), 1)), X], axis=1)
    signs = np.concatenate([np.ones((len(X), 1)), np.sign(X @ U.T + t)], axis=1)
    return np.asarray((signs[:, :, None] * with_one[:, None, :]).reshape(len(X), -1))
