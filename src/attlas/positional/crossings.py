"""Where the two minima change places, and where meaning begins to pay."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attlas.errors import InputError
from attlas.inputs import real
from attlas.numerics import Event, Progress, Solution, Status
from attlas.positional.baseline import baseline
from attlas.positional.evolution import WIDEST, state_evolution
from attlas.positional.fixed_point import BRANCHES, Branch, FixedPoint
from attlas.positional.model import Model, check_model, check_scale

_RANGE = (0.02, 2000.0)  # of alpha that is searched
_BEGIN = 2.5
_MOST = 30


@dataclass(frozen=True, repr=False)
class Crossing(Solution[float]):
    """An alpha at which two curves cross.

    Attributes
    ----------
    value : float
        Samples over d; NaN if none is found.
    residual : float
        Relative change of alpha in the last step.
    history : array
        Every alpha that was tried.
    positional, semantic : FixedPoint or None
        The branches at the last of them; the one that does not matter is None.
    reason : str
        Why there is no value; empty where there is one.
    notes : tuple of str
        What to know before the value is used, from both branches; empty where all is well.
    """

    positional: FixedPoint | None = None
    semantic: FixedPoint | None = None
    reason: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before the value is used; empty where all is well."""
        at = (("position", self.positional), ("meaning", self.semantic))
        return tuple(f"By {name}: {note}" for name, point in at if point is not None for note in point.notes)

    def __repr__(self) -> str:
        at = (("position", self.positional), ("meaning", self.semantic))
        stands = ", ".join(f"by {name} {point.standing}" for name, point in at if point is not None)
        return f"Crossing(alpha={self.value:.6g}, {self.status}; {self.reason or stands})"


def switch(model: Model, *, tol: float = 1e-6, throw: bool = True, progress: Progress | None = None) -> Crossing:
    """Return alpha_c, where the losses of the two minima cross: below it position is the better fit, above it meaning.

    Newton's iteration on the difference of the losses, with their exact slopes d loss/d alpha (`FixedPoint.envelope`).

    Parameters
    ----------
    model : Model
    tol : float, default 1e-6
        As in `state_evolution`.
    throw : bool, default True
        Raise `ConvergenceError` if none is found; otherwise the status and `reason` say so.
    progress : callable, optional
        Called with an `Event` after every alpha.

    Examples
    --------
    >>> from attlas import positional
    >>> print(f"{positional.switch(positional.Model(mixture=0.3, encoding=3.0), tol=1e-4).value:.3f}")
    2.566
    """
    if check_model(model).encoding == 0:
        raise InputError("there is no switch without an encoding; got encoding=0; take encoding > 0")
    found = _crossing(model, BRANCHES, _loss_difference, tol, progress)
    return found.or_raise("the switch" + (f" ({found.reason})" if found.reason else "")) if throw else found


def crossing(model: Model, *, tol: float = 1e-6, throw: bool = True, progress: Progress | None = None) -> Crossing:
    """Return the alpha above which the semantic minimum has a smaller test error than the best layer by place (`baseline`).

    Parameters as in `switch`. A positional minimum never gets there.

    Examples
    --------
    >>> from attlas import positional
    >>> round(positional.crossing(positional.Model(mixture=0.3, encoding=3.0), tol=1e-3).value, 2)
    1.83
    """
    check_scale(model, WIDEST, "the crossing")
    least = baseline(model)

    def difference(at: dict[Branch, FixedPoint]) -> tuple[float, float]:
        return float(np.log(at["semantic"].test / least)), np.nan

    found = _crossing(model, ("semantic",), difference, tol, progress)
    return found.or_raise("the crossing" + (f" ({found.reason})" if found.reason else "")) if throw else found


def _loss_difference(at: dict[Branch, FixedPoint]) -> tuple[float, float]:
    position, meaning = at["positional"], at["semantic"]
    return meaning.loss - position.loss, meaning.envelope - position.envelope


def _crossing(
    model: Model,
    branches: tuple[Branch, ...],
    difference: Callable[[dict[Branch, FixedPoint]], tuple[float, float]],
    tol: float,
    progress: Progress | None,
) -> Crossing:
    """Return where the difference, positive at small alpha, vanishes; first coarsely, then at the tolerance asked for."""
    tol = real(tol, "tol", above=0)
    accuracy, change, search = max(tol, 1e-4), np.inf, _Search(_BEGIN)
    at: dict[Branch, FixedPoint] = {}
    tried: list[float] = []

    def ended(status: Status, reason: str = "") -> Crossing:
        value = np.nan if reason else search.alpha
        own = {branch: at.get(branch) for branch in branches}
        return Crossing(value, status, change, len(tried), np.array(tried), reason=reason, **own)

    for _ in range(_MOST):
        alpha = search.alpha
        at = {
            own: state_evolution(model, alpha, own, tol=accuracy, start=_start(at.get(own)), throw=False)
            for own in branches
        }
        tried.append(alpha)
        if progress is not None:
            progress(Event(len(tried), _MOST, f"alpha = {alpha:.6g}", alpha))
        for own in branches:
            if not at[own].converged:
                return ended(at[own].status, f"the {own} branch did not settle at alpha = {alpha:.4g}")
        if "positional" in branches and at["positional"].mechanism != "positional":
            reason = f"at alpha = {alpha:.4g} the encoding is too weak: there is no positional minimum"
            if not at["positional"].reliable:
                reason += f", in a theory that is approximate there (jump share {at['positional'].jump_share:.2g})"
            return ended(Status.DIVERGED, reason)
        # with too few samples to find any meaning alpha is too small
        found = difference(at) if at["semantic"].mechanism == "semantic" else (np.inf, np.nan)
        change = search.advance(*found)
        if change < tol and accuracy <= tol:
            return ended(Status.CONVERGED)
        if change < accuracy:
            accuracy = tol
            search.widen()
        if not _RANGE[0] < search.alpha < _RANGE[1] / 1.01:
            return ended(Status.DIVERGED, f"none between alpha = {_RANGE[0]:g} and {_RANGE[1]:g}")
    return ended(Status.OUT_OF_STEPS, "too many steps")


def _start(before: FixedPoint | None) -> FixedPoint | None:
    return before if before is not None and before.mechanism == before.branch else None


class _Search:
    """The alphas to try: Newton's step, a secant where there is no slope, or a bisection where they lead outside."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self._low, self._high = _RANGE
        self._seen: list[tuple[float, float]] = []

    def advance(self, value: float, slope: float) -> float:
        """Go to the next alpha, from the value and slope of a falling difference at this one; return the relative change."""
        alpha, new = self.alpha, np.nan
        if value > 0:
            self._low = max(self._low, alpha)
        else:
            self._high = min(self._high, alpha)
        if np.isfinite(value):
            self._seen.append((alpha, value))
            new = alpha * (1.1 if value > 0 else 0.9)
            if len(self._seen) > 1:
                (a, fa), (b, fb) = self._seen[-2:]
                new = b - fb * (b - a) / (fb - fa) if fb != fa else np.nan
        if slope < 0:
            new = alpha - value / slope
        if np.isfinite(new):
            new = float(np.clip(new, alpha / 2, 2 * alpha))
        if not self._low < new < self._high:
            new = float(np.sqrt(max(self._low, alpha / 4) * min(self._high, alpha * 4)))
        self.alpha = new
        return abs(new / alpha - 1)

    def widen(self) -> None:
        """Forget what a coarse quadrature may have got wrong by a little."""
        self._low, self._high = self._low * (1 - 1e-3), self._high * (1 + 1e-3)
        self._seen = self._seen[-2:-1]
