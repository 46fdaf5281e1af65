"""What claims about position and meaning share: settings, both minima of one data set, the theory beside them, words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat

from attlas import positional
from attlas.claims.claim import Measurement, Settings
from attlas.claims.estimate import finite_size, share
from attlas.claims.figure import COLOURS
from attlas.claims.verdict import Test, about
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = tuple[str, dict[str, Any], float, float, float | None]  # of `gather`

BRANCHES = ("positional", "semantic")
COLOUR = {"positional": COLOURS[1], "semantic": COLOURS[0]}  # the same in every figure and on the page
LIMIT = " at d = infinity"  # how tests are named whose number is extrapolated
SIZES = 4  # that an extrapolation needs
KEPT = 0.9  # at least this share of the starts must end in the minimum that they are near
TOLERANCE = 1e-4  # of the theory, far below every eps


class Student(Settings):
    """A teacher and a student, as in `positional.Model`."""

    mixture: float = Field(0.3, ge=0, lt=1)
    encoding: NonNegativeFloat = 3.0
    token_scale: PositiveFloat = 1.0
    decay: PositiveFloat = 0.5

    @property
    def model(self) -> positional.Model:
        """The model."""
        return positional.Model(self.mixture, self.encoding, self.token_scale, self.decay)

    @property
    def label(self) -> str:
        """The settings in words."""
        own = f"omega = {self.mixture:g}, c = {self.encoding:g}"
        return own if self.token_scale == 1 else f"{own}, sigma = {self.token_scale:g}"


def own_stream(seed: int, *names: str) -> int:
    """Return a seed of its own for these names: what they tell apart shares no random number."""
    return int(stream(seed, *names).integers(1 << 62))


def draw_task(point: Any, alpha: float, seed: int) -> positional.Task:
    """Draw a task that shares no random number with those of other settings and sizes."""
    return positional.sample(point.model, point.d, alpha, own_stream(seed, "task", point.label, str(point.d)))


def part(task: positional.Task, alpha: float) -> positional.Task:
    """Return the task with its first alpha d samples."""
    n = round(alpha * task.d)
    return replace(task, X=task.X[:n], targets=task.targets[:n])


def minima(task: positional.Task) -> dict[str, positional.Minimum]:
    """Return both minima, each from a start beside it."""
    return {branch: positional.minimise(task, branch, throw=False) for branch in BRANCHES}


@lru_cache(maxsize=256)
def theory(model: positional.Model, alpha: float, branch: str) -> positional.FixedPoint:
    """Return a branch of the state evolution, to 1e-4."""
    return positional.state_evolution(model, alpha, branch, tol=TOLERANCE, throw=False)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def switch(model: positional.Model) -> tuple[float, bool]:
    """Return alpha_c of the theory, and whether it was found."""
    found = positional.switch(model, tol=TOLERANCE, throw=False)
    return found.value, found.converged


@lru_cache(maxsize=64)
def crossing(model: positional.Model) -> tuple[float, bool]:
    """Return the alpha of the theory above which meaning beats the best layer by place, and whether it was found."""
    found = positional.crossing(model, tol=TOLERANCE, throw=False)
    return found.value, found.converged


def spread(task: positional.Task) -> float:
    """Return the spread of the teacher's attention in the data over its mean: E|T - E T|^2, which `baseline` is.

    The loss of attention by position goes with it, and most of its scatter from data set to data set is this; divided by it
    the loss has the same limit.
    """
    weight = np.sum((task.X[:, 0] - task.X[:, 1]) ** 2, axis=1) / (2 * task.d)
    off = np.sum((task.targets - _mean_attention(task.model)) ** 2, axis=1)
    return float(2 * np.mean(weight * off) / positional.baseline(task.model))


@lru_cache(maxsize=64)
def _mean_attention(model: positional.Model) -> tuple[float, float]:
    """Return E T_11 and E T_22."""
    x, weights = np.polynomial.hermite_e.hermegauss(200)
    first, second = model.targets(model.token_scale * x[:, None], model.token_scale * x)
    weights = weights / weights.sum()
    return float(weights @ first @ weights), float(weights @ second @ weights)


def reaches(
    measurements: Sequence[Measurement[Any]],
    what: str,
    ratio: Callable[[Measurement[Any]], float],
    eps: float,
    sizes: int = SIZES,
) -> list[Test]:
    """Return a test for every setting: a ratio to theory, extrapolated to d = infinity, is 1 up to a share `eps`."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for m in measurements:
        groups.setdefault(m.point.label, []).append((m.point.d, ratio(m)))
    return [
        Test(f"{what}, {name}{LIMIT}", finite_size(rows, sizes=sizes), about(1, eps), expected=1.0)
        for name, rows in groups.items()
    ]


def leaks(*names: str) -> Callable[[Any, float], Any]:
    """Return a mutation's change: these entries of the first seed of every place are multiplied by the size."""

    def change(measurements: Sequence[Measurement[Any]], size: float) -> list[Measurement[Any]]:
        first: dict[Any, int] = {}
        for m in measurements:
            first[m.point] = min(m.seed, first.get(m.point, m.seed))
        return [
            replace(
                m, result=m.result | {name: np.multiply(m.result[name], size) for name in names if name in m.result}
            )
            if m.seed == first[m.point]
            else m
            for m in measurements
        ]

    return change


def mark_share(axis: "Axes", hits: Sequence[bool], row: float, marker: str, colour: str, **style: Any) -> None:
    """Draw how often something is true in a row of its own, with the 99 % interval."""
    found = share([bool(hit) for hit in hits])
    low, high = found.interval()
    bars = [[found.value - low], [high - found.value]]
    axis.errorbar(
        [found.value], [row], xerr=bars, fmt=marker, color=colour, capsize=2, markersize=5, linewidth=1, **style
    )
