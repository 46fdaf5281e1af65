"""Sculpting: a convex body around the parameters, carved by the examples on which all heads agree.

Where the attention of all heads is the same pattern p, the output is p X W_sum, so that p can be read off and every head
obeys x_r^T Theta_i (x_b - x_c) = log p_b/p_c: a slab. Enough slabs leave a body around the affine hull of the heads; its
flattest directions are the differences Theta_i - Theta_j, and in that span the heads are searched. Six phases.

References
----------
chen2024provably, whose geometry this follows; thresholds, the order of phases 3 and 4 and the search are ours.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.numerics import stream
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer
from attlas.recovery.variable_projection import best_of, variable_projection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROUNDS = 5  # of reading patterns and fitting one head to them
_SMALL = 0.05  # an attention weight below this gives a half-space, not a slab
_SEARCHED = 600  # examples used in the search
_MEMORY = 4e9  # bytes for the regression of phase 1


@dataclass(frozen=True)
class Body:
    """Slabs <G_s, Theta> = c_s with weights, and half-spaces <H_s, Theta> <= e_s; the rows they came from.

    Attributes
    ----------
    slabs, levels, weights : arrays (s, d, d), (s,), (s,)
    sides, limits : arrays (h, d, d), (h,)
    rows : Examples
        The examples on which the heads seem to agree, one row each.
    patterns : array (rows, k)
        The attention that was read off each of them.
    scores : array
        How far each row is from agreement: its residual over the spread of its tokens' values.
    """

    slabs: Array
    levels: Array
    weights: Array
    sides: Array
    limits: Array
    rows: Examples
    patterns: Array
    scores: Array

    @property
    def rank(self) -> int:
        """Number of independent slabs; d^2 if nothing repeats."""
        return int(np.linalg.matrix_rank(self.slabs.reshape(len(self.slabs), -1)))

    def proxy(self, penalty: float = 1e-3) -> Array:
        """Return the point (d, d) close to all slabs, on the right side of the half-spaces: weighted least squares.

        Half-spaces that contradict each other, as misread patterns make them, are left out, all of them.
        """
        from scipy.optimize import nnls

        d = self.slabs.shape[1]
        G, c = self.slabs.reshape(len(self.slabs), -1) * self.weights[:, None], self.levels * self.weights
        A = np.concatenate([G, np.sqrt(penalty) * np.eye(d * d)])
        target = np.concatenate([c, np.zeros(d * d)])
        free = np.linalg.lstsq(A, target, rcond=None)[0]
        if not len(self.sides):
            return np.asarray(free.reshape(d, d))
        # min |A x - t|^2 over S x <= e: with x = free + R^-1 z it is the least distance to a polyhedron, solved by NNLS
        R = np.linalg.cholesky(A.T @ A).T
        S = np.linalg.solve(R.T, self.sides.reshape(len(self.sides), -1).T).T
        room = self.limits - self.sides.reshape(len(self.sides), -1) @ free
        E = np.concatenate([-S.T, -room[None]])
        unit = np.zeros(len(E))
        unit[-1] = 1.0
        multipliers, distance = nnls(E, unit, maxiter=50 * len(self.sides))
        if distance < 1e-10:  # no point satisfies all half-spaces
            return np.asarray(free.reshape(d, d))
        residual = E @ multipliers - unit
        return np.asarray((free + np.linalg.solve(R, -residual[:-1] / residual[-1])).reshape(d, d))

    def span(self, heads: int) -> tuple[Array, float]:
        """Return the heads - 1 flattest directions (heads - 1, d, d), and the gap to the next: a ratio of eigenvalues."""
        d = self.slabs.shape[1]
        if integer(heads, "heads") > d * d:
            raise InputError(f"{heads} heads have more differences than Theta has entries, {d * d}")
        G = self.slabs.reshape(len(self.slabs), -1) * self.weights[:, None]
        values, vectors = np.linalg.eigh(G.T @ G)
        if heads < 2:
            return np.zeros((0, d, d)), float("inf")
        gap = float(values[heads - 1] / max(values[heads - 2], np.finfo(float).tiny))
        return vectors[:, : heads - 1].T.reshape(-1, d, d), gap

    def width(self, direction: ArrayLike, slack: float) -> float:
        """Return max - min of <direction, Theta> over the body with slabs of this half-thickness, by linear programming.

        Infinite if the body is unbounded that way, NaN if it is empty.
        """
        from scipy.optimize import linprog

        d = self.slabs.shape[1]
        g = array(direction, "direction", ("d", "d"), (d, d)).reshape(d * d)
        real(slack, "slack", least=0)
        G, S = self.slabs.reshape(-1, d * d), self.sides.reshape(-1, d * d)
        A = np.concatenate([G, -G, S])
        b = np.concatenate([self.levels + slack, slack - self.levels, self.limits + slack])
        ends = [linprog(sign * g, A_ub=A, b_ub=b, bounds=(None, None), method="highs") for sign in (1, -1)]
        if any(end.status == 2 for end in ends):
            return float("nan")
        if any(end.status != 0 for end in ends):
            return float("inf")
        return float(-ends[1].fun - ends[0].fun)


@dataclass(frozen=True)
class Sculpted:
    """What `sculpt` returns: the outcome of every phase, before any polish.

    Attributes
    ----------
    value_sum : array of shape (d, d_out)
        Phase 1, refined in phase 3: the sum of all W_i.
    body : Body
        Phases 2 and 4.
    proxy : array of shape (d, d)
        Phase 3: a point close to the affine hull of the heads.
    span : array of shape (heads - 1, d, d)
    gap : float
        Phase 5. Trust the span from 2 on, discard it below 1.5.
    layer : Layer
        Phase 6: the best heads in proxy + span.
    residual : float
        Relative, on the examples searched.
    sound : bool
        d_out >= m (k - 1): a row has as many equations as the heads have attention weights.
    """

    value_sum: Array
    body: Body
    proxy: Array
    span: Array
    gap: float
    layer: Layer
    residual: float
    sound: bool

    def draw(self, truth: Layer | None = None, slabs: int = 300) -> "Figure":
        """Draw a section of the body, in the plane of the proxy and the two flattest directions.

        Slabs are lines; the borders of half-spaces, of which there are as many as there are small attention weights, dashes.

        Parameters
        ----------
        truth : Layer, optional
            Its heads are projected to the plane beside those that were found.
        slabs : int
            At most so many lines, the heaviest, and as many borders.
        """
        from matplotlib.figure import Figure

        body, d = self.body, self.proxy.shape[0]
        integer(slabs, "slabs")
        if d < 2:
            raise InputError("a section needs d of at least 2")
        if truth is not None and (not isinstance(truth, Layer) or truth.d != d):
            raise InputError(f"truth must be a Layer on tokens of dimension {d}")
        flat = body.span(3)[0].reshape(2, d * d)
        heads = {"found": (self.layer.Theta, "o"), **({} if truth is None else {"true": (truth.Theta, "x")})}
        places = {
            name: ((Theta - self.proxy).reshape(-1, d * d) @ flat.T, mark) for name, (Theta, mark) in heads.items()
        }
        reach = 1.3 * max(float(np.abs(place).max()) for place, _ in places.values()) or 1.0
        figure = Figure(figsize=(5.2, 4.6), layout="constrained")
        axis = figure.add_subplot()
        order = np.argsort(-body.weights)[:slabs]
        _lines(axis, body.slabs[order], body.levels[order], self.proxy, flat, 4 * reach, "-")
        _lines(axis, body.sides[:slabs], body.limits[:slabs], self.proxy, flat, 4 * reach, ":")
        axis.plot(0, 0, "s", color="#555555", label="proxy")
        for (name, (place, mark)), colour in zip(places.items(), ("#D55E00", "#000000"), strict=False):
            axis.plot(
                place[:, 0], place[:, 1], mark, color=colour, markersize=9, label=f"{name} heads", fillstyle="none"
            )
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="flattest direction", ylabel="next flattest")
        axis.legend(frameon=False, fontsize=9)
        return figure


def _lines(axis: Any, normals: Array, levels: Array, origin: Array, plane: Array, reach: float, style: str) -> None:
    """Draw where <normal, Theta> = level meets a plane through `origin`."""
    G = normals.reshape(len(normals), plane.shape[1])
    for slope, level in zip(G @ plane.T, levels - G @ origin.ravel(), strict=True):
        size = float(slope @ slope)
        if size > 0:
            foot, across = slope * level / size, reach / np.sqrt(size) * np.array([-slope[1], slope[0]])
            ends = np.array([foot - across, foot + across])
            axis.plot(ends[:, 0], ends[:, 1], style, color="#0072B2", alpha=0.15, linewidth=0.8)


def sculpt(X: ArrayLike, Y: ArrayLike, heads: int, *, seed: int = 0, budget: float = np.inf) -> Sculpted:
    """Carve a body around the heads of a layer and search its flat directions.

    Parameters
    ----------
    X : array of shape (n, k, d)
    Y : array of shape (n, k, d_out)
    heads : int
    seed : int
        Of the search.
    budget : float, optional
        Seconds after which the search of phase 6 ends with the best so far.

    Examples
    --------
    >>> from attlas import layers, recovery, tokens
    >>> Theta, W = recovery.planted_layer(heads=2, d=4, seed=1, scale=3.0)
    >>> X = tokens.boolean(4000, 2, 4, seed=2)
    >>> found = recovery.sculpt(X, layers.multi_head_attention(X, Theta, W), heads=2)
    >>> bool(found.residual < 0.4)
    True
    """
    end = time.perf_counter() + real(budget, "budget", above=0) if budget != np.inf else np.inf
    data = Examples.of(X, Y)
    m = integer(heads, "heads")
    if m > data.X.shape[2] ** 2:
        raise InputError(f"{m} heads have more differences than Theta has entries, {data.X.shape[2] ** 2}")
    *_, (values, body, proxy) = rounds(data)
    span, gap = body.span(m)
    layer, residual = search(data, proxy, span, m, seed, deadline=end)
    sound = bool(data.Y.shape[2] >= m * (data.X.shape[1] - 1))
    return Sculpted(values, body, proxy, span, gap, layer, residual, sound)


def rounds(data: Examples) -> Iterator[tuple[Array, Body, Array]]:
    """Yield the sum of the values, the body and the proxy of every round: phases 1 to 4.

    A head fitted to the rows on which all agree has better values than the regression began with, and they read patterns
    better.
    """
    values = value_sum(data)
    for left in reversed(range(ROUNDS)):
        body = carve(data, values)
        proxy = body.proxy()
        yield values, body, proxy
        if left:
            values = variable_projection(body.rows, proxy[None], max_steps=20).W[0]


def value_sum(data: Examples) -> Array:
    """Phase 1: the sum of all W_i (d, d_out), by regression on the first two orders in Theta.

    y_r = xbar W_sum + sum_ace x_ra C_ce T_ace + .., with C the covariance of the tokens: the coefficient of xbar.
    """
    d = data.X.shape[2]
    size = d + d * d * (d + 1) // 2
    if 16 * size**2 > _MEMORY:
        raise InputError(
            f"sculpting regresses on {size} features at d = {d}, {16 * size**2 / 1e9:.0f} GB; other methods do without"
        )
    G, B = np.zeros((size, size)), np.zeros((size, data.Y.shape[2]))
    rows = data.Y.shape[0] * data.Y.shape[1]
    for part in data.blocks(data.queries.shape[1] * size):
        F = part.second_order()
        G += F.T @ F
        B += F.T @ part.Y.reshape(len(F), -1)
    G.flat[:: size + 1] += 1e-6 * rows
    return np.asarray(np.linalg.solve(G, B)[:d])


def carve(data: Examples, values: Array) -> Body:
    """Phases 2 and 4: read a pattern off every row, keep those on which the heads seem to agree, and make slabs of them.

    A pattern solves y_r = p X W_sum with sum p = 1; what is left over, relative to the spread of the tokens' values, scores
    the agreement. X and -X give the same slab, so each is used once.
    """
    _, k, d = data.X.shape
    V = data.X @ values  # (n, k, d_out): the tokens' values
    A = V[:, :-1] - V[:, -1:]
    left, singular, right = np.linalg.svd(A, full_matrices=False)  # A^T p = y - v_k in least squares
    conditioning = singular[:, -1] / np.maximum(singular[:, 0], np.finfo(float).tiny)
    inverse = (left / np.maximum(singular, 1e-12 * singular.max())[:, None, :]) @ right  # (n, k - 1, d_out)
    offset = data.Y - V[:, -1:]
    p = offset @ inverse.transpose(0, 2, 1)  # (n, q, k - 1)
    missed = np.linalg.norm(offset - p @ A, axis=2)
    spread = np.sqrt(((V - V.mean(1, keepdims=True)) ** 2).sum(2).mean(1))
    p = np.concatenate([p, 1 - p.sum(2, keepdims=True)], axis=2)
    score = missed / np.maximum(spread, np.finfo(float).tiny)[:, None]
    ordered = np.sort(p, axis=2)
    usable = (ordered[:, :, 0] > -_SMALL) & (ordered[:, :, -2] > _SMALL) & (conditioning[:, None] > _SMALL)
    score = np.where(usable, score, np.inf)
    order = np.argsort(score, axis=None, kind="stable")
    wanted = max(200, 6 * d * d // (k - 1))
    kept: list[tuple[int, int]] = []
    seen: set[bytes] = set()
    for place in order:
        i, r = divmod(int(place), score.shape[1])
        if len(kept) >= wanted or not np.isfinite(score[i, r]):
            break
        sign = 1.0 if data.queries[i, r, 0] >= 0 else -1.0
        key = (sign * data.queries[i, r]).tobytes() + b"".join(sorted(token.tobytes() for token in sign * data.X[i]))
        if key not in seen:
            seen.add(key)
            kept.append((i, r))
    if len(kept) < d:
        raise InputError(
            f"the heads agree on {len(kept)} rows only; sculpting needs more examples or fewer heads and tokens"
        )
    index, row = np.array(kept).T
    X, x, P = data.X[index], data.queries[index, row], np.clip(p[index, row], 1e-4, None)
    best = P.argmax(1)
    slabs, levels, weights, sides, limits = [], [], [], [], []
    for b in range(k):
        other = best != b
        directions = x[other, :, None] * (X[other, b] - X[other, best[other]])[:, None, :]
        ratio = np.log(P[other, b] / P[other, best[other]])
        thin = P[other, b] > _SMALL
        slabs.append(directions[thin])
        levels.append(ratio[thin])
        weights.append(np.sqrt(P[other, b] * P[other, best[other]])[thin])
        sides.append(directions[~thin])
        limits.append(np.log(_SMALL / P[other, best[other]])[~thin])
    rows = Examples(X, x[:, None], data.Y[index, row][:, None])
    G, c, w, H, e = (np.concatenate(parts) for parts in (slabs, levels, weights, sides, limits))
    return Body(G, c, w, H, e, rows, P, score[index, row])


def search(
    data: Examples, proxy: Array, span: Array, heads: int, seed: int, starts: int = 6, deadline: float = np.inf
) -> tuple[Layer, float]:
    """Phase 6: the best heads proxy + combinations of the span, from several starts, and their relative residual."""
    part = data.take(slice(0, _SEARCHED))
    size = float(np.linalg.norm(proxy))

    def start(number: int) -> Array:
        shares = stream(seed, "search", str(number)).standard_normal((heads, len(span))) * size
        return np.asarray(proxy + np.einsum("il,lab->iab", shares, span))

    begin = (start(number) for number in range(starts if heads > 1 else 1))
    fit = best_of(part, begin, span=span if heads > 1 else None, max_steps=40, deadline=deadline)
    return Layer(fit.Theta, fit.W), fit.residual
