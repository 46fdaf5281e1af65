"""What claims about learners share: every learner on the same data, and how often each succeeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas.claims.claim import Cost, Measurement, Outcome, Result, Settings, Verdict
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels
from attlas.claims.recovery.kit.tasks import LEARNERS, SUCCESS, counted, learned, planted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99


class Point(Settings):
    """Heads, tokens, the size of the logits, the number of examples and the steps of Adam."""

    heads: PositiveInt
    d: int = Field(8, ge=2)
    k: int = Field(4, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(600, ge=20)
    adam_steps: PositiveInt = 10_000


def compare(law: Literal["boolean", "gaussian"], point: Point, seed: int) -> Result:
    """Return the relative error of every learner on fresh examples: the same data, budgets in steps."""
    _, data, fresh = planted(law, point.heads, point.d, point.k, point.scale, point.n, seed)
    found = {name: learned(name, data, point.heads, seed, point.adam_steps) for name in LEARNERS}
    return {name: fresh.residual(layer.Theta, layer.W) for name, layer in found.items()}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """In every setting variable projection succeeds more often than not (99 % together); the others are reported."""
    settings = list(dict.fromkeys(_label(m.point) for m in measurements))
    level = 1 - (1 - LEVEL) / len(settings)
    if any(m.result[name] == 0 or np.isnan(m.result[name]) for m in measurements for name in LEARNERS):
        return Verdict(Outcome.REFUTED, "an error is exactly zero, or not a number", -np.inf, "of a share")
    numbers: dict[str, float] = {}
    margins, lost = [], 0
    for setting in settings:
        mine = [m for m in measurements if _label(m.point) == setting]
        for name in LEARNERS:
            errors = [m.result[name] for m in mine]
            hits, low, high = counted(errors, level)
            numbers |= {
                f"{setting} {name} successes of {len(mine)}": float(hits),
                f"{setting} {name} share low": low,
                f"{setting} {name} share high": high,
                f"{setting} {name} median error": float(np.median(errors)),
            }
        low, high = numbers[f"{setting} varpro share low"], numbers[f"{setting} varpro share high"]
        margins.append(low - 0.5)
        lost += high < 0.5
    totals = {name: sum(m.result[name] < SUCCESS for m in measurements) for name in LEARNERS}
    worst = max(m.result["varpro"] for m in measurements)
    reason = (
        ", ".join(f"{name} succeeds in {hits} of {len(measurements)}" for name, hits in totals.items())
        + f" runs; the worst error of varpro is {worst:.1e}"
    )
    outcome = Outcome.REFUTED if lost else Outcome.SUPPORTED if min(margins) > 0 else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, min(margins), "of a share", numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw every run of every learner, by setting."""
    figure, (axis,) = panels(1, width=7)
    settings = list(dict.fromkeys(_label(m.point) for m in measurements))
    for i, name in enumerate(LEARNERS):
        rows = [settings.index(_label(m.point)) + 0.2 * (i - 1) for m in measurements]
        axis.plot([m.result[name] for m in measurements], rows, MARKERS[i], color=COLOURS[i], alpha=0.6, label=name)
    axis.axvline(SUCCESS, linestyle=":", **THEORY)
    axis.set(xlabel="relative error on fresh examples", xscale="log", ylim=(-0.6, len(settings) - 0.4))
    axis.set_yticks(range(len(settings)), settings)
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect the batches of Adam above all."""
    work = point.heads * point.k * point.d * (point.d + point.k)
    return Cost(0.5 + 3e-4 * point.adam_steps * (1 + work / 1000) + 1e-6 * point.n * work, 200_000_000)


def _label(point: Point) -> str:
    return f"m={point.heads} d={point.d} k={point.k} s={point.scale:g} n={point.n} Adam {point.adam_steps}"
