"""Gradient descent on the weights of a student, from several starts at once."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, ChannelDefaults, one_layer
from attlas.aim.minimise import Problem
from attlas.errors import InputError
from attlas.inputs import array, choice, integer, real
from attlas.layers import symmetric
from attlas.numerics import Adam, Event, Progress, Solution, Status, stream

Array = NDArray[np.float64]
Loss = Literal["logits", "outputs"]
Optimiser = Literal["momentum", "adam"]
_Loss = Callable[[Array, slice], tuple[Array, Array]]

MOMENTUM = 0.9
ADAM_RATE = 0.03  # of the size of the weights
NARROW = 0.03  # a gap that descent hardly leaves unless it lacks columns
CROWDED = 0.03  # of the largest singular value: a smallest one above it is in use
_CACHE = 1 << 17  # numbers in a block of projections
_WINDOW = 50


class DescentErrors(NamedTuple):
    """Errors ||S - S_hat||^2/d of a descent: of one run (mean), of the average, and of an average over infinitely many."""

    single: float
    averaged: float
    limit: float


@dataclass(frozen=True)
class Descent(Solution[Array]):
    """What gradient descent found.

    Attributes
    ----------
    value : array of shape (d, d)
        The average of the students' S over all starts.
    singles : array of shape (inits, d, d)
        Each student's S.
    losses : array of shape (inits,)
        Final objective of each, decay included, per sample.
    history : array
        Mean loss per sample of every step (the longest run).
    gaps : array of shape (inits,)
        With decay and the loss ``logits``: the duality gap of each student as a solution of the convex problem over all
        S >= 0, over its objective (see `minimise`); else NaN. A student of enough columns closes it.
    narrow : bool
        Whether students converged, use all of their columns and yet leave a gap: too few columns for the solution's rank.
    """

    singles: Array = field(default_factory=lambda: np.empty(0), repr=False)
    losses: Array = field(default_factory=lambda: np.empty(0))
    gaps: Array = field(default_factory=lambda: np.empty(0))
    narrow: bool = False

    def mse(self, S: ArrayLike) -> DescentErrors:
        """Return the errors against the teacher S.

        With e_1 the mean error of one run and e_K that of the average of K, the average of infinitely many has
        e_1 - (e_1 - e_K) K/(K - 1), because runs are exchangeable given the data.
        """
        S = symmetric(S, self.value.shape[0])
        count, d = len(self.singles), len(S)
        single = float(np.mean([np.sum((student - S) ** 2) for student in self.singles])) / d
        averaged = float(np.sum((self.value - S) ** 2)) / d
        limit = single - (single - averaged) * count / (count - 1) if count > 1 else np.nan
        return DescentErrors(single, averaged, limit)


def descend(
    X: ArrayLike,
    y: ArrayLike,
    channel: Channel,
    rank: int,
    *,
    inits: int = 1,
    seed: int = 0,
    loss: Loss = "logits",
    optimiser: Optimiser = "momentum",
    decay: float = 0.0,
    init_scale: float = 1.0,
    tol: float = 1e-6,
    max_steps: int = 3000,
    throw: bool = True,
    progress: Progress | None = None,
) -> Descent:
    """Minimise a square loss over W, S = W W^T / sqrt(r d), by full-batch gradient descent.

    The objective is sum_mu l_mu + decay d Tr S, with l = (1/4) ||e||^2 over the T x T entries for ``logits``, e the indices
    less those that y gives (less their mean for softmax, whose common shift y does not fix), and
    l = (1/2) ||E[y | h] - y||^2 for ``outputs``. All starts share two matrix products per step.

    Parameters
    ----------
    X : array of shape (n, T, d)
    y : array of shape (n, T, T)
    channel : Channel
        For ``logits`` one that gives the indices back from y (`indices`: softmax and linear do), for ``outputs`` one that
        says its output without noise (`mean`: softmax, linear and `Custom` do), which must be smooth.
    rank : int
        r, columns of W.
    inits : int, default 1
        Starts with independent N(0, init_scale^2) entries.
    seed : int
        Of the starts, from a stream of their own.
    loss : {"logits", "outputs"}
    optimiser : {"momentum", "adam"}
        Both take the whole batch. Steps that raise the objective by a twentieth are taken back and halved.
    decay : float, default 0
        Weight decay as a multiple of d Tr S beside the sum of losses; (mu/2) ||W||^2 with mu = 2 decay sqrt(d/r). What it
        leads to is predicted by `trained` and computed by `minimise`, if r exceeds the rank of that solution; a student
        that is too narrow is warned about.
    init_scale : float, default 1
        1 is the scale of the prior.
    tol : float, default 1e-6
        Converged when the objective falls by less than this fraction over 50 steps, or to 1e-12 of its start.
    max_steps : int, default 3000
    throw : bool, default True
        Raise `ConvergenceError` if any start is not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is the mean loss per sample, the least so far.

    Examples
    --------
    >>> from attlas import aim
    >>> task = aim.sample(aim.Softmax(tokens=2), d=12, alpha=0.5, rho=0.5, seed=0)
    >>> found = aim.descend(task.X, task.y, aim.Softmax(tokens=2), rank=6, seed=1, max_steps=600, throw=False)
    >>> bool(found.mse(task.S).single < 0.01)  # above the threshold it finds the teacher
    True
    """
    known = one_layer(channel, "descend")
    X = array(X, "X", ("n", "T", "d"), (None, known.tokens, None))
    y = known.check(y)
    n, _, d = X.shape
    if len(y) != n:
        raise InputError(f"X has {n} sequences and y has {len(y)}")
    gradient = _loss(known, y, loss)
    optimiser = choice(optimiser, "optimiser", ("momentum", "adam"))
    rank, inits = integer(rank, "rank"), integer(inits, "inits")
    tol = real(tol, "tol", above=0)
    decay, scale = real(decay, "decay", least=0), real(init_scale, "init_scale", above=0)
    W = scale * stream(seed, "start").standard_normal((inits, d, rank))
    max_steps = integer(max_steps, "max_steps")
    found, losses, history, status = _descend(X, W, gradient, decay, tol, max_steps, optimiser, progress)
    singles = found @ found.transpose(0, 2, 1) / np.sqrt(rank * d)
    gaps, narrow = np.full(inits, np.nan), False
    if decay > 0 and loss == "logits":
        problem = Problem(X, y, channel, decay)
        for i, S in enumerate(singles):
            e = problem.residual(S)
            gaps[i] = problem.gap(S, e, problem.slope(e))
        singular = np.linalg.svd(found, compute_uv=False)
        crowded = bool(np.any(singular[:, -1] > CROWDED * singular[:, 0]))
        narrow = status is Status.CONVERGED and rank < d and crowded and bool(np.any(gaps > NARROW))
    result = Descent(
        singles.mean(0),
        status,
        float(losses.mean()) / n,
        len(history),
        history / n,
        singles=singles,
        losses=losses / n,
        gaps=gaps,
        narrow=narrow,
    )
    if narrow:
        warnings.warn(
            f"a student of {rank} columns is too narrow for the solution with this decay: a wider one fits better (duality"
            f" gap {gaps.max():.2g} of the objective)",
            stacklevel=2,
        )
    return result.or_raise("gradient descent") if throw else result


def _loss(channel: ChannelDefaults, y: Array, loss: str) -> _Loss:
    """Return the function from indices (n, K, T, T) of some rows to the losses (K,) and their derivatives by the indices."""
    loss = choice(loss, "loss", ("logits", "outputs"))
    T = channel.tokens

    def outputs(h: Array, rows: slice) -> tuple[Array, Array]:
        flat = h.reshape(-1, T, T)
        e = channel.mean(flat).reshape(h.shape) - y[rows, None]
        D = channel.pullback(flat, e.reshape(-1, T, T)).reshape(h.shape)
        return 0.5 * (e * e).sum((0, 2, 3)), (D + D.swapaxes(-1, -2)) / 2

    def logits(h: Array, rows: slice) -> tuple[Array, Array]:
        e = h - target[rows, None]
        if channel.centred:
            e -= e.mean((2, 3), keepdims=True)
        return 0.25 * (e * e).sum((0, 2, 3)), 0.5 * e

    if loss == "outputs":
        channel.mean(np.zeros((1, T, T)))  # says so here if there is none
        return outputs
    target = channel.indices(y)
    return logits


def _descend(
    X: Array,
    W: Array,
    loss: _Loss,
    decay: float,
    tol: float,
    max_steps: int,
    optimiser: Optimiser,
    progress: Progress | None,
) -> tuple[Array, Array, Array, Status]:
    """Descend all starts together, each with a step size of its own that is halved when it overshoots."""
    n, T, d = X.shape
    rank = W.shape[2]
    # the curvature in S is n (T^2 + T)/2 / d; in W it is that times 4 ||W||^2 / (r d)
    curvature = n * (T * T + T) / (2 * d) * 4 * (np.sqrt(d) + np.sqrt(rank)) ** 2 / (rank * d)
    rate = np.full(len(W), 1.0 / curvature if optimiser == "momentum" else ADAM_RATE * float(np.sqrt(np.mean(W * W))))
    update = _Momentum(W) if optimiser == "momentum" else Adam(W)
    best_W, best = W.copy(), np.full(len(W), np.inf)
    history: list[Array] = []
    for step in range(1, max_steps + 1):
        value, gradient = _objective(X, W, loss, decay)
        worse = ~(value <= 1.05 * best)  # also where it is not a number
        improved = value < best
        best_W[improved], best[improved] = W[improved], value[improved]
        history.append(best.copy())
        if progress is not None:
            least = float(best.mean()) / n
            progress(Event(step, max_steps, f"step {step}, loss {least:.4g} a sample", least))
        if worse.any():  # back to the best point, with half the step and no memory
            W[worse], gradient[worse] = best_W[worse], 0.0
            rate[worse] /= 2
            update.forget(worse)
        W += rate[:, None, None] * update(gradient)
        if len(history) > _WINDOW:
            before = history[-_WINDOW - 1]
            if np.all((best <= 1e-12 * history[0]) | (before - best < tol * before)):
                return best_W, best, np.array(history).mean(1), Status.CONVERGED
    status = Status.OUT_OF_STEPS if np.isfinite(best).all() else Status.DIVERGED
    return best_W, best, np.array(history).mean(1), status


class _Momentum:
    """v <- 0.9 v - gradient."""

    def __init__(self, W: Array) -> None:
        self._velocity = np.zeros_like(W)

    def __call__(self, gradient: Array) -> Array:
        self._velocity *= MOMENTUM
        self._velocity -= gradient
        return self._velocity

    def forget(self, which: NDArray[np.bool_]) -> None:
        self._velocity[which] = 0.0


def _objective(X: Array, W: Array, loss: _Loss, decay: float) -> tuple[Array, Array]:
    """Return the objective of every start and its gradient by W, with one product forth and one back for all.

    Sequences are taken in blocks whose projections stay in the cache between the two products.
    """
    (n, T, d), (count, _, rank) = X.shape, W.shape
    scale = np.sqrt(rank * d)
    stacked = W.transpose(1, 0, 2).reshape(d, count * rank)
    traces = (W * W).sum((1, 2)) / scale
    value, inner, gradient = np.zeros(count), np.zeros(count), np.zeros((d, count * rank))
    size = max(1, _CACHE // (T * count * rank))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        flat = X[rows].reshape(-1, d)
        projected = (flat @ stacked).reshape(-1, T, count, rank)
        h = _gram(projected) / (scale * np.sqrt(d))
        h -= (traces / np.sqrt(d))[:, None, None] * np.eye(T)
        with np.errstate(over="ignore", invalid="ignore"):  # an overshoot is seen in the loss and taken back
            losses, D = loss(h, rows)
        value += losses
        inner += np.einsum("nkaa->k", D)
        gradient += flat.T @ _combine(D, projected).reshape(len(flat), -1)
    moved = gradient.reshape(d, count, rank).transpose(1, 0, 2)
    moved = 2 / scale * ((moved - inner[:, None, None] * W) / np.sqrt(d) + decay * d * W)
    return value + decay * d * traces, moved


def _gram(projected: Array) -> Array:
    """Return p_a . p_b of every sequence and start, (n, K, T, T)."""
    n, T, count, _ = projected.shape
    h = np.empty((n, count, T, T))
    for a in range(T):
        for b in range(a, T):
            h[..., a, b] = h[..., b, a] = np.einsum("nkr,nkr->nk", projected[:, a], projected[:, b])
    return h


def _combine(D: Array, projected: Array) -> Array:
    """Return sum_b D_ab p_b, in the layout of `projected`."""
    T = projected.shape[1]
    result, scratch = np.empty_like(projected), np.empty_like(projected[:, 0])
    for a in range(T):
        np.multiply(projected[:, 0], D[:, :, a, 0, None], out=result[:, a])
        for b in range(1, T):
            np.multiply(projected[:, b], D[:, :, a, b, None], out=scratch)
            result[:, a] += scratch
    return result
