"""recovery.gaussian-tokens: and from Gaussian ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field, PositiveFloat, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Result, Settings, Sweep, Verdict
from attlas.claims.recovery_learners import draw_errors, judge_learners
from attlas.claims.recovery_tasks import LEARNERS, learned, planted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Point(Settings):
    """Heads, tokens, the size of the logits and the number of examples."""

    heads: PositiveInt
    d: int = Field(8, ge=2)
    k: int = Field(4, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(600, ge=20)
    adam_steps: PositiveInt = 10_000


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of every learner on fresh examples: the same data, budgets in steps."""
    _, data, fresh = planted("gaussian", point.heads, point.d, point.k, point.scale, point.n, seed)
    found = {name: learned(name, data, point.heads, seed, point.adam_steps) for name in LEARNERS}
    return {name: fresh.residual(layer.Theta, layer.W) for name, layer in found.items()}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """In every setting variable projection succeeds more often than not (99 % together); the others are reported."""
    return judge_learners(measurements, _label)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw every run of every learner."""
    return draw_errors(measurements, _label)


def cost(point: Point) -> Cost:
    """Expect the batches of Adam above all."""
    work = point.heads * point.k * point.d * (point.d + point.k)
    return Cost(0.5 + 3e-4 * point.adam_steps * (1 + work / 1000) + 1e-6 * point.n * work, 200_000_000)


def _label(point: Point) -> str:
    return f"m={point.heads} d={point.d} k={point.k} s={point.scale:g} n={point.n}"


CLAIM = Claim(
    id="recovery.gaussian-tokens",
    version=1,
    statement="A non-degenerate layer of m heads is learned from random Gaussian tokens, too.",
    source="chen2024provably, theorem 1 for sculpting; the learners here are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=2, d=6, n=400, adam_steps=2000)], seeds=12),
        "full": Sweep([Point(heads=m, d=d, n=1500) for m in (1, 2, 3) for d in (8, 12)], seeds=10),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
