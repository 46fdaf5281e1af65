"""Recover a layer from examples, with a certificate from examples that were held out."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import stream
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Found, Layer
from attlas.recovery.sculpt import Sculpted, sculpt
from attlas.recovery.search import gradient_search, random_start
from attlas.recovery.variable_projection import Fit, variable_projection

Array = NDArray[np.float64]

METHODS = ("auto", "varpro", "sculpt", "lbfgs", "adam")
EXACT = 1e-6  # a held-out residual below this is no accident
_DONE = 1e-9  # and below this nothing more is to be gained by another start
_HELD_OUT = 0.2
_FLOOR = 1.25  # held-out over training residual, beyond which a fit has followed its noise
_LINEAR = 0.95  # of the residual of the best linear function of the mean token, which every layer must beat
_AGREE = 0.1  # of the held-out residual: two starts that differ by less found the same
_STRUCTURE = 0.02  # of the residual: noise does not depend on the tokens that much
_LOOKED_AT = 5000  # sequences, for what needs no more
_STEP = 0.1  # by how much of itself the held-out residual must fall to pay for another head


@dataclass(frozen=True)
class Certificate:
    """Why a result may be believed, or not.

    The start that does best on held-out examples is returned, so `held_out` is a little optimistic where starts differ.

    Attributes
    ----------
    held_out, training : float
        Relative residuals |F(X) - Y|/|Y|.
    noise : float
        What the residual looks like as noise in Y, relative: the held-out residual if it is that of training, else NaN.
    agreement : float
        Relative difference of the outputs, on the held-out examples, of the two best starts; NaN if only one was made.
    gap : float
        Of the span that was sculpted, NaN if nothing was: trust the span from 2 on.
    sound : bool
        d_out >= m (k - 1): a row of outputs has as many equations as attention weights. Necessary for sculpting, not for
        the other methods.
    source : str
        Where the search that won began: "random" or "sculpted", and the method if it is one to compare with.
    starts, seconds : int, float
    met : bool
    reason : str
        One sentence.
    """

    held_out: float
    training: float
    noise: float
    agreement: float
    gap: float
    sound: bool
    source: str
    starts: int
    seconds: float
    met: bool
    reason: str


@dataclass(frozen=True)
class Recovered(Found):
    """What `learn` returns.

    Attributes
    ----------
    layer : Layer
    certificate : Certificate
    trace : tuple of (heads, held-out residual)
        One pair per number of heads tried.
    tokens : int
        In a sequence: k.
    """

    certificate: Certificate
    trace: tuple[tuple[int, float], ...]
    tokens: int

    def canonical(self) -> Layer:
        """Return the canonical layer of the same function, on sequences of the length it was learned from."""
        return self.layer.canonical(k=2 if self.tokens == 2 else None)


def learn(
    X: ArrayLike,
    Y: ArrayLike,
    heads: int | None = None,
    *,
    method: Literal["auto", "varpro", "sculpt", "lbfgs", "adam"] = "auto",
    seed: int = 0,
    budget: float = 60.0,
    max_starts: int = 20,
    max_heads: int = 12,
    progress: Callable[[str], None] | None = None,
) -> Recovered:
    """Recover Theta and W of F(X) = sum_i softmax(X Theta_i X^T) X W_i from examples.

    Parameters
    ----------
    X : array of shape (n, k, d)
        Tokens of any law; at least two to a sequence.
    Y : array of shape (n, k, d_out), (n, d_out) or (n,)
        Outputs of every token, or of the last one only.
    heads : int, optional
        If not given, heads are added until the residual on held-out examples stops falling.
    method : {"auto", "varpro", "sculpt", "lbfgs", "adam"}
        "auto" is "varpro": variable projection from random starts. "sculpt" takes its first start from `sculpt`, and random
        ones if that does not do; it has shown no higher rate of success. The others are there to compare with.
    seed : int
    budget : float, default 60
        Seconds, for each number of heads.
    max_starts, max_heads : int
    progress : callable, optional
        Called with a line of text after every start.

    Returns
    -------
    Recovered
        With a certificate. Where it is not met the parameters are the best guess, and it says why.

    Examples
    --------
    >>> from attlas import layers, recovery, tokens
    >>> Theta, W = recovery.planted_layer(heads=2, d=4, seed=1)
    >>> X = tokens.boolean(300, 4, 4, seed=2)
    >>> found = recovery.learn(X, layers.multi_head_attention(X, Theta, W), heads=2)
    >>> found.certificate.met, recovery.same_function(found.layer, recovery.Layer(Theta, W))
    (True, True)

    References
    ----------
    chen2024provably for the problem; golub1973differentiation for the method.
    """
    data = Examples.of(X, Y)
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    seconds = real(budget, "budget", above=0)
    integer(max_starts, "max_starts")
    integer(max_heads, "max_heads")
    train, held_out = data.split(_HELD_OUT, stream(seed, "held out"))
    kind = "varpro" if method == "auto" else method

    def search(m: int, starts: int = max_starts) -> Recovered:
        return _search(train, held_out, m, kind, seed, seconds, starts, progress)

    if heads is not None:
        found = search(integer(heads, "heads"))
        if not found.certificate.met or found.certificate.held_out <= EXACT:
            return found
        more = search(heads + 1, min(3, max_starts))  # a layer of more heads misses by less; noise does not
        if more.certificate.held_out > (1 - _STEP) * found.certificate.held_out:
            return found
        reason = (
            f"with {heads + 1} heads the residual falls from {found.certificate.held_out:.1e} to"
            f" {more.certificate.held_out:.1e}: {heads} are too few"
        )
        return replace(found, certificate=replace(found.certificate, met=False, noise=float("nan"), reason=reason))
    best, trace = search(1), []
    trace.append((1, best.certificate.held_out))
    for m in range(2, integer(max_heads, "max_heads") + 1):
        if best.certificate.held_out <= EXACT:
            break
        more = search(m, min(3, max_starts) if best.certificate.met else max_starts)  # what more could fit is noise
        trace.append((m, more.certificate.held_out))
        least = 1 - _STEP if best.certificate.met else 1.0  # what is known not to be noise is worth any fall
        if more.certificate.held_out > least * best.certificate.held_out:
            break
        best = more
    return replace(best, trace=tuple(trace))


class _Run(NamedTuple):
    """A search: its residual on held-out examples, where it ended, where it began."""

    residual: float
    fit: Fit
    source: str


def _search(
    train: Examples,
    held_out: Examples,
    heads: int,
    method: str,
    seed: int,
    budget: float,
    max_starts: int,
    progress: Callable[[str], None] | None,
) -> Recovered:
    """Start again and again, until the fit is exact, two starts agree, or the budget is spent."""
    began = time.perf_counter()
    end = began + budget
    d = train.X.shape[2]
    runs: list[_Run] = []
    body = _sculpted(train, heads, seed, budget / 2) if method == "sculpt" else None
    for number in range(max_starts):
        rng = stream(seed, "start", str(heads), str(number))
        if method in ("varpro", "sculpt"):
            carved = body is not None and number == 0
            first = body.layer.Theta if body is not None and carved else random_start(heads, d, rng)
            fit, source = variable_projection(train, first, deadline=end), "sculpted" if carved else "random"
        else:
            left = max(end - time.perf_counter(), 1e-3)
            fit = gradient_search(
                train, heads, "lbfgs" if method == "lbfgs" else "adam", rng, left / 2 if not runs else left
            )
            source = f"random, {method}"
        runs.append(_Run(held_out.residual(fit.Theta, fit.W), fit, source))
        if progress is not None:
            progress(
                f"{heads} heads, start {number + 1}: held-out residual {runs[-1].residual:.2e} after {fit.steps} steps"
            )
        runs.sort(key=lambda run: run.residual)
        if runs[0].residual <= _DONE or time.perf_counter() > end or _settled(held_out, runs):
            break
    layer = Layer(runs[0].fit.Theta, runs[0].fit.W)
    gap = float("nan") if body is None else body.gap
    return Recovered(
        layer,
        _certify(train, held_out, runs, gap, time.perf_counter() - began),
        ((heads, runs[0].residual),),
        train.X.shape[1],
    )


def _sculpted(train: Examples, heads: int, seed: int, budget: float) -> Sculpted | None:
    """Return a sculpted start, or None where the heads agree too rarely."""
    if train.Y.shape[1] != train.X.shape[1]:
        raise InputError("sculpting needs the outputs of all tokens, Y of shape (n, k, d_out)")
    try:
        return sculpt(train.X, train.Y, heads, seed=seed, budget=budget)
    except InputError:
        return None


def _settled(held_out: Examples, runs: list[_Run]) -> bool:
    """Return whether the two best runs found the same function: noise is then all that is left."""
    if len(runs) < 2 or runs[1].residual > 1.01 * runs[0].residual:
        return False
    return _apart(held_out, runs) < _AGREE * runs[0].residual


def _apart(held_out: Examples, runs: list[_Run]) -> float:
    """Return the relative difference, on held-out examples, of the outputs of the two best runs."""
    first, second = (held_out.output(run.fit.Theta, run.fit.W) for run in runs[:2])
    return float(np.linalg.norm(first - second) / max(np.linalg.norm(first), np.finfo(float).tiny))


def _linear(train: Examples, held_out: Examples) -> float:
    """Return the held-out residual of the best linear function of the mean token: what attention to nothing gives."""
    W = np.linalg.lstsq(
        np.repeat(train.X.mean(1), train.Y.shape[1], axis=0), train.Y.reshape(-1, train.Y.shape[2]), rcond=None
    )[0]
    found = np.repeat(held_out.X.mean(1), held_out.Y.shape[1], axis=0) @ W
    return float(np.linalg.norm(found - held_out.Y.reshape(found.shape)) / np.linalg.norm(held_out.Y))


def _explained(train: Examples, fresh: Examples, fit: Fit) -> float:
    """Return which share of the held-out residual is predicted by the tokens, to second order, from that in training.

    Of noise nothing is; of heads that are missing, or of another function, something.
    """

    def features(data: Examples) -> Array:
        return np.concatenate([data.queries.reshape(-1, data.queries.shape[2]), data.second_order()], axis=1)

    def missed(data: Examples) -> Array:
        return np.asarray((data.Y - data.output(fit.Theta, fit.W)).reshape(-1, data.Y.shape[2]))

    some = train.take(slice(0, _LOOKED_AT))
    F, rest = features(some), features(fresh)
    most = max(2 * train.X.shape[2], len(F) // 8)  # columns, lest the regression follow the noise
    if F.shape[1] > most:
        columns = stream(0, "columns").permutation(F.shape[1])[:most]
        F, rest = F[:, columns], rest[:, columns]
    G = F.T @ F
    G.flat[:: len(G) + 1] += 1e-6 * float(np.trace(G)) / len(G)
    left = missed(fresh)
    after = left - rest @ np.linalg.solve(G, F.T @ missed(some))
    return 1 - float(np.sum(after**2)) / max(float(np.sum(left**2)), np.finfo(float).tiny)


def _closer(train: Examples, fit: Fit) -> float:
    """Return the training residual after a few steps of variable projection: gradient methods can stall far from the end."""
    return variable_projection(train, fit.Theta, max_steps=20).residual


def _unseen(data: Examples) -> str:
    """Return what to say if the tokens do not show all of Theta: x_r^T Theta (x_b - x_c) is all that they show."""
    d = data.X.shape[2]
    some = data.X[:_LOOKED_AT]
    rows = np.linalg.matrix_rank(data.queries[:_LOOKED_AT].reshape(-1, d))
    columns = np.linalg.matrix_rank((some - some[:, :1]).reshape(-1, d))
    if min(rows, columns) == d:
        return ""
    return f"; but these tokens show {rows} x {columns} of the {d} x {d} numbers of Theta: on others the function may differ"


def _certify(
    train: Examples,
    fresh: Examples,
    runs: list[_Run],
    gap: float,
    seconds: float,
) -> Certificate:
    held_out, fit, source = runs[0]
    heads, d = fit.Theta.shape[:2]
    linear = _linear(train, fresh)
    k, out = train.X.shape[1], train.Y.shape[2]
    agreement = _apart(fresh, runs) if len(runs) > 1 else float("nan")
    level = held_out <= _FLOOR * fit.residual
    noise = held_out if level and held_out > EXACT else float("nan")
    unknowns = heads * (d**2 + d * out)
    if train.Y.size < unknowns:
        met = False
        reason = f"{train.Y.size} outputs cannot determine the {unknowns} numbers of {heads} heads"
    elif held_out <= EXACT and fit.residual <= EXACT:
        met, reason = True, f"the held-out residual is {held_out:.1e}"
    elif held_out > _LINEAR * min(1.0, linear):
        met = False
        reason = (
            f"the residual is {held_out:.2f}, and {linear:.2f} for a linear function of the mean token: nothing learned"
        )
    elif level and (explained := _explained(train, fresh, fit)) > _STRUCTURE:
        met, noise = False, float("nan")
        reason = (
            f"the residual is {held_out:.1e}, and the tokens explain {explained:.0%} of it: it is not noise; more heads or"
            " more starts may help, or it is no such layer"
        )
    elif level and source != "random" and (closer := _closer(train, fit)) < (1 - _STEP) * fit.residual:
        met, noise = False, float("nan")
        reason = (
            f"the residual is {held_out:.1e}, but some steps of variable projection from there bring it to {closer:.1e}:"
            " the search had not ended"
        )
    elif level and agreement < _AGREE * held_out:
        met = True
        reason = (
            f"the residual is {held_out:.1e} on held-out examples and {fit.residual:.1e} in training, as noise would be,"
            f" and two starts found the same function to {agreement:.1e}"
        )
    elif not level:
        met = False
        reason = (
            f"the residual is {held_out:.1e} on held-out examples but {fit.residual:.1e} in training: the fit does not carry"
            " over; more examples, fewer heads or more starts may help"
        )
    else:
        met = False
        other = "no second start was made" if len(runs) < 2 else f"the two best starts differ by {agreement:.1e}"
        reason = f"the residual stays at {held_out:.1e} and {other}: not the layer, or not found within the budget"
    sound = bool(out >= heads * (k - 1))
    if met:
        reason += _unseen(train)
    return Certificate(held_out, fit.residual, noise, agreement, gap, sound, source, len(runs), seconds, met, reason)
