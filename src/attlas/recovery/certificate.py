"""Why a recovered layer may be believed, or not: what `learn` and `learn_from_queries` return, and how examples certify."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from attlas.errors import ConvergenceError
from attlas.numerics import Status
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.layer import Layer
from attlas.recovery.residual_test import LEVEL, Finding, residual_test
from attlas.recovery.variable_projection import variable_projection

Array = NDArray[np.float64]

EXACT = 1e-6  # a residual below this, on examples that were not fitted, is no accident
FALL = 0.1  # by how much of itself the held-out residual must fall to pay for another head
AGREE = 0.1  # of the held-out residual: two starts that differ by less found the same
_FLOOR = (
    1.25  # held-out over training residual, in units of what is expected, beyond which a fit has followed its noise
)
_LINEAR = 0.95  # of the residual of the best linear function of the mean token, which every layer must beat
_CROWDED = 0.2  # unknowns per training output, beyond which noise and structure cannot be told apart
_FEW = 50  # different sequences, below which they cannot either
_HIDDEN = 0.1  # of the outputs: if a head of that size could hide in the noise, nothing is certified
_MOST_PARAMETERS = 1500  # that the test of the residual can take
_LOOKED_AT = 5000  # sequences, for what needs no more
_EACH = 1e-4  # of its own size: an output that is small against others is to be right to that
_ROUNDING = 1e-12  # of the largest output: a smaller one is rounding


@dataclass(frozen=True)
class Certificate:
    """Why a result may be believed, or not.

    From examples, the start that does best on held-out ones is returned, so `residual` is a little optimistic where starts
    differ.

    Attributes
    ----------
    met : bool
    reason : str
        One sentence.
    residual : float
        |F(X) - Y|/|Y| on examples that were held out, or on fresh queries.
    training : float
        The same on the examples or queries that were fitted; NaN where nothing was fitted.
    noise : float
        Of the outputs, relative: what the residual of examples looks like, if the certificate is met, or what the oracle's
        is told or measured to be. NaN if there seems to be none.
    agreement : float
        Relative difference of the outputs, on the held-out examples, of the two best starts; NaN if there were not two.
    p_value : float
        Of the hypothesis that the residual is noise, of mean zero given the tokens; NaN where that was not tested.
    family : str
        What the residual depends on most clearly, if it depends on anything; empty where that was not tested.
    seen : dict
        For each of some probes, by name, the smallest piece missing from the layer that the test would have refused with
        probability 0.9, relative to the outputs. It speaks for these probes only.
    gap : float
        Of the span that was sculpted, NaN if nothing was: trust the span from 2 on.
    source : str
        Where the search that won began: "random" or "sculpted", and the method if it is a baseline. From queries, the way:
        "closed form", "isolated", "isolated, polished", "ordinary queries" or "copies".
    starts, steps, queries : int
        Of the whole search; queries of certificates are not counted.
    seconds : float
        For information: nothing depends on it, unless `max_seconds` was given.
    """

    met: bool
    reason: str
    residual: float
    training: float = float("nan")
    noise: float = float("nan")
    agreement: float = float("nan")
    p_value: float = float("nan")
    family: str = ""
    seen: dict[str, float] = field(default_factory=dict, hash=False)
    gap: float = float("nan")
    source: str = ""
    starts: int = 0
    steps: int = 0
    queries: int = 0
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, kw_only=True)
class Recovery(Fit):
    """A recovered layer and its certificate: what `learn` and `learn_from_queries` return.

    Attributes
    ----------
    value, layer : Layer
        The best guess, also where the certificate is not met.
    status : Status
        Converged if and only if the certificate is met. Else out of time, if `max_seconds` ended the search; out of steps,
        if its starts did; inaccurate, if it ended by itself.
    residual, steps : float, int
        Those of the certificate.
    history : array of shape (tries, 2)
        The number of heads of every try, and its residual on held-out examples or fresh queries.
    certificate : Certificate
    tokens : int or None
        The length of the sequences that were seen; None if there were several.
    """

    certificate: Certificate
    tokens: int | None = None

    def canonical(self) -> Layer:
        """Return the canonical layer of the same function, on sequences of the length it was learned from."""
        return self.layer.canonical(k=2 if self.tokens == 2 else None)

    def or_raise(self, what: str = "recovery") -> Self:
        """Return self if the certificate is met, else raise `ConvergenceError` with the reason why it is not."""
        if not self.converged:
            next_step = f"; {self.status.advice}" if self.status in (Status.OUT_OF_TIME, Status.OUT_OF_STEPS) else ""
            raise ConvergenceError(
                f"{what} is not certified ({self.status}): {self.certificate.reason}{next_step}", self
            )
        return self


class Run(NamedTuple):
    """A search from one start: its residual on held-out examples, where it ended, where it began."""

    residual: float
    fit: Fit
    source: str


def certify(train: Examples, fresh: Examples, runs: Sequence[Run], gap: float = float("nan")) -> Certificate:
    """Return the certificate of the first of several runs, the best first, from examples that none of them has seen."""
    best = runs[0]
    agreement = apart(fresh, runs) if len(runs) > 1 else float("nan")
    objection = next(_objections(train, fresh, runs, agreement), "")
    noisy = best.residual > EXACT or best.fit.residual > EXACT
    tested = residual_test(_together(train, fresh), best.fit.layer) if noisy and not objection else None
    if tested is not None:
        objection = _dependence(best, tested)
    if objection and _shifted(train, fresh, tested):
        objection += "; its mean is not zero, so the layer may have a bias: try bias=True"
    reason = objection or _approval(best, agreement, tested) + _unseen(train)
    return Certificate(
        met=not objection,
        reason=reason,
        residual=best.residual,
        training=best.fit.residual,
        noise=best.residual if noisy and not objection else float("nan"),
        agreement=agreement,
        p_value=float("nan") if tested is None else tested.p_value,
        family="" if tested is None else tested.family,
        seen={} if tested is None else tested.seen,
        gap=gap,
        source=best.source,
        starts=len(runs),
        steps=sum(run.fit.steps for run in runs),
    )


def apart(held_out: Examples, runs: Sequence[Run]) -> float:
    """Return the relative difference, on held-out examples, of the outputs of the first two runs."""
    first, second = (held_out.predict(run.fit.layer) for run in runs[:2])
    return float(np.linalg.norm(first - second) / max(np.linalg.norm(first), np.finfo(float).tiny))


def small_output_missed(mine: Array, theirs: Array, allowed: float = 0.0) -> str:
    """Return which output is missed by more than its own size explains, and than `allowed` of all of them does; or nothing.

    A residual that is relative to all outputs together says nothing about those that are small against the others.
    """
    outputs = theirs.shape[-1]
    apart, sizes = (np.linalg.norm(each.reshape(-1, outputs), axis=0) for each in (mine - theirs, theirs))
    bound = np.maximum(_EACH * sizes, allowed * float(np.linalg.norm(sizes)))
    missed = (apart > bound) & (sizes > _ROUNDING * sizes.max())
    if not missed.any():
        return ""
    worst = int(np.argmax(np.where(missed, apart / np.maximum(sizes, 1e-300), 0.0)))
    return (
        f"output {worst} is {sizes[worst] / sizes.max():.1e} times as large as the largest and missed by"
        f" {apart[worst] / sizes[worst]:.1e} of itself: it may be of another kind, or too small to be"
        " seen; scale all outputs alike"
    )


def _together(train: Examples, fresh: Examples) -> Examples:
    """Return all examples: held-out ones alone would see a fifth, and would contain the error of the estimate."""
    mask = None if train.allowed is None or fresh.allowed is None else np.concatenate([train.allowed, fresh.allowed])
    X, queries, Y = (np.concatenate([getattr(part, name) for part in (train, fresh)]) for name in ("X", "queries", "Y"))
    return replace(train, X=X, queries=queries, Y=Y, allowed=mask)


def _dependence(best: Run, tested: Finding) -> str:
    """Return what the test of the residual has against the best run."""
    if tested.p_value <= LEVEL:
        return (
            f"the residual is {best.residual:.1e} and depends on the tokens, most clearly on {tested.family}"
            f" (p = {tested.p_value:.2g}, {tested.z:.1f} standard deviations): it is not noise; more heads or more starts"
            " may help, or the data come from something else"
        )
    if (hidden := tested.seen["another head"]) > _HIDDEN:
        return f"cannot tell: another head of {hidden:.0%} of the outputs could hide in it; more examples may help"
    return ""


def _objections(train: Examples, fresh: Examples, runs: Sequence[Run], agreement: float) -> Iterator[str]:
    """Yield what speaks against the best run, the plainest first."""
    held_out, fit, source = runs[0]
    heads, unknowns = fit.layer.heads, train.unknowns(fit.layer)
    crowding = unknowns / train.Y.size
    if train.Y.size < unknowns:
        yield f"{train.Y.size} outputs cannot determine the {unknowns} numbers of {heads} heads"
    if held_out <= EXACT and fit.residual <= EXACT:
        if unlike := small_output_missed(fresh.predict(fit.layer), fresh.Y):
            yield f"the held-out residual is {held_out:.1e}, but {unlike}"
        return
    if held_out > _LINEAR * min(1.0, linear := _linear(train, fresh)):
        yield f"the residual is {held_out:.2f}, and {linear:.2f} for a linear function of the mean token: nothing learned"
    different = int(train.kinds().max()) + 1
    if crowding > _CROWDED or different < _FEW:
        yield (
            f"cannot tell if the residual of {held_out:.1e} is noise: {train.Y.size} outputs of {different} different"
            f" sequences for {unknowns} numbers; it takes {_FEW} sequences and {1 / _CROWDED:.0f} outputs for each number"
        )
    if held_out > _FLOOR * np.sqrt((1 + crowding) / (1 - crowding)) * fit.residual:
        yield (
            f"the residual is {held_out:.1e} on held-out examples but {fit.residual:.1e} in training: the fit does not carry"
            " over; more examples, fewer heads or more starts may help"
        )
    if source not in ("random", "random, factors") and (closer := _closer(train, fit)) < (1 - FALL) * fit.residual:
        yield (
            f"the residual is {held_out:.1e}, but some steps of variable projection from there bring it to {closer:.1e}:"
            " the search had not ended"
        )
    if not agreement < AGREE * held_out:
        other = "no second start was made" if len(runs) < 2 else f"the two best starts differ by {agreement:.1e}"
        yield f"the residual stays at {held_out:.1e} and {other}: not such a layer, or not found from these starts"
    if unknowns > _MOST_PARAMETERS:
        yield f"not tested: {unknowns} parameters are too many for the test that the residual of {held_out:.1e} is noise"


def _approval(best: Run, agreement: float, tested: Finding | None) -> str:
    if tested is None:
        return f"the held-out residual is {best.residual:.1e}"
    return (
        f"the residual is {best.residual:.1e} on held-out examples and {best.fit.residual:.1e} in training, as noise would"
        f" be, no dependence on the tokens was found (p = {tested.p_value:.2g}; another head of"
        f" {tested.seen['another head']:.1%} of the outputs would have been), and two starts found the same function to"
        f" {agreement:.1e}"
    )


def _shifted(train: Examples, fresh: Examples, tested: Finding | None) -> bool:
    """Return whether a constant seems to be missing: the test sees it, or linear functions are clearly better with one."""
    if train.bias or (tested is not None and "a constant" in tested.suspects):
        return not train.bias
    with_bias = (replace(part, bias=True) for part in (train, fresh))
    return _linear(*with_bias) < _LINEAR * _linear(train, fresh)


def _linear(train: Examples, held_out: Examples) -> float:
    """Return the held-out residual of the best linear function of the mean token: what attention to nothing gives."""

    def regressors(data: Examples) -> Array:
        mean = data.attend(np.zeros((data.asking.shape[2], data.X.shape[2])))[1]  # over what may be attended to
        both = np.concatenate([mean, data.counted], axis=2) if data.bias else mean
        return both.reshape(-1, both.shape[2])

    W = np.linalg.lstsq(regressors(train), train.Y.reshape(-1, train.Y.shape[2]), rcond=None)[0]
    found = regressors(held_out) @ W
    return float(np.linalg.norm(found - held_out.Y.reshape(found.shape)) / np.linalg.norm(held_out.Y))


def _closer(train: Examples, fit: Fit) -> float:
    """Return the training residual after a few steps of variable projection: gradient methods can stall far from the end."""
    return variable_projection(train, fit.Theta, max_steps=20).residual


def _unseen(data: Examples) -> str:
    """Return what to say if the tokens do not show all of Theta: x_r^T Theta (x_b - x_c) is all that they show."""
    e, d = data.queries.shape[2], data.X.shape[2]
    some = data.X[:_LOOKED_AT]
    rows = np.linalg.matrix_rank(data.queries[:_LOOKED_AT].reshape(-1, e))
    columns = np.linalg.matrix_rank((some - some[:, :1]).reshape(-1, d))
    if (rows, columns) == (e, d):
        return ""
    return f"; but these tokens show {rows} x {columns} of the {e} x {d} numbers of Theta: on others the function may differ"
