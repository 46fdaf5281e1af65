"""What claims about learners share: every learner on the same data, and how often each succeeds."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas.claims.claim import Cost, Measurement, Numbers, Result, Settings
from attlas.claims.figure import THEORY, drawn, panels
from attlas.claims.learners import learner
from attlas.claims.recovery.kit.figures import magnitude, runs, shifted
from attlas.claims.recovery.kit.tasks import LEARNERS, SUCCESS, Budget, counted, planted, tally
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
CAPTION = (
    "Error of every learner on fresh examples, on a logarithmic scale, against the number of heads: each run faintly, and"
    " means with standard errors. A run below the dotted line has found the layer."
)


class Point(Settings):
    """Heads, tokens, the size of the logits, the number of examples and the steps of Adam."""

    heads: PositiveInt
    d: int = Field(8, ge=2)
    k: int = Field(4, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(600, ge=20)
    adam_steps: PositiveInt = 10_000


def compare(law: Literal["boolean", "gaussian"], point: Point, seed: int) -> Result:
    """Return the relative error of every learner on fresh examples: the same data, budgets in steps.

    `converged` is about variable projection, on which the verdict rests.
    """
    _, data, fresh = planted(law, point.heads, point.d, point.k, point.scale, point.n, seed)
    budget = Budget(adam_steps=point.adam_steps)
    fits = {name: learn(data, point.heads, seed, budget) for name, learn in LEARNERS.items()}
    errors = {name: fresh.residual(fit.Theta, fit.W) for name, fit in fits.items()}
    return errors | {"converged": fits["varpro"].converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """In every setting variable projection succeeds more often than not (99 % together); the others are reported."""
    settings = list(dict.fromkeys(_label(m.point) for m in measurements))
    level = 1 - (1 - LEVEL) / len(settings)
    if any(m.result[name] == 0 or np.isnan(m.result[name]) for m in measurements for name in LEARNERS):
        return Verdict(Outcome.REFUTED, "an error is exactly zero, or not a number", -np.inf, "in success rate")
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
    worst = max(m.result["varpro"] for m in measurements)
    reason = f"{successes(numbers)}; the largest error of variable projection is {worst:.1e}"
    outcome = Outcome.REFUTED if lost else Outcome.SUPPORTED if min(margins) > 0 else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, min(margins), "in success rate", numbers)


def successes(numbers: Numbers) -> str:
    """Return how often each learner succeeds, in words."""
    hits = {name: tally(numbers, f"{name} successes of") for name in LEARNERS}
    first, *others = (f"{learner(name).name} finds the layer in {hit} of {of} runs" for name, (hit, of) in hits.items())
    return ", ".join([first, *(other.replace("finds the layer ", "") for other in others)])


def finding(tokens: str) -> Callable[[Numbers], str]:
    """Return what was found, on tokens of some kind."""
    return lambda numbers: f"From random {tokens} examples and random starts {successes(numbers)}"


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the errors of every learner against the number of heads, as powers of ten."""
    rows = [
        (name, m.point.model_dump(exclude={"heads"}), m.point.heads, magnitude(m.result[name]), None)
        for name in LEARNERS
        for m in measurements
    ]
    return gather(rows, "heads m", "log10 of the relative error on fresh examples")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw a panel for every setting but the heads."""
    settings = list(dict.fromkeys(tuple(m.point.model_dump(exclude={"heads"}).items()) for m in measurements))
    figure, axes = panels(len(settings), width=max(3.4, 6 / len(settings)))
    for axis, setting in zip(axes, settings, strict=True):
        mine = [m for m in measurements if tuple(m.point.model_dump(exclude={"heads"}).items()) == setting]
        for i, name in enumerate(LEARNERS):
            aside = 0.15 * (i - 1)
            places = [m.point.heads + aside for m in mine]
            runs(axis, places, [magnitude(m.result[name]) for m in mine], name)
            for one in series(mine):
                if one.name == name:
                    drawn(axis, shifted(one, aside), linestyle="none")
        axis.axhline(magnitude(SUCCESS), linestyle=":", **THEORY)
        point = mine[0].point
        axis.set_title(f"d = {point.d}, k = {point.k}, s = {point.scale:g}, n = {point.n}", fontsize=9)
        heads = sorted({m.point.heads for m in mine})
        axis.set(xlabel="heads m", xlim=(heads[0] - 0.6, heads[-1] + 0.6))
        axis.set_xticks(heads)
    axes[0].set_ylabel("log₁₀ of the error on fresh examples")
    axes[-1].legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect the batches of Adam above all."""
    work = point.heads * point.k * point.d * (point.d + point.k)
    return Cost(0.5 + 3e-4 * point.adam_steps * (1 + work / 1000) + 1e-6 * point.n * work, 200_000_000)


def _label(point: Point) -> str:
    return f"m={point.heads} d={point.d} k={point.k} s={point.scale:g} n={point.n} Adam {point.adam_steps}"
