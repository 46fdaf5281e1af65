"""features.activations: relu attention errs as theory predicts, and does as well as softmax attention."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean, resampled
from attlas.claims.features import kit
from attlas.claims.features.kit import AXES, labels, words
from attlas.claims.figure import COLOURS, MARKERS, drawn, finished, panels, ticks
from attlas.claims.finding import interval, named, spans
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ACTIVATIONS = ("relu", "softmax")
EQUAL = 0.05  # of the variance: errors that differ by less are as good
EPS = 0.25  # of relu's errors beside the predicted ones, each target over all n
MEDIAN, NINE = 0.1, 0.2  # of the deviations of log errors over targets and n
LEAD = 0.3  # of the variance: no lead of relu on what both learn is larger
NOTHING = (0.9, 1.2)  # errors at which nothing was learned
LEARNED = 0.4  # the largest last error of relu on what softmax does not learn
BOTH = ("query 1", "keys 1", "weighted 1")  # targets that both learn alike
AHEAD = ("keys 2",)  # relu is ahead
RELU = ("query 2", "correlation 1", "rotated 1")  # softmax learns nothing
TARGETS = ("correlation 1", "rotated 1", "query 2", "query 1", "keys 1", "keys 2", "weighted 1")


class Point(Settings):
    """Heads, tokens, bias and the largest sample."""

    heads: PositiveInt = 200
    d: int = Field(8, ge=2)
    keys: PositiveInt = 8
    bias: float = 0.0
    n: int = Field(1024, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets) of both activations: the same heads, the same data."""
    data = kit.with_control(features.TargetData(TARGETS, point.d, point.keys, point.n, 1000, seed), seed)
    sizes = sorted({2 * point.d, *features.sample_sizes(point.n // 8, point.n, 1)})  # the first for the guard
    curves = {
        name: data.features(
            features.RandomAttentionFeatures(point.heads, bias=point.bias, activation=name, random_state=seed), sizes
        )
        for name in ACTIVATIONS
    }
    return {
        "sizes": np.array(sizes, dtype=float),
        "permuted": float(min(curve[-1, -1] for curve in curves.values())),
        **{name: curve[:, :-1] for name, curve in curves.items()},
        "relu_theory": kit.predicted_curves(
            kit.theory(point.d, point.keys, point.bias), TARGETS, tuple(sizes), point.heads
        ),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge relu's errors against the predicted ones, and the last ones beside softmax's: alike, ahead, or alone."""
    kit.require_finite(measurements, *ACTIVATIONS)
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    tests = kit.guards(measurements, ACTIVATIONS, "relu", lambda p: TARGETS if p.bias == 0 else ("",) * len(TARGETS))
    numbers: dict[str, float] = {}
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        tests += _against_theory(names[point], mine)
        for t, target in enumerate(TARGETS):
            label = f"{names[point]} {target}"
            curves = {a: np.array([r[a][:, t] for r in mine]) for a in ACTIVATIONS}
            relu, softmax = (curves[a][:, -1] for a in ACTIVATIONS)
            gap = curves["relu"] - curves["softmax"]
            # where softmax is ahead on the way is reported
            numbers[f"{label}: largest lead of softmax at any n"] = float(gap[:, 1:].mean(0).max())
            if target in RELU:
                tests.append(Test(f"{label}: softmax", mean(softmax), between(*NOTHING), 1.0))
                tests.append(Test(f"{label}: relu", mean(relu), below(LEARNED)))
            else:
                region = between(-LEAD, EQUAL) if target in BOTH else between(-1.0, -EQUAL)
                tests.append(Test(f"{label}: relu - softmax", mean(relu - softmax), region))
                numbers |= {f"{label} {a}": float(curves[a][:, -1].mean()) for a in ACTIVATIONS}
    return decide(tests, "", numbers)


def _against_theory(label: str, mine: Sequence[Result]) -> list[Test]:
    """Return the tests of relu's mean errors over seeds against the predicted ones, from the second size on."""
    off = kit.run_logs([r["relu"][1:] for r in mine]) - np.log(mine[0]["relu_theory"][1:])
    region = between(-np.log(1 + EPS), np.log(1 + EPS))
    tests = [
        Test(f"{label} {target}: log error of relu over prediction", mean(off[:, :, t].mean(1)), region, 0.0)
        for t, target in enumerate(TARGETS)
    ]
    for name, share, most in (("median", 0.5, MEDIAN), ("nine in ten", 0.9, NINE)):
        size = resampled(partial(_deviation, share), {"runs": off})
        tests.append(Test(f"{label}: deviation of relu's log errors, {name}", size, below(most)))
    return tests


def _deviation(share: float, runs: Mapping[str, Array]) -> float:
    return float(np.quantile(np.abs(runs["runs"].mean(0)), share))


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves of each activation."""
    rows = []
    for m in measurements:
        for activation in ACTIVATIONS:
            none = [[None] * len(m.result["sizes"])] * len(TARGETS)  # softmax has no theory
            theory = m.result["relu_theory"].T.tolist() if activation == "relu" else none
            for target, curve, own in zip(TARGETS, m.result[activation].T, theory, strict=True):
                settings = {"target": target, **m.point.model_dump(exclude={"n"})}
                rows += [(activation, settings, n, e, p) for n, e, p in zip(m.result["sizes"], curve, own, strict=True)]
    return gather(rows, *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the curves of four targets, averaged over seeds."""
    shown = ("query 2", "keys 2", "correlation 1", "weighted 1")
    figure, axes = panels(len(shown), width=3)
    point = max((m.point for m in measurements), key=lambda p: (p.d, p.n))
    found = series([m for m in measurements if m.point == point])
    for axis, name in zip(axes, shown, strict=True):
        for one in (s for s in found if s.settings["target"] == name):
            look = ACTIVATIONS.index(one.name)
            drawn(axis, one, one.name.replace("relu", "ReLU"), color=COLOURS[look], fmt=MARKERS[look])
        axis.set(xlabel="samples n", xscale="log", yscale="log", title=words(name))
        ticks(axis, found[0].x)
    axes[0].set_ylabel(f"test error / variance, d = {point.d}")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return how far relu is from theory, the gaps on what both learn, and what softmax does not learn, in a sentence."""
    typical = named(numbers, end="log errors, median")[-1]
    nothing, relu = (spans(numbers, f": {end}") for end in ("softmax", "relu"))
    return (
        f"ReLU attention errs as theory predicts, to {interval(numbers, typical, '.1%')} in the median, and loses nothing to"
        f" softmax: where both learn, its error differs by {spans(numbers, ': relu - softmax')} of the variance; on"
        f" squares of the query and on correlations softmax learns nothing, with an error of {nothing}, and ReLU does, with"
        f" {relu}"
    )


def cost(point: Point) -> Cost:
    """Expect the products of the features and the factorisations, twice."""
    p, rows = point.heads * (point.d + 1), point.n + 1000
    seconds = 0.08 + 2.5e-11 * (rows * p * point.n + rows * p * (point.keys + 1) * point.d) + 8e-10 * point.n**3
    return Cost(seconds, int(200_000_000 + 16 * rows * p))


CLAIM = Claim(
    id="features.activations",
    version=4,
    statement=(
        "With random heads ReLU attention errs as the theory of the test error predicts without a fit: to 10 % in the median"
        " over seven targets and all n, nine in ten to 20 %, each target on average over n to 25 %. And it does as well as"
        " softmax attention, which has no such theory (Fu et al. 2023 study ReLU in its place): at the largest n its error"
        " exceeds softmax's by less than 0.05 of the variance on linear functions and on a weighted correlation, is lower by"
        " more than that on squares of keys, and on squares of the query and on correlations softmax learns nothing."
    ),
    formula=(
        r"\varphi_m=\frac{1}{N}\sum_{i=1}^{N}\operatorname{act}(s_{mi})\,\tilde x_i,\qquad"
        r"\operatorname{act}(s_{mi})=\max(s_{mi},0)\;\text{ or }\;\frac{N\,e^{s_{mi}}}{\sum_j e^{s_{mj}}}"
    ),
    source="fu2023random, section 2, which studies relu in place of softmax; the theory is ours (docs/features.md)",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=200, d=6, keys=6, n=512)], seeds=40),
        "full": Sweep([Point(heads=400, d=10, keys=8, n=1200, bias=b) for b in (0.0, 1.0)], seeds=16),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Test error over variance against samples, for ReLU and softmax attention with the same frozen heads, on four"
        " targets (a constant predictor scores 1). Points are means over draws with standard errors; lines are the theory,"
        " which only ReLU has."
    ),
    finding=finding,
    series=series,
    mutations=(
        Mutation("theory predicts {size:g} of relu's errors", (0.95, 0.7, 0.4), 0.7, scaled("relu_theory")),
        Mutation("theory predicts {size:g} times relu's errors", (1.05, 1.4, 3.0), 1.4, scaled("relu_theory")),
        Mutation(
            "relu's error is larger by {size:g} of the variance",
            (0.02, 0.1, 0.5),
            0.1,
            changed(lambda r, size: {"relu": r["relu"] + size}),
        ),
        Mutation(
            "softmax learns {size:g} of what relu does",
            (0.05, 0.5, 1.0),
            0.5,
            changed(lambda r, size: {"softmax": (1 - size) * r["softmax"] + size * r["relu"]}),
        ),
        Mutation("relu errs by {size:g}", (0.0,), 0.0, changed(lambda r, size: {"relu": size * r["relu"]})),
        Mutation(
            "both predict the mean", (1.0,), 1.0, changed(lambda r, _: {a: np.ones_like(r[a]) for a in ACTIVATIONS})
        ),
        *kit.leaks("relu", "softmax"),
    ),
    unseen=(
        "a lead of softmax at smaller n, which is reported; differences below 0.05 of the variance; one target's errors off"
        " by a tenth: those of query 2 are predicted too low by that much"
    ),
    design=(
        "A pilot with 100 heads (runs 1000 and 1001, 16 seeds each) had deviations of 5 % in the median and 11 to 18 % for"
        " squares of the query, whose theory is least sharp at few heads. With 200 heads and 40 seeds they are 3 to 4 %,"
        " and 6 to 11 % with an error of 2 %. With 8 % allowed in the median the claim is supported in 78 % and 70 % of"
        " resampled runs, with 10 % in 98 % and 100 % (of 120)."
    ),
)
