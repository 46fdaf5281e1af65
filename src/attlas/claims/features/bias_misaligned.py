"""features.bias-misaligned: a bias helps only correlations aligned with it, and costs key averages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean
from attlas.claims.features import kit
from attlas.claims.features.kit import AXES, curve_points, draw_curves, labels
from attlas.claims.figure import THEORY, panels
from attlas.claims.finding import ending, span
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Region, Test, Verdict, below, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEST = 400  # test sequences
TARGETS = ("correlation 1", "rotated 1", "keys 2")
LEVELS = {0.5: "half", 0.2: "a fifth", 0.1: "a tenth"}  # of the variance
# factors in samples without over with bias, by target and level; at a fifth they are reported
GAINS = {
    ("aligned", 0.5): (1.1, 3.0),
    ("rotated", 0.5): (0.85, 1.1),
    ("rotated", 0.1): (0.3, 0.9),
    ("key averages", 0.1): (0.3, 0.9),
}


class Point(Settings):
    """Bias strength, tokens and the largest sample. Heads are infinitely many."""

    bias: PositiveFloat = 1.0
    d: PositiveInt
    keys: PositiveInt = 16
    n: int = Field(512, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets) without and with bias, on the same data."""
    data = kit.with_control(features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, seed), seed)
    sizes = features.sample_sizes(8, point.n, 3)
    plain, biased = data.attention(sizes), data.attention(sizes, point.bias)
    return {
        "plain": plain[:, :-1],
        "biased": biased[:, :-1],
        "permuted": float(min(plain[-1, -1], biased[-1, -1])),
        "sizes": np.array(sizes, dtype=float),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge the paired ratios of sample costs at every point: at a half, and where the bias hurts at a tenth."""
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    tests = kit.guards(measurements, ("plain", "biased"), "plain", lambda _: TARGETS)
    last = [float(max(m.result[key][-1].max() for key in ("plain", "biased"))) for m in measurements]
    tests.append(Test("last error over a tenth of the variance", mean(np.array(last) / 0.1), below(1.0)))
    ratios = {
        (point, target, level): [_costs(m, t, level) for m in measurements if m.point == point]
        for point in points
        for t, target in enumerate(("aligned", "rotated", "key averages"))
        for level in LEVELS
    }
    numbers: dict[str, float] = {}
    for (point, target, level), costs in ratios.items():
        if not kit.reached(costs):
            continue
        name, gain = f"{names[point]} {target}, {LEVELS[level]}: log gain", mean(np.log([a / b for a, b in costs]))
        if (target, level) in GAINS:
            tests.append(Test(name, gain, Region(*np.log(GAINS[target, level]))))
        else:
            numbers |= gain.numbers(name)
    found = kit.censored(tests, [ratios[point, *key] for point in points for key in GAINS])
    return found or decide(tests, "", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves."""
    learners = {"plain": "kernel", "biased": "biased"}
    return gather((row for m in measurements for row in curve_points(m, learners, TARGETS)), *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the curves of the three targets at the largest d, without and with bias."""
    figure, axes = panels(len(TARGETS), width=3.8)
    point = max((m.point for m in measurements), key=lambda p: p.d)
    found = series([m for m in measurements if m.point == point])
    for target, axis in zip(TARGETS, axes, strict=True):
        draw_curves(axis, [s for s in found if s.settings["target"] == target], target)
        axis.axhline(0.5, linestyle=":", **THEORY)
    axes[0].set_ylabel(f"test error / variance, d = {point.d}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return what the bias does to each target, in a sentence."""
    aligned, rotated, late, keys = (
        span(np.exp(ending(numbers, f"{end}: log gain")))
        for end in ("aligned, half", "rotated, half", "rotated, a tenth", "key averages, a tenth")
    )
    return (
        f"A bias helps only what it is aligned with: it divides the samples that halve the error by {aligned} for an aligned"
        f" correlation and by {rotated} for a rotated one; down to a tenth of the variance it divides them by {late} for the"
        f" rotated one and by {keys} for key averages, so it costs samples"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels and their factorisations."""
    return kit.kernels_cost(point.n, point.keys, TEST)


def _costs(m: Measurement[Point], target: int, level: float) -> tuple[float, float]:
    """Return the sample costs without and with bias."""
    sizes = m.result["sizes"]
    plain, biased = (kit.cost_of(sizes, m.result[key][:, target], level) for key in ("plain", "biased"))
    return plain, biased


def _rotated(result: Result, size: float) -> Result:
    """Return the results of a bias a share `size` of which acts on the rotated correlation."""
    biased = np.array(result["biased"])
    own, other = np.log(result["biased"][:, 0]), np.log(result["biased"][:, 1])
    biased[:, 0], biased[:, 1] = np.exp((1 - size) * own + size * other), np.exp((1 - size) * other + size * own)
    return {"biased": biased}


CLAIM = Claim(
    id="features.bias-misaligned",
    version=4,
    statement=(
        "A query-key bias saves samples only on correlations aligned with it (over 1.1 times, to half of the variance). For"
        " a rotated correlation it changes that cost by at most 15 %, and to a tenth of the variance it costs over 1.1 times"
        " as many samples on rotated correlations and on averages of key functions (d = 10 in the quick tier, 8 to 12 in the"
        " full one; ours, after Fu et al. 2023)."
    ),
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle x_0,U x_i\rangle:\qquad\frac{n_{50}(0)}{n_{50}(b)}>1\;\text{ for }U=I,"
        r"\;\;\le1\;\text{ for a random rotation }U"
    ),
    source="fu2023random, section 3.3; the rotated correlation is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=10, keys=6, n=960)], seeds=11),
        "full": Sweep([Point(d=d, keys=16, n=n) for d, n in ((8, 900), (10, 1200), (12, 1500))], seeds=(12, 12, 10)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Learning curves without and with a query-key bias at the largest d, for a correlation aligned with the bias, a"
        " rotated one, and a key average (a constant predictor scores 1). Means over draws with standard errors; the dotted"
        " line is one half."
    ),
    finding=finding,
    series=series,
    mutations=(
        Mutation(
            "a share {size:g} of the bias acts on the rotated correlation", (0.1, 0.5, 1.0), 1.0, changed(_rotated)
        ),
        Mutation("a bias without effect", (1.0,), 1.0, changed(lambda r, _: {"biased": r["plain"]})),
        Mutation(
            "a bias that costs {size:g} times as many samples",
            (1.1, 1.3, 2.0),
            1.3,
            changed(lambda r, size: {"biased": kit.delayed(r["sizes"], r["biased"], size)}),
        ),
        Mutation(
            "a learner that predicts the mean",
            (1.0,),
            1.0,
            changed(lambda r, size: {key: np.full_like(r[key], size) for key in ("plain", "biased")}),
        ),
        *kit.leaks("plain", "biased"),
    ),
    unseen="a rotated correlation that gains or loses less than a tenth at half of the variance",
    design=(
        "The 70 runs of version 2 at d = 8 and 10, with other random numbers, are the pilot: seven seeds at each left the"
        " rotated correlation undecided at half of the variance. It scatters less at d = 10, where eleven seeds drawn from"
        " 35 support the claim in 99.5 % of 600 draws."
    ),
)
