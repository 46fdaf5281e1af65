"""Recover a layer by asking: an oracle that gives the last token's output for any sequence one cares to send.

One head: f(X) = sum_i softmax_i(x_N^T Theta x_i) x_i W. A single token betrays W: f(e_j) = W_j. Two tokens [q + t v; q] give
f = q W + sigma(t q^T Theta v) t v W, so that the share of v W in the answer is a logistic function of one number of Theta.
Several heads: `isolate`, or ordinary queries and variable projection.

References
----------
bhattamishra2026provably for the problem; the choice of directions and of their size is ours.
"""

import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import stream
from attlas.recovery.copies import learn_from_copies
from attlas.recovery.examples import Examples
from attlas.recovery.isolate import LONG, LONGER, NOISE, isolate
from attlas.recovery.layer import Found, Layer
from attlas.recovery.learn import EXACT
from attlas.recovery.oracle import Counted, Oracle
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import Fit, best_of, variable_projection

Array = NDArray[np.float64]

_CERTIFICATE = 12  # fresh queries
_SATURATED = 12.0  # a logit beyond this is measured again with a shorter step
_LENGTH = 4  # tokens of an ordinary query
_STARTS = 20  # of a fit to them
_LARGEST = 4.0  # of their entries
_MOST_COPIES = 6  # heads, all orders of which are tried
_MEASURED = 1e-4  # noise that is believed without being told
_POLISHED = 1e-9  # a certificate below this leaves nothing to polish
_POLISH = 2.0  # equations per unknown, of the queries to polish with


@dataclass(frozen=True)
class Probed(Found):
    """What `learn_from_queries` returns.

    Attributes
    ----------
    layer : Layer
    queries : int
        Used to learn; those of the certificate are counted apart.
    certificate : float
        Relative error of the layer on twelve fresh queries, standard normal tokens.
    met : bool
    reason : str
    """

    queries: int
    certificate: float
    met: bool
    reason: str


def learn_from_queries(
    oracle: Oracle,
    d: int,
    heads: int | None = 1,
    *,
    rank: int | None = None,
    method: Literal["auto", "isolate", "ordinary", "copies"] = "auto",
    noise: float = 0.0,
    largest: float | None = None,
    repeats: int = 1,
    step: float = 1.0,
    seed: int = 0,
    ratio: float = 4.0,
    max_heads: int = 8,
    budget: float = 60.0,
) -> Probed:
    """Recover a layer from an oracle of its last token's output.

    Parameters
    ----------
    oracle : callable
        ``oracle(X)`` with X (k, d), any k >= 1, returns (d_out,) or a number.
    d : int
        Dimension of a token.
    heads : int, optional
        One head is recovered in closed form from d^2 + d queries. If not given, their number is found.
    rank : int, optional
        Of Theta, for one head: 2 rank d + d queries.
    method : {"auto", "isolate", "ordinary", "copies"}
        For several heads. "isolate" saturates all heads but one, about H d^2 + 4 H d + 22 H queries with tokens up to 1e8,
        or 1e11; it finds the number of heads and needs d >= 2; where noise leaves it inexact, ordinary queries polish what
        it found. "ordinary" fits standard normal tokens, `ratio` equations per unknown, by variable projection; without a
        number of heads it adds them until fresh queries are met. "auto" isolates if noise is at most 5e-5 and tokens may be
        that large, and falls back to ordinary queries if its certificate is not met. "copies" is the literature's way,
        rational interpolation over copies of a token, for two to six heads whose number is given and an oracle without
        noise; it is there to compare with, as it loses its digits with every head.
    noise : float, default 0
        Of the oracle, relative to its outputs, if it has any. Logits are then kept where it does not drown them, and the
        certificate is held against it.
    largest : float, optional
        What entries of tokens may be, at least 4; anything, if not given. Isolation needs 2e8, and 2e11 for heads with
        entries of Theta below about 0.01.
    repeats : int, default 1
        Ask every query so often and average, against noise.
    step : float, default 1
        Length t of the steps [q + t v; q]. Logits beyond 12, or beyond what the noise allows, are asked again with a
        shorter one.
    seed : int
    ratio : float, default 4
    max_heads : int, default 8
    budget : float, default 60
        Seconds for fits of ordinary queries; the best so far is then returned, with its certificate.

    Returns
    -------
    Probed
        With a certificate from fresh queries.

    Examples
    --------
    >>> from attlas import layers, recovery
    >>> Theta, W = recovery.planted_layer(heads=1, d=5, seed=0)
    >>> oracle = lambda X: layers.multi_head_attention(X[None], Theta, W)[0, -1]
    >>> found = recovery.learn_from_queries(oracle, d=5)
    >>> found.queries, bool(abs(found.Theta - Theta).max() < 1e-12)
    (30, True)
    """
    d = integer(d, "d")
    ask = Counted(oracle, d, integer(repeats, "repeats"))
    noise = real(noise, "noise", least=0) / np.sqrt(repeats)
    real(step, "step", above=0)
    real(ratio, "ratio", least=1)
    _check_choices(d, heads, rank, method, noise, largest)
    integer(max_heads, "max_heads")
    if largest is not None and 1 + step > largest:
        raise InputError(
            f"a step of {step:g} asks for entries of {1 + step:g}; largest = {largest:g} does not allow them"
        )
    end = time.perf_counter() + real(budget, "budget", above=0)
    if heads == 1:
        layer = _one_head(ask, d, rank, step, noise, seed)
        return _certified(ask, layer, 30 * noise, seed)  # at large logits a head costs 5 to 50 times the noise
    if method == "copies":
        copied = learn_from_copies(ask, d, integer(heads, "heads"), seed)
        if copied is None:
            raise InputError("the logits of some copies came out complex; method='isolate' or 'ordinary' may do better")
        return _certified(ask, copied, 0.0, seed)
    lengths = tuple(length for length in (LONG, LONGER) if largest is None or largest >= 2 * length)
    long = d >= 2 and lengths and noise <= NOISE
    if method == "isolate" and not long:
        raise InputError(f"isolating heads needs d >= 2, tokens with entries up to 2e8 and noise of at most {NOISE:g}")
    isolated = _isolated(ask, d, noise, lengths, seed) if long and method != "ordinary" else None
    if method == "isolate" or (isolated is not None and isolated.met):
        if isolated is None:
            raise InputError("no attempt separated the heads; method='ordinary' may")
        return isolated
    tried = [] if isolated is None else [isolated]
    for m in [heads] if heads is not None else range(1, max_heads + 1):
        fit = _ordinary(ask, d, m, ratio, noise, seed, end)
        tried.append(_certified(ask, Layer(fit.Theta, fit.W), 4 * noise, seed))
        if tried[-1].met or time.perf_counter() > end:
            break
    return min(tried, key=lambda found: found.certificate)


def _check_choices(
    d: int, heads: int | None, rank: int | None, method: str, noise: float, largest: float | None
) -> None:
    if rank is not None:
        if heads != 1:
            raise InputError("rank is for one head; leave it out for several")
        if integer(rank, "rank") > d:
            raise InputError(f"rank must be at most d = {d}; got {rank}")
    if heads is not None:
        integer(heads, "heads")
    if method not in ("auto", "isolate", "ordinary", "copies"):
        raise InputError(f"method must be auto, isolate, ordinary or copies; got {method!r}")
    if method == "copies" and (heads is None or not 2 <= heads <= _MOST_COPIES or noise > 0):
        raise InputError(f"copies needs the number of heads, from 2 to {_MOST_COPIES}, and an oracle without noise")
    if largest is not None and real(largest, "largest", above=0) < _LARGEST:
        raise InputError(f"queries have entries up to {_LARGEST:g}; largest = {largest:g} does not allow them")


def _isolated(ask: Counted, d: int, noise: float, lengths: tuple[float, ...], seed: int) -> Probed | None:
    """Return the first of three isolated layers that fresh queries bear out, polished, or the best of them."""
    best = None
    for layer, level in islice(isolate(ask, d, seed, noise, lengths), 3):
        found = _certified(ask, layer, 10 * noise, seed)
        if _POLISHED < found.certificate < 1:
            data = _answered(ask, d, layer.heads, _POLISH, stream(seed, "polish"))
            fit = variable_projection(data, layer.Theta)
            # noise that was measured counts as told, up to where it could hide what is missing
            better = _certified(ask, Layer(fit.Theta, fit.W), 4 * max(noise, min(level, _MEASURED)), seed)
            found = better if better.certificate < found.certificate else replace(found, queries=better.queries)
        if best is None or found.certificate < best.certificate:
            best = found
        if found.met:
            break
    return best


def _ordinary_tokens(rng: np.random.Generator, n: int, d: int) -> Array:
    return np.clip(rng.standard_normal((n, _LENGTH, d)), -_LARGEST, _LARGEST)


def _one_head(ask: Counted, d: int, rank: int | None, step: float, noise: float, seed: int) -> Layer:
    largest = min(_SATURATED, max(float(np.log(0.05 / noise)), 1.0)) if noise > 0 else _SATURATED

    def logits(queries: Array, directions: Array) -> Array:
        return np.array([[_logit(ask, q, v, W, step, largest) for v in directions] for q in queries])

    W = np.array([ask(row[None]) for row in np.eye(d)])
    if np.linalg.norm(W) == 0:
        raise InputError("the oracle's output is zero for every single token: W = 0, and Theta cannot be seen")
    directions = _equal_overlap(W)
    if rank is None:
        measured = logits(np.eye(d), directions)
        return Layer((measured @ directions)[None], W[None])
    # Theta = (Theta V)(Q Theta V)^+ (Q Theta), for random V of `rank` columns and Q of `rank` rows
    rng = stream(seed, "sketch")
    V = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    Q = np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    right = logits(np.eye(d), V.T)
    left = logits(Q, directions) @ directions
    return Layer((right @ np.linalg.pinv(Q @ right) @ left)[None], W[None])


def _logit(ask: Counted, q: Array, v: Array, W: Array, step: float, largest: float) -> float:
    """Return q^T Theta v, from the share of v W in the answer; a saturated one is asked again with a shorter step."""
    value = v @ W
    t = step
    for _ in range(60):
        answer = ask(np.array([q + t * v, q])) - q @ W
        share = float(answer @ value) / (t * float(value @ value))
        if 0 < share < 1 and abs(np.log(share / (1 - share))) < largest:
            return float(np.log(share / (1 - share)) / t)
        t /= 4
    return 0.0  # noise drowns even the shortest step: the certificate will tell


def _equal_overlap(W: Array) -> Array:
    """Return an orthonormal basis (rows) whose every member has the same overlap with the top direction u of W, so v W != 0.

    The Householder reflection that takes (1, .., 1)/sqrt(d) to u, applied to the unit vectors.
    """
    d = len(W)
    u = np.linalg.svd(W)[0][:, 0]
    even = np.ones(d) / np.sqrt(d)
    if u @ even < 0:
        u = -u
    normal = even - u
    size = float(normal @ normal)
    return np.eye(d) - (2 / size * np.outer(normal, normal) if size > 1e-20 else 0)


def _answered(ask: Counted, d: int, heads: int, ratio: float, rng: np.random.Generator) -> Examples:
    """Ask ordinary queries, so many that there are `ratio` equations per unknown of this many heads."""
    outputs = ask.outputs or len(ask(_ordinary_tokens(rng, 1, d)[0]))
    X = _ordinary_tokens(rng, int(np.ceil(ratio * heads * (d * d + d * outputs) / outputs)), d)
    return Examples.of(X, np.array([ask(x) for x in X]))


def _ordinary(ask: Counted, d: int, heads: int, ratio: float, noise: float, seed: int, deadline: float) -> Fit:
    """Fit a layer of this many heads to ordinary queries, from several random starts."""
    data = _answered(ask, d, heads, ratio, stream(seed, "queries", str(heads)))
    begin = (random_start(heads, d, stream(seed, "start", str(heads), str(number))) for number in range(_STARTS))
    return best_of(data, begin, done=max(1e-10, 2 * noise), deadline=deadline)


def _certified(ask: Counted, layer: Layer, allowed: float, seed: int) -> Probed:
    used = ask.queries - ask.checks
    rng = stream(seed, "certificate", str(layer.heads))
    X = _ordinary_tokens(rng, _CERTIFICATE, layer.d)
    answers = np.array([ask(x) for x in X])
    ask.checks = ask.queries - used
    size = float(np.linalg.norm(answers))
    error = float(np.linalg.norm(layer(X)[:, -1] - answers)) / (size if size > 0 else 1.0)
    goal = max(EXACT, min(allowed, 0.1))  # beyond that a certificate would certify anything
    met = bool(error <= goal)
    reason = f"{_CERTIFICATE} fresh queries are answered to {error:.1e}" + (
        "" if met else f", not {goal:g}: more heads, a noisier oracle, or not found"
    )
    return Probed(layer, used, error, met, reason)
