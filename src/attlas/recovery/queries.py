"""Recover a layer by asking: an oracle that gives the last token's output for any sequence one cares to send.

One head is found in closed form (`one_head`), several by `isolate`, or from ordinary queries and variable projection.
"""

from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import choice, flag, integer, real
from attlas.numerics import Progress, Status, stream
from attlas.recovery.assumptions import broken_assumption
from attlas.recovery.attempts import Attempt, Attempts
from attlas.recovery.certificate import EXACT, Certificate, Recovery, small_output_missed
from attlas.recovery.clock import Clock
from attlas.recovery.copies import learn_from_copies
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.isolate import LONG, LONGER, NOISE, isolate
from attlas.recovery.layer import Layer
from attlas.recovery.one_head import one_head
from attlas.recovery.oracle import CountingOracle, Oracle, OutOfQueries
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import best_of, variable_projection

Array = NDArray[np.float64]

_LENGTHS = (2, 4, 8, 16)  # of the fresh queries of a certificate: what depends on the length is no layer
_EACH = 3  # fresh queries of every length
_CERTIFICATE = _EACH * len(_LENGTHS)
_LENGTH = 4  # tokens of an ordinary query
_LARGEST = 4.0  # of their entries
_MOST_COPIES = 6  # heads, all orders of which are tried
_ISOLATED = 3  # attempts that separated the heads, to look at
_MEASURED = 1e-4  # noise that is believed without being told
_ROUNDING = 1e-12  # noise below this is none
_SINGLE = 2.0**-22  # relative: a few roundings of single precision
_ROUNDED = 4 * _SINGLE  # noise that is measured though the same query always has the same answer
_LOUDEST = 30.0  # times the noise: what the answers of a layer that was found may be off by
_POLISHED = 1e-9  # a residual below this leaves nothing to polish
_POLISH = 2.0  # equations per unknown, of the queries to polish with
_MOST = (
    12_000  # numbers in all Theta, the square of which a fit keeps in memory: a gigabyte, and a minute for every step
)


def learn_from_queries(
    oracle: Oracle,
    d: int,
    heads: int | None = 1,
    *,
    rank: int | None = None,
    method: Literal["auto", "isolate", "ordinary", "copies"] = "auto",
    bias: bool = False,
    causal: bool = False,
    batch: bool = False,
    noise: float = 0.0,
    largest: float | None = None,
    repeats: int = 1,
    step: float = 1.0,
    seed: int = 0,
    ratio: float = 4.0,
    max_queries: int | None = None,
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
        ``oracle(X)`` with X (k, d), any k >= 1, returns (d_out,) or a number. Or a PyTorch module of sequences
        (n, k, d), such as a `MultiheadAttention`; it is asked many at a time, in evaluation mode and its own precision.
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
    bias : bool, default False
        Whether the layer has biases: a key bias for each head and an output bias. One query of a zero token tells the
        latter; key biases cost d queries for each head.
    causal : bool, default False
        Whether the layer is causal. The last token attends to all tokens either way, so that queries cannot tell.
    batch : bool, default False
        Whether ``oracle(X)`` takes many sequences (n, k, d) of one length and returns (n, d_out), or (n, k, d_out) of which
        the last token counts. Queries that do not depend on each other are then asked in one call.
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
    max_queries : int, optional
        A budget of queries, those of certificates included. Where it ends the search the status is out of steps.
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
        With a certificate from twelve fresh queries of 2 to 16 standard normal tokens. Where it is not met the parameters
        are the best guess, and it says why.

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
    most = None if max_queries is None else integer(max_queries, "max_queries", least=d + _CERTIFICATE + 1)
    ask = CountingOracle(oracle, d, integer(repeats, "repeats"), flag(batch, "batch"), most)
    noise = real(noise, "noise", least=0) / np.sqrt(repeats)
    real(step, "step", above=0)
    real(ratio, "ratio", least=1)
    _check_choices(d, heads, rank, method, noise, largest)
    if flag(bias, "bias") and method == "copies":
        raise InputError("copies knows no biases; leave them out, or the method")
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
    probe = _Probe(ask, d, noise, seed, attempts, bias, flag(causal, "causal"))
    steps = integer(max_steps, "max_steps")

    def search() -> None:
        if bias:
            ask.offset = ask(np.zeros((1, d)))
        if heads == 1:
            level = max(noise, _SINGLE) if ask.single else noise
            # at large logits a head costs 5 to 50 times the noise
            probe.certify(one_head(ask, d, rank, step, level, seed, bias), _LOUDEST * level, "closed form")
        elif method == "copies" and heads is not None:
            probe.copy(heads)
        else:
            if long and method != "ordinary":
                probe.isolate(lengths, alone=method == "isolate")
                if heads is None and method == "auto" and (probe.breaks() or probe.beyond):
                    return  # no number of heads would do, or so many are too many, and to try them all takes minutes
            for m in counts if method != "isolate" and not probe.met else ():
                if probe.too_many(m):
                    break
                probe.fit(m, ratio, starts, steps)
                if probe.met or attempts.clock.out:
                    break

    try:
        search()
        if not probe.met:
            probe.object()
    except OutOfQueries as spent:
        probe.stop(f"max_queries = {most} does not suffice: {spent}")
    found = probe.recovery()
    return found.or_raise() if throw else found


class _Probe:
    """An oracle that is asked one way after another."""

    def __init__(
        self, ask: CountingOracle, d: int, noise: float, seed: int, attempts: Attempts, bias: bool, causal: bool
    ) -> None:
        self.ask, self.d, self.noise, self.seed, self.attempts = ask, d, noise, seed, attempts
        self.bias, self.causal = bias, causal
        self.checks = 0  # of the queries, those that went into certificates
        self.broken: str | None = None  # which assumption, once that was asked
        self.beyond = ""  # why a fit was not tried

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
        found = isolate(self.ask, total, self.seed, self.noise, lengths, bias=self.bias)
        for layer, level in islice(found, _ISOLATED):
            error = self.certify(layer, 10 * self.noise, "isolated", noise=level)
            if _POLISHED < error < 1 and not self.too_many(layer.heads):
                data = self._answered(layer.heads, _POLISH, stream(self.seed, "polish"))
                start = layer.stacked() if self.bias else layer.Theta
                fit = variable_projection(data, start, max_seconds=self.attempts.clock.left)
                allowed = 4 * max(self.noise, self._believed(level))
                self.certify(fit.layer, allowed, "isolated, polished", noise=level, fit=fit, starts=1)
            if self.met:
                return
        if alone and not self.attempts:
            self._guess(total, "no attempt separated the heads; method='ordinary' may")

    def too_many(self, heads: int) -> bool:
        """Return whether so many heads are too many to fit; what is refused then says so."""
        if (numbers := heads * self.d**2) <= _MOST:
            return False
        self.beyond = f"a fit of ordinary queries would have {numbers} numbers in Theta, and may have {_MOST}"
        if self.ask.single:
            self.beyond += "; module.double() has the same weights and needs no fit"
        if not self.attempts:
            self._guess(self._total(), "heads were not isolated")
        return True

    def _believed(self, level: float) -> float:
        """Return how much of the noise that was measured counts as told: up to where it could hide what is missing.

        What is the same twice is no noise, but rounding at most, or a function that is no layer.
        """
        if self.noise or level <= _ROUNDED:
            return min(level, _MEASURED)
        before, X = self.ask.queries, _ordinary_tokens(stream(self.seed, "twice"), 1, self.d)[0]
        once, twice = self.ask.many([X, X])
        self.checks += self.ask.queries - before
        return _ROUNDED if np.array_equal(once, twice) else min(level, _MEASURED)

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
            (random_start(heads, self.d, rng, bias=self.bias) for rng in streams),
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
        rng = stream(self.seed, "certificate", str(layer.heads))
        fresh = [_ordinary_tokens(rng, _EACH, layer.d, length) for length in _LENGTHS]
        answers = np.array(self.ask.many([x for X in fresh for x in X]))
        self.checks += self.ask.queries - before
        mine = np.concatenate([layer(X)[:, -1] for X in fresh])
        size = float(np.linalg.norm(answers))
        error = float(np.linalg.norm(mine - answers)) / (size if size > 0 else 1.0)
        goal = max(EXACT, min(allowed, 0.1))  # beyond that a certificate would certify anything
        told = max(self.noise, _SINGLE) if self.ask.single else self.noise
        unlike = small_output_missed(mine, answers, _LOUDEST * told)
        met, level = bool(error <= goal) and not unlike, max(noise, self.noise)
        reason = f"{_CERTIFICATE} fresh queries of 2 to 16 tokens are answered to {error:.1e}"
        if not met:
            reason += f", but {unlike}" if unlike and error <= goal else f", not {goal:g}: {why}"
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
        self.attempts.append(Attempt(self._whole(layer), certificate, ended))
        self.attempts.tell(f"heads = {layer.heads}, {source}: {reason}", error)
        return error

    def breaks(self) -> bool:
        """Return whether an exact oracle breaks an assumption, where nothing is met; keep a guess if there is none."""
        if self.met or self.noise or not self._objection():
            return False
        if not self.attempts:
            self._guess(self._total(), "no attempt separated the heads")
        return True

    def _objection(self) -> str:
        """Ask which assumption is wrong, once."""
        if self.broken is None:
            before = self.ask.queries
            self.broken = broken_assumption(self.ask, self.d, self.noise, self.bias, stream(self.seed, "assumptions"))
            self.checks += self.ask.queries - before
        return self.broken

    def object(self) -> None:
        """Say in every certificate which assumption a few queries show to be wrong, if one is."""
        if why := "; ".join(filter(None, (self._objection(), self.beyond))):
            self.attempts[:] = [one.refused(f"{one.certificate.reason}; {why}") for one in self.attempts]

    def stop(self, why: str) -> None:
        """Keep what there is when the queries are used up: nothing is met by fewer than a certificate takes."""
        if not self.attempts:
            zero = Layer(np.zeros((1, self.d, self.d)), np.zeros((1, self.d, self.ask.outputs or 1)))
            certificate = Certificate(False, why, float("nan"), source="nothing")
            self.attempts.append(Attempt(self._whole(zero), certificate, Status.OUT_OF_STEPS))
        elif not self.met:
            self.attempts[:] = [one.refused(f"{one.certificate.reason}; {why}") for one in self.attempts]
            self.attempts[:] = [one._replace(ended=Status.OUT_OF_STEPS) for one in self.attempts]

    def _whole(self, layer: Layer) -> Layer:
        """Return a layer with what was told of it, and with the output bias that was taken off the answers."""
        if self.bias:
            own = 0.0 if layer.output_bias is None else layer.output_bias
            layer = replace(layer, output_bias=np.broadcast_to(own + self.ask.offset, layer.outputs))
        return replace(layer, causal=self.causal)

    def _guess(self, total: Array, why: str) -> None:
        """Keep the one head that looks at all tokens alike: all that is known where a way failed."""
        self.certify(Layer(np.zeros((1, self.d, self.d)), total[None]), 0.0, "single tokens", why=why)

    def _total(self) -> Array:
        """Ask single unit vectors: the sum of all values (d, d_out)."""
        return np.array(self.ask.many([row[None] for row in np.eye(self.d)]))

    def _answered(self, heads: int, ratio: float, rng: np.random.Generator) -> Examples:
        """Ask ordinary queries, so many that there are `ratio` equations per unknown of this many heads."""
        d, outputs = self.d, self.ask.outputs or len(self.ask(_ordinary_tokens(rng, 1, self.d)[0]))
        X = _ordinary_tokens(rng, int(np.ceil(ratio * heads * (d * d + d * outputs) / outputs)), d)
        answers = np.array(self.ask.many(list(X)))
        if not np.any(answers):
            raise InputError(
                "the oracle gives the same output to every query: attention cannot be seen"
                if self.bias
                else "the oracle's output is zero for every query: W = 0, and Theta cannot be seen"
            )
        return Examples.of(X, answers, bias=self.bias)


def _ordinary_tokens(rng: np.random.Generator, n: int, d: int, length: int = _LENGTH) -> Array:
    return np.clip(rng.standard_normal((n, length, d)), -_LARGEST, _LARGEST)


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
    if choice(method, "method", ("auto", "isolate", "ordinary", "copies")) == "copies" and (
        heads is None or not 2 <= heads <= _MOST_COPIES or noise > 0
    ):
        raise InputError(f"copies needs the number of heads, from 2 to {_MOST_COPIES}, and an oracle without noise")
    if largest is not None and real(largest, "largest", above=0) < _LARGEST:
        raise InputError(f"queries have entries up to {_LARGEST:g}; largest = {largest:g} does not allow them")
