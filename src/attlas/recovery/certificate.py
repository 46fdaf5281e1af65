"""Why a recovered layer may be believed, or not: what `learn` and `learn_from_queries` return, and how examples certify."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from attlas.errors import ConvergenceError
from attlas.numerics import Status, stream
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.layer import Layer
from attlas.recovery.variable_projection import variable_projection

Array = NDArray[np.float64]

EXACT = 1e-6  # a residual below this, on examples that were not fitted, is no accident
FALL = 0.1  # by how much of itself the held-out residual must fall to pay for another head
AGREE = 0.1  # of the held-out residual: two starts that differ by less found the same
_FLOOR = 1.25  # held-out over training residual, beyond which a fit has followed its noise
_LINEAR = 0.95  # of the residual of the best linear function of the mean token, which every layer must beat
_STRUCTURE = 0.02  # of the residual: noise does not depend on the tokens that much
_LOOKED_AT = 5000  # sequences, for what needs no more


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
    noisy = best.residual > EXACT
    reason = objection or _approval(best, agreement) + _unseen(train)
    return Certificate(
        met=not objection,
        reason=reason,
        residual=best.residual,
        training=best.fit.residual,
        noise=best.residual if noisy and not objection else float("nan"),
        agreement=agreement,
        gap=gap,
        source=best.source,
        starts=len(runs),
        steps=sum(run.fit.steps for run in runs),
    )


def apart(held_out: Examples, runs: Sequence[Run]) -> float:
    """Return the relative difference, on held-out examples, of the outputs of the first two runs."""
    first, second = (held_out.output(run.fit.Theta, run.fit.W) for run in runs[:2])
    return float(np.linalg.norm(first - second) / max(np.linalg.norm(first), np.finfo(float).tiny))


def _objections(train: Examples, fresh: Examples, runs: Sequence[Run], agreement: float) -> Iterator[str]:
    """Yield what speaks against the best run, the plainest first."""
    held_out, fit, source = runs[0]
    heads, d, out = fit.layer.heads, fit.layer.d, train.Y.shape[2]
    unknowns = heads * (d**2 + d * out)
    if train.Y.size < unknowns:
        yield f"{train.Y.size} outputs cannot determine the {unknowns} numbers of {heads} heads"
    if held_out <= EXACT and fit.residual <= EXACT:
        return
    if held_out > _LINEAR * min(1.0, linear := _linear(train, fresh)):
        yield f"the residual is {held_out:.2f}, and {linear:.2f} for a linear function of the mean token: nothing learned"
    if held_out > _FLOOR * fit.residual:
        yield (
            f"the residual is {held_out:.1e} on held-out examples but {fit.residual:.1e} in training: the fit does not carry"
            " over; more examples, fewer heads or more starts may help"
        )
    if (explained := _explained(train, fresh, fit)) > _STRUCTURE:
        yield (
            f"the residual is {held_out:.1e}, and the tokens explain {explained:.0%} of it: it is not noise; more heads or"
            " more starts may help, or the data come from something else"
        )
    if source != "random" and (closer := _closer(train, fit)) < (1 - FALL) * fit.residual:
        yield (
            f"the residual is {held_out:.1e}, but some steps of variable projection from there bring it to {closer:.1e}:"
            " the search had not ended"
        )
    if not agreement < AGREE * held_out:
        other = "no second start was made" if len(runs) < 2 else f"the two best starts differ by {agreement:.1e}"
        yield f"the residual stays at {held_out:.1e} and {other}: not such a layer, or not found from these starts"


def _approval(best: Run, agreement: float) -> str:
    if best.residual <= EXACT:
        return f"the held-out residual is {best.residual:.1e}"
    return (
        f"the residual is {best.residual:.1e} on held-out examples and {best.fit.residual:.1e} in training, as noise would"
        f" be, and two starts found the same function to {agreement:.1e}"
    )


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
