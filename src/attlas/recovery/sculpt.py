"""Sculpting: a convex body around the parameters, carved by the examples on which all heads agree.

Where the attention of all heads is the same pattern p, the output is p X W_sum, so that p can be read off and every head
obeys x_r^T Theta_i (x_b - x_c) = log p_b/p_c: a slab. Enough slabs leave a body around the affine hull of the heads; its
flattest directions are the differences Theta_i - Theta_j, and in that span the heads are searched. Six phases.

References
----------
chen2024provably, whose geometry this follows; thresholds, the order of phases 3 and 4 and the search are ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import integer
from attlas.numerics import Event, Progress, stream
from attlas.recovery.body import Body
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.variable_projection import TOL, best_of, variable_projection

Array = NDArray[np.float64]

ROUNDS = 5  # of reading patterns and fitting one head to them
_SMALL = 0.05  # an attention weight below this gives a half-space, not a slab
_SEARCHED = 600  # examples used in the search
_MEMORY = 4e9  # bytes for the regression of phase 1


@dataclass(frozen=True, kw_only=True)
class Sculpted(Fit):
    """What `sculpt` returns: the outcome of every phase, before any polish.

    Attributes
    ----------
    value, layer : Layer
        Phase 6: the best heads in proxy + span.
    status, residual, steps, history
        Of that search: how it ended, its relative residual on the examples searched, the steps of all starts, and the
        residual at the end of each.
    value_sum : array of shape (d, d_out)
        Phase 1, refined in phase 3: the sum of all W_i.
    body : Body
        Phases 2 and 4.
    proxy : array of shape (d, d)
        Phase 3: a point close to the affine hull of the heads.
    span : array of shape (heads - 1, d, d)
    gap : float
        Phase 5. Trust the span from 2 on.
    sound : bool
        d_out >= m (k - 1): a row has as many equations as the heads have attention weights.
    """

    value_sum: Array
    body: Body
    proxy: Array
    span: Array
    gap: float
    sound: bool


def sculpt(
    X: ArrayLike,
    Y: ArrayLike,
    heads: int,
    *,
    seed: int = 0,
    max_starts: int = 6,
    tol: float = TOL,
    max_steps: int = 40,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Sculpted:
    """Carve a body around the heads of a layer and search its flat directions.

    Parameters
    ----------
    X : array of shape (n, k, d)
    Y : array of shape (n, k, d_out)
    heads : int
    seed : int
        Of the search.
    max_starts, tol, max_steps : int, float, int
        Of the search in phase 6: starts, the relative residual that ends it, steps from each start.
    max_seconds : float, optional
        Stop the search by the clock, too; the result then depends on the machine, and its status is out of time.
    throw : bool, default False
        Raise `ConvergenceError` if the search did not converge.
    progress : callable, optional
        Called with an `Event` after every round of carving and after the search.

    Examples
    --------
    >>> from attlas import layers, recovery, tokens
    >>> Theta, W = recovery.planted_layer(heads=2, d=6, seed=1, scale=3.0)
    >>> X = tokens.boolean(4000, 2, 6, seed=2)
    >>> found = recovery.sculpt(X, layers.multi_head_attention(X, Theta, W), heads=2)
    >>> bool(found.residual < 0.4)
    True
    """
    clock = Clock(max_seconds)
    data = Examples.of(X, Y)
    m = integer(heads, "heads")
    if m > data.X.shape[2] ** 2:
        raise InputError(f"{m} heads have more differences than Theta has entries, {data.X.shape[2] ** 2}")
    tell = progress or (lambda _: None)
    for number, carved in enumerate(rounds(data), 1):
        values, body, proxy = carved
        tell(Event(number, ROUNDS + 1, f"carved, round {number} of {ROUNDS}: {len(body.slabs)} slabs"))
    span, gap = body.span(m)
    fit = search(data, proxy, span, m, seed, max_starts, tol=tol, max_steps=max_steps, max_seconds=clock.left)
    tell(Event(ROUNDS + 1, ROUNDS + 1, f"searched the span: residual {fit.residual:.2e}", fit.residual))
    found = Sculpted(
        fit.value,
        fit.status,
        fit.residual,
        fit.steps,
        fit.history,
        value_sum=values,
        body=body,
        proxy=proxy,
        span=span,
        gap=gap,
        sound=bool(data.Y.shape[2] >= m * (data.X.shape[1] - 1)),
    )
    return found.or_raise("the search of the sculpted span") if throw else found


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
    data: Examples,
    proxy: Array,
    span: Array,
    heads: int,
    seed: int,
    max_starts: int = 6,
    *,
    tol: float = TOL,
    max_steps: int = 40,
    max_seconds: float | None = None,
) -> Fit:
    """Phase 6: the best heads proxy + combinations of the span, from several starts."""
    part = data.take(slice(0, _SEARCHED))
    size = float(np.linalg.norm(proxy))

    def start(number: int) -> Array:
        shares = stream(seed, "search", str(number)).standard_normal((heads, len(span))) * size
        return np.asarray(proxy + np.einsum("il,lab->iab", shares, span))

    begin = (start(number) for number in range(integer(max_starts, "max_starts") if heads > 1 else 1))
    ways = span if heads > 1 else None
    return best_of(part, begin, span=ways, tol=tol, max_steps=max_steps, max_seconds=max_seconds)
