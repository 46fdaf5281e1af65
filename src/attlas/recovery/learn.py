"""Recover a layer from examples, with a certificate from examples that were held out."""

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from attlas.errors import InputError
from attlas.inputs import integer
from attlas.numerics import Progress, Status, stream
from attlas.recovery.attempts import Attempt, Attempts
from attlas.recovery.certificate import AGREE, EXACT, FALL, Recovery, Run, apart, certify
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import Sculpted, sculpt
from attlas.recovery.search import gradient_search, random_start
from attlas.recovery.variable_projection import variable_projection

Method = Literal["auto", "varpro", "sculpt", "lbfgs", "adam"]
METHODS: tuple[Method, ...] = ("auto", "varpro", "sculpt", "lbfgs", "adam")
_DONE = 1e-9  # a held-out residual below which nothing more is to be gained by another start
_HELD_OUT = 0.2
_STEPS = 100  # of variable projection; starts that succeed take 10 to 40, rarely more
_WITNESSES = 3  # starts with one more head, where so many heads leave what looks like noise


def learn(
    X: ArrayLike,
    Y: ArrayLike,
    heads: int | None = None,
    *,
    method: Method = "auto",
    seed: int = 0,
    max_starts: int = 20,
    max_steps: int | None = None,
    max_heads: int = 12,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Recovery:
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
        ones if that does not do; it has shown no higher rate of success. The others are baselines.
    seed : int
        Of the random starts and of the held-out split. The same seed gives the same layer on every machine, busy or idle,
        unless `max_seconds` is given.
    max_starts : int, default 20
        For each number of heads.
    max_steps : int, optional
        From each start: 100 of variable projection, 500 of L-BFGS, 10,000 of Adam if not given.
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
    data = Examples.of(X, Y)
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    starts, most_heads = integer(max_starts, "max_starts"), integer(max_heads, "max_heads")
    steps = None if max_steps is None else integer(max_steps, "max_steps")
    parts = data.split(_HELD_OUT, stream(seed, "held out"))
    most = starts * most_heads if heads is None else starts + min(_WITNESSES, starts)
    attempts = Attempts(Clock(max_seconds), progress, most)
    search = _Search(*parts, method, seed, starts, steps, attempts)
    best = search.seek(most_heads) if heads is None else search.fix(integer(heads, "heads"))
    if attempts.clock.out and best.certificate.met and best.certificate.residual > EXACT:
        best = best.refused("time was up before it was known if one head more leaves less")
    found = attempts.recovery(best._replace(ended=attempts.clock.status(best.ended)), tokens=data.X.shape[1])
    return found.or_raise() if throw else found


@dataclass(frozen=True)
class _Search:
    """Searches for one number of heads after another, on the same examples."""

    train: Examples
    held_out: Examples
    method: Method
    seed: int
    starts: int
    steps: int | None
    attempts: Attempts

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

    def attempt(self, heads: int, starts: int) -> Attempt:
        """Start again and again, until the fit is exact, two starts agree, or starts or seconds are used up."""
        body = self._sculpted(heads) if self.method == "sculpt" else None
        runs: list[Run] = []
        for number in range(starts):
            run = self._run(heads, number, body)
            told = f"held-out residual {run.residual:.2e} after {run.fit.steps} steps"
            self.attempts.tell(f"heads = {heads}, start {number + 1}: {told}", run.residual)
            runs = sorted([*runs, run], key=lambda run: run.residual)
            if runs[0].residual <= _DONE or self.attempts.clock.out or _settled(self.held_out, runs):
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
        else:
            carved = body is not None and number == 0
            first = body.Theta if body is not None and carved else random_start(heads, self.train.X.shape[2], rng)
            fit = variable_projection(self.train, first, max_steps=steps or _STEPS, max_seconds=left)
            source = "sculpted" if carved else "random"
        return Run(self.held_out.residual(fit.Theta, fit.W), fit, source)

    def _sculpted(self, heads: int) -> Sculpted | None:
        """Return a sculpted start, or None where the heads agree too rarely."""
        X, Y, left = self.train.X, self.train.Y, self.attempts.clock.left
        if Y.shape[1] != X.shape[1]:
            raise InputError("sculpting needs the outputs of all tokens, Y of shape (n, k, d_out)")
        try:
            return sculpt(X, Y, heads, seed=self.seed, max_seconds=None if left is None else left / 2)
        except InputError:
            return None


def _settled(held_out: Examples, runs: list[Run]) -> bool:
    """Return whether the two best runs found the same function: noise is then all that is left."""
    if len(runs) < 2 or runs[1].residual > 1.01 * runs[0].residual:
        return False
    return apart(held_out, runs) < AGREE * runs[0].residual
