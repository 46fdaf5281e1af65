"""Recover a layer by asking: an oracle that gives the last token's output for any sequence one cares to send.

One head is found in closed form (`one_head`), several by `isolate`, or from ordinary queries and variable projection.
"""

from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import Progress, Status, stream
from attlas.recovery.attempts import Attempt, Attempts
from attlas.recovery.certificate import EXACT, Certificate, Recovery
from attlas.recovery.clock import Clock
from attlas.recovery.copies import learn_from_copies
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.isolate import LONG, LONGER, NOISE, isolate
from attlas.recovery.layer import Layer
from attlas.recovery.one_head import one_head
from attlas.recovery.oracle import CountingOracle, Oracle
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import best_of, variable_projection

Array = NDArray[np.float64]

_CERTIFICATE = 12  # fresh queries
_LENGTH = 4  # tokens of an ordinary query
_LARGEST = 4.0  # of their entries
_MOST_COPIES = 6  # heads, all orders of which are tried
_ISOLATED = 3  # attempts that separated the heads, to look at
_MEASURED = 1e-4  # noise that is believed without being told
_ROUNDING = 1e-12  # noise below this is none
_POLISHED = 1e-9  # a residual below this leaves nothing to polish
_POLISH = 2.0  # equations per unknown, of the queries to polish with


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
    max_starts: int = 20,
    max_steps: int = 100,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Recovery:
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
        noise; it is a baseline, as it loses its digits with every head.
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
        Of the queries and of the random starts. The same seed and answers give the same layer on every machine, busy or
        idle, unless `max_seconds` is given.
    ratio : float, default 4
    max_heads : int, default 8
    max_starts, max_steps : int, default 20 and 100
        Of a fit to ordinary queries: random starts, and steps from each.
    max_seconds : float, optional
        Stop such fits by the clock, too, with the best so far.
    throw : bool, default False
        Raise `ConvergenceError` if the certificate is not met.
    progress : callable, optional
        Called with an `Event` after every start of a fit and after every other way that was tried.

    Returns
    -------
    Recovery
        With a certificate from fresh queries. Where it is not met the parameters are the best guess, and it says why.

    Examples
    --------
    >>> from attlas import layers, recovery
    >>> Theta, W = recovery.planted_layer(heads=1, d=5, seed=0)
    >>> oracle = lambda X: layers.multi_head_attention(X[None], Theta, W)[0, -1]
    >>> found = recovery.learn_from_queries(oracle, d=5)
    >>> found.certificate.queries, bool(abs(found.Theta - Theta).max() < 1e-12)
    (30, True)
    """
    d = integer(d, "d")
    ask = CountingOracle(oracle, d, integer(repeats, "repeats"))
    noise = real(noise, "noise", least=0) / np.sqrt(repeats)
    real(step, "step", above=0)
    real(ratio, "ratio", least=1)
    _check_choices(d, heads, rank, method, noise, largest)
    if largest is not None and 1 + step > largest:
        raise InputError(
            f"a step of {step:g} asks for entries of {1 + step:g}; largest = {largest:g} does not allow them"
        )
    lengths = tuple(length for length in (LONG, LONGER) if largest is None or largest >= 2 * length)
    long = bool(d >= 2 and lengths and noise <= NOISE)
    if method == "isolate" and heads != 1 and not long:
        raise InputError(f"isolating heads needs d >= 2, tokens with entries up to 2e8 and noise of at most {NOISE:g}")
    counts = range(1, integer(max_heads, "max_heads") + 1) if heads is None else [heads]
    starts = integer(max_starts, "max_starts")
    attempts = Attempts(Clock(max_seconds), progress, 2 * _ISOLATED + len(counts) * (starts + 1))
    probe = _Probe(ask, d, noise, seed, attempts)
    if heads == 1:
        # at large logits a head costs 5 to 50 times the noise
        probe.certify(one_head(ask, d, rank, step, noise, seed), 30 * noise, "closed form")
    elif method == "copies" and heads is not None:
        probe.copy(heads)
    else:
        if long and method != "ordinary":
            probe.isolate(lengths, alone=method == "isolate")
        if method != "isolate" and not probe.met:
            for m in counts:
                probe.fit(m, ratio, starts, integer(max_steps, "max_steps"))
                if probe.met or attempts.clock.out:
                    break
    found = probe.recovery()
    return found.or_raise() if throw else found


class _Probe:
    """An oracle that is asked one way after another."""

    def __init__(self, ask: CountingOracle, d: int, noise: float, seed: int, attempts: Attempts) -> None:
        self.ask, self.d, self.noise, self.seed, self.attempts = ask, d, noise, seed, attempts
        self.checks = 0  # of the queries, those that went into certificates

    @property
    def met(self) -> bool:
        """Whether a certificate is met."""
        return any(attempt.certificate.met for attempt in self.attempts)

    def recovery(self) -> Recovery:
        """Return the best of what was tried, certified layers first."""
        best = min(self.attempts, key=lambda attempt: (not attempt.certificate.met, attempt.certificate.residual))
        return self.attempts.recovery(best, queries=self.ask.queries - self.checks)

    def isolate(self, lengths: tuple[float, ...], alone: bool) -> None:
        """Try isolated layers, polished where they are not exact, until fresh queries bear one out."""
        total = self._total()
        for layer, level in islice(isolate(self.ask, total, self.seed, self.noise, lengths), _ISOLATED):
            error = self.certify(layer, 10 * self.noise, "isolated", noise=level)
            if _POLISHED < error < 1:
                data = self._answered(layer.heads, _POLISH, stream(self.seed, "polish"))
                fit = variable_projection(data, layer.Theta)
                # noise that was measured counts as told, up to where it could hide what is missing
                allowed = 4 * max(self.noise, min(level, _MEASURED))
                self.certify(fit.layer, allowed, "isolated, polished", noise=level, fit=fit, starts=1)
            if self.met:
                return
        if alone and not self.attempts:
            self._guess(total, "no attempt separated the heads; method='ordinary' may")

    def copy(self, heads: int) -> None:
        """Try copies of tokens."""
        total = self._total()
        layer = learn_from_copies(self.ask, total, heads, self.seed)
        if layer is not None:
            self.certify(layer, 0.0, "copies")
        else:
            self._guess(
                total, "the logits of some copies came out complex; method='isolate' or 'ordinary' may do better"
            )

    def fit(self, heads: int, ratio: float, max_starts: int, max_steps: int) -> None:
        """Try a layer of this many heads fitted to ordinary queries, from several random starts."""
        data = self._answered(heads, ratio, stream(self.seed, "queries", str(heads)))
        streams = (stream(self.seed, "start", str(heads), str(number)) for number in range(max_starts))
        fit = best_of(
            data,
            (random_start(heads, self.d, rng) for rng in streams),
            done=max(1e-10, 2 * self.noise),
            max_steps=max_steps,
            max_seconds=self.attempts.clock.left,
            progress=lambda event: self.attempts.tell(f"heads = {heads}, {event.text}", event.value),
        )
        ended = self.attempts.clock.status(Status.OUT_OF_STEPS)
        self.certify(fit.layer, 4 * self.noise, "ordinary queries", fit=fit, starts=len(fit.history), ended=ended)

    def certify(
        self,
        layer: Layer,
        allowed: float,
        source: str,
        *,
        noise: float = 0.0,
        fit: Fit | None = None,
        starts: int = 0,
        ended: Status = Status.INACCURATE,
        why: str = "the layer may have more heads, the oracle more noise, or the search failed",
    ) -> float:
        """Hold a layer's answers to fresh queries against the oracle's, keep it with its certificate, return its error."""
        before = self.ask.queries
        X = _ordinary_tokens(stream(self.seed, "certificate", str(layer.heads)), _CERTIFICATE, layer.d)
        answers = np.array([self.ask(x) for x in X])
        self.checks += self.ask.queries - before
        size = float(np.linalg.norm(answers))
        error = float(np.linalg.norm(layer(X)[:, -1] - answers)) / (size if size > 0 else 1.0)
        goal = max(EXACT, min(allowed, 0.1))  # beyond that a certificate would certify anything
        met, level = bool(error <= goal), max(noise, self.noise)
        reason = f"{_CERTIFICATE} fresh queries are answered to {error:.1e}" + ("" if met else f", not {goal:g}: {why}")
        certificate = Certificate(
            met,
            reason,
            error,
            training=float("nan") if fit is None else fit.residual,
            noise=level if level > _ROUNDING else float("nan"),
            source=source,
            starts=starts,
            steps=0 if fit is None else fit.steps,
        )
        self.attempts.append(Attempt(layer, certificate, ended))
        self.attempts.tell(f"heads = {layer.heads}, {source}: {reason}", error)
        return error

    def _guess(self, total: Array, why: str) -> None:
        """Keep the one head that looks at all tokens alike: all that is known where a way failed."""
        self.certify(Layer(np.zeros((1, self.d, self.d)), total[None]), 0.0, "single tokens", why=why)

    def _total(self) -> Array:
        """Ask single unit vectors: the sum of all values (d, d_out)."""
        return np.array([self.ask(row[None]) for row in np.eye(self.d)])

    def _answered(self, heads: int, ratio: float, rng: np.random.Generator) -> Examples:
        """Ask ordinary queries, so many that there are `ratio` equations per unknown of this many heads."""
        d, outputs = self.d, self.ask.outputs or len(self.ask(_ordinary_tokens(rng, 1, self.d)[0]))
        X = _ordinary_tokens(rng, int(np.ceil(ratio * heads * (d * d + d * outputs) / outputs)), d)
        return Examples.of(X, np.array([self.ask(x) for x in X]))


def _ordinary_tokens(rng: np.random.Generator, n: int, d: int) -> Array:
    return np.clip(rng.standard_normal((n, _LENGTH, d)), -_LARGEST, _LARGEST)


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
