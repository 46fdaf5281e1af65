"""features.bias-misaligned: a bias helps only correlations aligned with it, and costs key averages, as theory predicts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean
from attlas.claims.features import kit
from attlas.claims.features.kit import AXES, draw_curves, labels, theory_points
from attlas.claims.figure import THEORY, finished, panels
from attlas.claims.finding import ending, off, span
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Region, Test, Verdict, above, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TEST = 600  # test sequences
TARGETS = ("correlation 1", "rotated 1", "keys 2")
LEVELS = {0.5: "half", 0.2: "a fifth", 0.1: "a tenth"}  # of the variance
# the levels at which each is judged: with bias an aligned correlation takes far more samples to a tenth than the others
JUDGED = {"aligned": (0.5, 0.2), "rotated": (0.5, 0.2, 0.1), "key averages": (0.5, 0.2, 0.1)}
EPS = 0.15  # of the cost without bias
GAIN_EPS = {"aligned": 0.2, "rotated": 0.1, "key averages": 0.1}  # of its ratio to that with bias
SIGNS: dict[tuple[str, float], Region] = {  # of the log gain
    ("aligned", 0.5): above(np.log(1.1)),
    ("rotated", 0.1): below(-np.log(1.1)),
    ("key averages", 0.1): below(-np.log(1.1)),
}


class Point(Settings):
    """Bias strength, tokens and the largest sample. Heads are infinitely many."""

    bias: PositiveFloat = 1.0
    d: int = Field(ge=5)
    keys: PositiveInt = 16
    n: int = Field(512, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets) without and with bias, on the same data, and what theory predicts.

    ``costs`` are the predicted sample costs (without and with bias, levels, targets).
    """
    data = kit.with_control(features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, seed), seed)
    sizes = features.sample_sizes(8, point.n, 3)
    plain, biased = data.attention(sizes), data.attention(sizes, point.bias)
    theories = [kit.theory(point.d, point.keys, bias) for bias in (0.0, point.bias)]
    curves = [kit.predicted_curves(own, TARGETS, tuple(sizes)) for own in theories]
    return {
        "plain": plain[:, :-1],
        "biased": biased[:, :-1],
        "permuted": float(min(plain[-1, -1], biased[-1, -1])),
        "sizes": np.array(sizes, dtype=float),
        "plain_theory": curves[0],
        "biased_theory": curves[1],
        "costs": np.array([kit.predicted_costs(own, TARGETS, tuple(LEVELS)) for own in theories]),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge costs without bias, and their paired ratios to those with bias, against the predicted ones at every point."""
    kit.require_finite(measurements, "plain", "biased")
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    tests = kit.guards(measurements, ("plain", "biased"), "plain", lambda _: TARGETS)
    last = [float(max(m.result[key][-1, 1:].max() for key in ("plain", "biased"))) for m in measurements]
    tests.append(Test("last error over a tenth of the variance", mean(np.array(last) / 0.1), below(1.0)))
    everything = []
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        for t, (target, levels) in enumerate(JUDGED.items()):
            for level in levels:
                plain, biased = (
                    kit.run_costs(mine[0]["sizes"], [r[key][:, t] for r in mine], level) for key in ("plain", "biased")
                )
                everything += [plain, biased]
                if np.isfinite([plain, biased]).all():
                    expected = np.log(mine[0]["costs"][:, list(LEVELS).index(level), t])
                    tests += _tests(
                        f"{names[point]} {target}, {LEVELS[level]}", GAIN_EPS[target], plain, biased, expected
                    )
                    if (target, level) in SIGNS:
                        name = f"{names[point]} {target}, {LEVELS[level]}: log gain"
                        tests.append(Test(name, mean(plain - biased), SIGNS[target, level]))
    found = kit.censored(tests, np.exp(np.concatenate(everything)))
    numbers = _reported([m.result for m in measurements if m.point == points[-1]])
    return found or decide(tests, "", numbers)


def _tests(label: str, eps: float, plain: Array, biased: Array, expected: Array) -> list[Test]:
    """Return the tests of the log cost without bias and of the log gain, less what is expected."""
    both = {
        "cost without bias": (EPS, plain - expected[0]),
        "gain": (eps, plain - biased - expected[0] + expected[1]),
    }
    return [
        Test(f"{label}: log {name} over prediction", mean(off), between(-np.log(1 + most), np.log(1 + most)), 0.0)
        for name, (most, off) in both.items()
    ]


def _reported(mine: Sequence[Result]) -> dict[str, float]:
    """Return measured and predicted gains at the last point."""
    found = {}  # type: ignore[var-annotated]
    for t, (target, levels) in enumerate(JUDGED.items()):
        for level in levels:
            plain, biased = (
                kit.run_costs(mine[0]["sizes"], [r[key][:, t] for r in mine], level) for key in ("plain", "biased")
            )
            without, with_bias = mine[0]["costs"][:, list(LEVELS).index(level), t]
            found |= {
                f"{target}, {LEVELS[level]}: gain": float(np.exp(np.mean(plain - biased))),
                f"{target}, {LEVELS[level]}: predicted gain": float(without / with_bias),
            }
    return found


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves with their predictions."""
    learners = {"plain": "kernel", "biased": "biased"}
    return gather((row for m in measurements for row in theory_points(m, learners, TARGETS)), *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the curves of the three targets at the largest d, without and with bias, theory as lines."""
    figure, axes = panels(len(TARGETS), width=3.8)
    point = max((m.point for m in measurements), key=lambda p: p.d)
    found = series([m for m in measurements if m.point == point])
    titles = ("aligned correlation", "rotated correlation", "key average, degree two")
    for target, title, axis in zip(TARGETS, titles, axes, strict=True):
        draw_curves(axis, [s for s in found if s.settings["target"] == target], title)
        for level in LEVELS:
            axis.axhline(level, linestyle=":", **THEORY)
    axes[0].set_ylabel(f"test error / variance, d = {point.d}")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return what the bias does to each target beside what is predicted, in a sentence."""
    words = []
    for end in ("aligned, half", "rotated, half", "rotated, a tenth", "key averages, a tenth"):
        gain, predicted = (ending(numbers, f"{end}: {which}")[-1] for which in ("gain", "predicted gain"))
        half = gain * ending(numbers, f"{end}: log gain over prediction ±")[-1]
        words.append(f"{gain:.2f} {off(half)} ({predicted:.2f})")
    over = np.exp(ending(numbers, ": log gain over prediction"))
    error = max(ending(numbers, ": log gain over prediction ±"))
    return (
        "A bias helps only what it is aligned with, as much as theory predicts (in brackets): it divides the samples that"
        f" halve the error by {words[0]} for an aligned correlation and by {words[1]} for a rotated one; down to a tenth of"
        f" the variance by {words[2]} for the rotated one and by {words[3]} for key averages. Measured over predicted is"
        f" {span(over)}, each to ± {error:.0%} or better"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels and their factorisations."""
    return kit.kernels_cost(point.n, point.keys, TEST)


def _rotated(result: Result, size: float) -> Result:
    """Return the results of a bias a share `size` of which acts on the rotated correlation."""
    biased = np.array(result["biased"])
    own, other = np.log(result["biased"][:, 0]), np.log(result["biased"][:, 1])
    biased[:, 0], biased[:, 1] = np.exp((1 - size) * own + size * other), np.exp((1 - size) * other + size * own)
    return {"biased": biased}


def _predictions(result: Result, size: float) -> Result:
    return {"costs": size * result["costs"]}


CLAIM = Claim(
    id="features.bias-misaligned",
    version=5,
    statement=(
        "A query-key bias saves samples only on correlations aligned with it, as much as the theory of the test error"
        " predicts without a fit: down to a half and a fifth of the variance, and for rotated correlations and averages of"
        " key functions to a tenth, the cost without bias is predicted to 15 %, and its ratio to that with bias to 10 %"
        " (20 % for aligned correlations). The bias saves samples on an aligned correlation (over 1.1 times, to a half), and"
        " to a tenth it costs them (over 1.1 times) on rotated ones and on averages of key functions (d = 10 in the quick"
        " tier, 8 to 12 in the full one; ours, after Fu et al. 2023)."
    ),
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle x_0,U x_i\rangle:\qquad\frac{n_{\varepsilon}(0)}{n_{\varepsilon}(b)}"
        r"=\left[\frac{n_{\varepsilon}(0)}{n_{\varepsilon}(b)}\right]_{\text{theory}},\quad U=I\text{ or a rotation}"
    ),
    source="fu2023random, section 3.3; the rotated correlation and the theory are ours (docs/features.md)",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=10, keys=4, n=720)], seeds=22),
        "full": Sweep([Point(d=d, keys=8, n=n) for d, n in ((8, 540), (10, 780), (12, 1060))], seeds=(24, 20, 16)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Learning curves without and with a query-key bias at the largest d, for a correlation aligned with the bias, a"
        " rotated one, and a key average (a constant predictor scores 1). Points are means over draws with standard errors,"
        " lines the theory; dotted lines are the levels at which costs are compared."
    ),
    finding=finding,
    series=series,
    mutations=(
        Mutation("theory predicts {size:g} of the samples", (0.95, 0.8, 0.5), 0.8, changed(_predictions)),
        Mutation("theory predicts {size:g} times the samples", (1.05, 1.3, 2.0), 1.3, changed(_predictions)),
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
    unseen=(
        "a gain of rotated correlations or key averages that is off by less than a twentieth, and what the bias costs"
        " aligned correlations below a fifth of the variance, which features.bias-correlation judges"
    ),
    design=(
        "A pilot (runs 1000 and 1001, 18 seeds each) knows log costs to 0.012 to 0.030 (standard errors), log gains to 0.008"
        " to 0.015 and, for aligned correlations, to 0.013 to 0.031; aligned gains at a fifth are 4 to 5 % above the"
        " prediction. 18 seeds support the claim in 86 % and 99 % of resampled runs if theory is true, 22 seeds in all."
    ),
)
