"""Recover a layer from examples, with a certificate from examples that were held out."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from attlas.errors import InputError
from attlas.inputs import choice, integer
from attlas.numerics import Progress, Status, stream
from attlas.recovery.attempts import Attempt, Attempts
from attlas.recovery.certificate import AGREE, EXACT, FALL, Recovery, Run, apart, certify
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.sculpt import Sculpted, sculpt
from attlas.recovery.search import gradient_search, random_start
from attlas.recovery.variable_projection import variable_projection

Method = Literal["auto", "varpro", "factors", "sculpt", "lbfgs", "adam"]
METHODS: tuple[Method, ...] = ("auto", "varpro", "factors", "sculpt", "lbfgs", "adam")
_DONE = 1e-9  # a held-out residual below which nothing more is to be gained by another start
_HELD_OUT = 0.2
_STEPS = 100  # of variable projection; starts that succeed take 10 to 40, rarely more
_LARGE = 1500  # numbers in all Theta, beyond which a step of variable projection takes seconds
_POLISHED = 1e-10  # the residual to which factors are polished
_MANY = 6  # heads: where so many would be large, and their number is not given, factors are tried first
_CLOSE = 1e-2  # a residual at which the number of heads may be enough
_POLISH, _PROBE = (
    1000,
    100,
)  # gradients of L-BFGS at most: of a fit of factors, and of one that asks for the number of heads
_WITNESSES = 3  # starts with one more head, where so many heads leave what looks like noise


def learn(
    X: ArrayLike,
    Y: ArrayLike,
    heads: int | None = None,
    *,
    method: Method = "auto",
    keys: ArrayLike | None = None,
    bias: bool = False,
    causal: bool = False,
    padding: ArrayLike | None = None,
    rank: int | None = None,
    seed: int = 0,
    max_starts: int = 20,
    max_steps: int | None = None,
    max_heads: int = 12,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Recovery:
    """Recover Theta and W of F(X) = sum_i softmax(X Theta_i X^T) X W_i from examples, and biases if asked to.

    Parameters
    ----------
    X : array of shape (n, k, d)
        Tokens of any law; at least two to a sequence.
    Y : array of shape (n, k, d_out), (n, d_out) or (n,)
        Outputs of every token, or of the last one only.
    heads : int, optional
        If not given, heads are added until the residual on held-out examples stops falling. Factors try the divisors of d,
        or, if the rank is given, 1, 2, 4, ... heads and what lies between the last two.
    method : {"auto", "varpro", "factors", "sculpt", "lbfgs", "adam"}
        "varpro" is variable projection from random starts. "factors" is for large layers whose Theta and W have low rank:
        Adam on their factors in single precision, polished by L-BFGS; it needs sequences without masks, and every second
        start has spare heads, which are dropped at its end. "auto" is "factors"
        where it applies and there are more than 1500 numbers in Theta (in six heads, if their number is not given), else
        "varpro"; "varpro" also follows where factors find nothing and two heads have no more than 1500. "sculpt"
        takes its first start from `sculpt`, and random ones if that does not do; it has shown no higher rate of success.
        The others are baselines.
    keys : array of shape (n, l, d_keys), optional
        A second sequence, to which the tokens of X attend instead of each other (cross-attention), perhaps of another
        dimension.
    bias : bool, default False
        Whether the layer has biases: a key bias u_i for each head, added to its logits, and an output bias b.
    causal : bool, default False
        Whether tokens attend only to themselves and to those before them.
    padding : array of bool of shape (n, k), or (n, l) with keys, optional
        True where a token is padding: sequences of different length, filled up. X and Y, or keys, are ignored there.
    rank : int, optional
        Of every Theta_i, such as d_head of a trained model; with a bias, of (Theta_i, u_i). Such a layer has fewer unknowns
        and is found from fewer examples. "factors" takes it as the rank of every W_i, too; if it is not given there, it is
        d/heads, as in most models, or d if that is not an integer.
    seed : int
        Of the random starts and of the held-out split. The same seed gives the same layer on every machine, busy or idle,
        unless `max_seconds` is given.
    max_starts : int, default 20
        For each number of heads.
    max_steps : int, optional
        From each start, if not given: 100 of variable projection, 500 of L-BFGS, 10,000 of Adam, 2000 batches of factors
        (more beyond d = 64).
    max_heads : int, default 12
    max_seconds : float, optional
        Stop by the clock, too, with the best so far.
    throw : bool, default False
        Raise `ConvergenceError` if the certificate is not met.
    progress : callable, optional
        Called with an `Event` after every start.

    Returns
    -------
    Recovery
        With a certificate. Where it is not met the parameters are the best guess, and it says why.

    Examples
    --------
    >>> from attlas import layers, recovery, tokens
    >>> Theta, W = recovery.planted_layer(heads=2, d=4, seed=1)
    >>> X = tokens.boolean(300, 4, 4, seed=2)
    >>> found = recovery.learn(X, layers.multi_head_attention(X, Theta, W), heads=2)
    >>> found.certificate.met, recovery.same_function(found, recovery.Layer(Theta, W))
    (True, True)

    References
    ----------
    chen2024provably for the problem; golub1973differentiation for the method.
    """
    data = Examples.of(X, Y, keys=keys, bias=bias, causal=causal, padding=padding)
    method = choice(method, "method", METHODS)
    undecided = method == "auto"
    whole = data.allowed is None and not data.cross
    if method == "auto" and whole:
        many = _MANY if heads is None else integer(heads, "heads")
        method = "factors" if many * data.X.shape[2] ** 2 > _LARGE else "varpro"
    if method == "factors" and not whole:
        raise InputError("method='factors' takes no causal mask, padding or keys; use method='varpro'")
    if method in ("lbfgs", "adam") and data.cross:
        raise InputError(f"method={method!r} knows no keys; leave out keys, or the method")
    if method not in ("auto", "varpro", "factors") and (data.bias or rank is not None):
        raise InputError(f"method={method!r} knows no biases and no ranks; leave them out, or the method")
    if method == "sculpt" and not whole:
        raise InputError(
            "sculpting needs every token to see all others; leave out causal, padding and keys, or the method"
        )
    low = None if rank is None else integer(rank, "rank")
    if method != "factors" and low is not None and low >= min(data.asking.shape[2], data.X.shape[2]):
        low = None
    starts, most_heads = integer(max_starts, "max_starts"), integer(max_heads, "max_heads")
    steps = None if max_steps is None else integer(max_steps, "max_steps")
    parts = data.split(_HELD_OUT, stream(seed, "held out"))
    most = starts * most_heads if heads is None else starts + min(_WITNESSES, starts)
    attempts = Attempts(Clock(max_seconds), progress, most)
    search = _Search(*parts, method, low, seed, starts, steps, attempts)
    if heads is not None:
        best = search.fix(integer(heads, "heads"))
    elif method == "factors":
        best = search.climb(most_heads, or_else=undecided and 2 * data.X.shape[2] ** 2 <= _LARGE)
    else:
        best = search.seek(most_heads)
    if attempts.clock.out and best.certificate.met and best.certificate.residual > EXACT:
        best = best.refused("time was up before it was known if one head more leaves less")
    found = attempts.recovery(
        best._replace(ended=attempts.clock.status(best.ended)),
        tokens=None if data.cross or padding is not None else data.X.shape[1],
    )
    return found.or_raise() if throw else found


@dataclass(frozen=True)
class _Search:
    """Searches for one number of heads after another, on the same examples."""

    train: Examples
    held_out: Examples
    method: Method
    rank: int | None
    seed: int
    starts: int
    steps: int | None
    attempts: Attempts
    polish: int = _POLISH

    def fix(self, heads: int) -> Attempt:
        """Return the best layer of so many heads; where it leaves what looks like noise, one head more is a witness."""
        found = self.attempt(heads, self.starts)
        held_out = found.certificate.residual
        if not found.certificate.met or held_out <= EXACT:
            return found
        more = self.attempt(heads + 1, min(_WITNESSES, self.starts)).certificate.residual
        if more > (1 - FALL) * held_out:  # a layer of more heads misses by less; noise does not
            return found
        return found.refused(
            f"with {heads + 1} heads the residual falls from {held_out:.1e} to {more:.1e}: there are more than {heads}"
        )

    def seek(self, max_heads: int) -> Attempt:
        """Return the best layer of the number of heads beyond which the residual stops falling."""
        best = self.attempt(1, self.starts)
        for heads in range(2, max_heads + 1):
            if best.certificate.residual <= EXACT or self.attempts.clock.out:
                break
            met = best.certificate.met  # what more could fit is then noise, else it is worth any fall
            more = self.attempt(heads, min(_WITNESSES, self.starts) if met else self.starts)
            if more.certificate.residual > (1 - FALL if met else 1.0) * best.certificate.residual:
                break
            best = more
        return best

    def climb(self, max_heads: int, or_else: bool) -> Attempt:
        """Return the layer of as few heads, by factors, as fit exactly, else the best; `or_else` try variable projection.

        Heads of rank d/H are no special case of fewer and larger ones, so all divisors of d are tried. If the rank is given,
        more heads can do what fewer can, and the least number is found by halving.
        """
        d, probe = self.train.X.shape[2], replace(self, polish=_PROBE)
        counts = [heads for heads in range(1, max_heads + 1) if d % heads == 0]
        if self.rank is not None:
            counts = sorted({min(1 << power, max_heads) for power in range(max_heads.bit_length() + 1)})
        tried: list[Attempt] = []
        for heads in counts:
            tried.append(probe.attempt(heads, 1))
            if _residual(tried[-1]) <= _CLOSE:
                few = 0 if len(tried) < 2 else tried[-2].layer.heads
                tried.append(self.attempt(probe.fewest(few, heads) if self.rank is not None else heads, self.starts))
                if _residual(tried[-1]) <= EXACT:
                    return tried[-1]
            if self.attempts.clock.out:
                break
        best = min(tried, key=_residual)
        if or_else:
            rank = self.rank if self.rank is None or self.rank < d else None
            other = replace(self, method="varpro", rank=rank).seek(max_heads)
            if other.certificate.met or _residual(other) < _residual(best):
                return other
        return self.fix(best.layer.heads)

    def fewest(self, few: int, many: int) -> int:
        """Return the least number of heads with a residual that is close to none, more than `few`; `many` have it."""
        while many - few > 1:
            middle = (few + many) // 2
            close = _residual(self.attempt(middle, 1)) <= _CLOSE
            few, many = (few, middle) if close else (middle, many)
        return many

    def attempt(self, heads: int, starts: int) -> Attempt:
        """Start again and again, until the fit is exact, two starts agree, or starts or seconds are used up."""
        body = self._sculpted(heads) if self.method == "sculpt" else None
        runs: list[Run] = []
        done = EXACT if self.method == "factors" else _DONE
        for number in range(starts):
            run = self._run(heads, number, body)
            told = f"held-out residual {run.residual:.2e} after {run.fit.steps} steps"
            self.attempts.tell(f"heads = {heads}, start {number + 1}: {told}", run.residual)
            runs = sorted([*runs, run], key=lambda run: run.residual)
            if runs[0].residual <= done or self.attempts.clock.out or _settled(self.held_out, runs):
                ended = Status.INACCURATE
                break
        else:
            ended = Status.OUT_OF_STEPS
        certificate = certify(self.train, self.held_out, runs, float("nan") if body is None else body.gap)
        self.attempts.append(Attempt(runs[0].fit.layer, certificate, ended))
        return self.attempts[-1]

    def _run(self, heads: int, number: int, body: Sculpted | None) -> Run:
        rng = stream(self.seed, "start", str(heads), str(number))
        steps, left = self.steps, self.attempts.clock.left
        if self.method in ("lbfgs", "adam"):
            fit = gradient_search(self.train, heads, self.method, rng, max_steps=steps, max_seconds=left)
            source = f"random, {self.method}"
        elif self.method == "factors":
            spare = min(heads, -(-heads // 2) * ((number + 1) // 2)) if number % 2 else 0
            fit, source = self._factors(heads, spare, rng), "random, factors"
        else:
            carved = body is not None and number == 0
            if body is not None and carved:
                first = body.Theta
            else:
                e, d, bias = self.train.queries.shape[2], self.train.X.shape[2], self.train.bias
                first = random_start(heads, e, rng, rank=self.rank, bias=bias, d_keys=d)
            fit = variable_projection(self.train, first, rank=self.rank, max_steps=steps or _STEPS, max_seconds=left)
            source = "sculpted" if carved else "random"
        return Run(self.held_out.missed(fit.layer), fit, source)

    def _factors(self, heads: int, spare: int, rng: np.random.Generator) -> Fit:
        from attlas.recovery.factor_fit import factor_fit  # brings numba, a second that others should not wait for

        d, left = self.train.X.shape[2], self.attempts.clock.left
        rank = min(self.rank or (d if d % heads else d // heads), d)
        bias = self.train.bias
        return factor_fit(
            self.train,
            heads,
            rank,
            rng,
            biases=bias,
            spare=spare,
            tol=_POLISHED,
            max_steps=self.steps,
            max_polish=self.polish,
            max_seconds=left,
        )

    def _sculpted(self, heads: int) -> Sculpted | None:
        """Return a sculpted start, or None where the heads agree too rarely."""
        X, Y, left = self.train.X, self.train.Y, self.attempts.clock.left
        if Y.shape[1] != X.shape[1]:
            raise InputError("sculpting needs the outputs of all tokens, Y of shape (n, k, d_out)")
        try:
            return sculpt(X, Y, heads, seed=self.seed, max_seconds=None if left is None else left / 2)
        except InputError:
            return None


def _residual(tried: Attempt) -> float:
    return tried.certificate.residual


def _settled(held_out: Examples, runs: list[Run]) -> bool:
    """Return whether the two best runs found the same function: noise is then all that is left."""
    if len(runs) < 2 or runs[1].residual > 1.01 * runs[0].residual:
        return False
    return apart(held_out, runs) < AGREE * runs[0].residual
