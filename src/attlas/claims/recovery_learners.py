"""The decision that claims about learners share: how often each succeeds, with its binomial interval."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.claims.claim import Measurement, Outcome, Verdict
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels
from attlas.claims.recovery_tasks import LEARNERS, SUCCESS, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99


def judge_learners(measurements: Sequence[Measurement[Any]], label: Callable[[Any], str]) -> Verdict:
    """In every setting variable projection succeeds more often than not (99 % together); the others are reported."""
    settings = list(dict.fromkeys(label(m.point) for m in measurements))
    level = 1 - (1 - LEVEL) / len(settings)
    if any(m.result[name] == 0 or np.isnan(m.result[name]) for m in measurements for name in LEARNERS):
        return Verdict(Outcome.REFUTED, "an error is exactly zero, or not a number", -np.inf, "of a share")
    numbers: dict[str, float] = {}
    margins, lost = [], 0
    for setting in settings:
        mine = [m for m in measurements if label(m.point) == setting]
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


def draw_errors(measurements: Sequence[Measurement[Any]], label: Callable[[Any], str]) -> "Figure":
    """Draw every run of every learner, by setting."""
    figure, (axis,) = panels(1, width=7)
    settings = list(dict.fromkeys(label(m.point) for m in measurements))
    for i, name in enumerate(LEARNERS):
        rows = [settings.index(label(m.point)) + 0.2 * (i - 1) for m in measurements]
        axis.plot([m.result[name] for m in measurements], rows, MARKERS[i], color=COLOURS[i], alpha=0.6, label=name)
    axis.axvline(SUCCESS, linestyle=":", **THEORY)
    axis.set(xlabel="relative error on fresh examples", xscale="log", ylim=(-0.6, len(settings) - 0.4))
    axis.set_yticks(range(len(settings)), settings)
    axis.legend(frameon=False, fontsize=9)
    return figure
