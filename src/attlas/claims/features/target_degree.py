"""features.target-degree: theory predicts the sample cost of every target, and their order better than B(f) does."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Student, mean, resampled
from attlas.claims.features import kit
from attlas.claims.features.kit import labels, words
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels
from attlas.claims.finding import ending, off
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, between, decide
from attlas.features import complexity, targets
from attlas.numerics import rank_correlation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TEST = 500  # test sequences
TILT, MEDIAN, NINE = 0.1, 0.08, 0.2  # of log costs: mean deviation from theory, median and nine-in-ten size of it
ROUNDING = 1e-12  # half an interval that is narrower is that of a number without scatter
ORDER, DEGREE, COMPLEXITY = 0.97, 0.9, 0.6  # the least rank correlations: with theory, with the degree, with B(f)
ERROR = 0.1  # for 0.5 the linear part of an odd power is enough
TENTH, PREDICTED = "samples to a tenth of the variance", "predicted samples"
TARGETS = (
    *(f"query {p}" for p in (1, 2, 3, 4)),
    *(f"keys {p}" for p in (1, 2, 3, 4)),
    *(
        f"{family} {p}" for family in ("correlation", "weighted") for p in (1, 2)
    ),  # rotated ones are the same without bias
)


class Point(Settings):
    """Tokens and the largest sample. Heads are infinitely many, without bias."""

    d: int = Field(4, ge=2)
    keys: PositiveInt = 8
    n: int = Field(2000, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets), what each target is in theory, and what that predicts."""
    data = kit.with_control(features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, seed), seed)
    sizes = features.sample_sizes(3, point.n, 2)
    curves = data.attention(sizes)
    own = kit.theory(point.d, point.keys)
    functions = [complexity(targets.named(name, point.d, seed), point.d) for name in TARGETS]
    return {
        "curves": curves[:, :-1],
        "permuted": float(curves[-1, -1]),
        "sizes": np.array(sizes, dtype=float),
        "degree": np.array([float(sum(f.degrees)) for f in functions]),
        "B": np.array([f.B for f in functions]),
        "rkhs": np.array([f.rkhs for f in functions]),
        "variance": data.variance[: len(TARGETS)],
        "curves_theory": kit.predicted_curves(own, TARGETS, tuple(sizes)),
        "costs": kit.predicted_costs(own, TARGETS, (ERROR,))[0],
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge the costs of all targets (of mean curves over seeds) against the predicted ones, and their order.

    The targets are fixed; intervals are those of other draws of the data.
    """
    kit.require_finite(measurements, "curves")
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    tests = kit.guards(measurements, ("curves",), "curves", lambda _: TARGETS)
    numbers: dict[str, float] = {}
    everything = []
    for point in points:
        mine = [m for m in measurements if m.point == point]
        law, sizes = _law(mine), mine[0].result["sizes"]
        runs = np.array([m.result["curves"] for m in mine])
        last = mean(runs[:, -1].max(1) / ERROR)
        tests.append(Test(f"{names[point]}: last error over a tenth of the variance", last, below(1.0)))
        costs = _costs(sizes, runs)
        everything.append(costs)
        if not kit.reached(costs):
            continue
        tests += _tests(names[point], partial(_costs, sizes), law, runs)
        name = f"{names[point]}: rank correlation with"
        numbers |= {
            f"{name} the RKHS norm": _rank(costs, law["rkhs"]),
            f"{name} the RKHS norm over the variance": _rank(costs, law["rkhs"] / law["variance"]),
            f"{name} B over the variance": _rank(costs, law["B"] / law["variance"]),
            f"{name} B, samples to a half": _rank(_costs(sizes, runs, 0.5), law["B"]),
            f"{names[point]}: largest deviation of a log cost": float(np.max(np.abs(np.log(costs / law["costs"])))),
        }
    return kit.censored(tests, np.concatenate(everything)) or decide(tests, "", numbers)


def _tests(label: str, costs: Callable[[Array], Array], law: Mapping[str, Array], runs: Array) -> list[Test]:
    """Return the tests of deviations from the predicted costs, and of rank correlations."""

    def estimated(statistic: Callable[[Array], float]) -> Student:
        return resampled(lambda drawn: statistic(np.clip(costs(drawn["runs"]), 1.0, 1e9)), {"runs": runs})

    def size(share: float) -> Student:
        return estimated(lambda found: float(np.quantile(np.abs(np.log(found / law["costs"])), share)))

    off = estimated(lambda found: float(np.mean(np.log(found / law["costs"]))))
    lead = estimated(lambda found: _rank(found, law["costs"]) - _rank(found, law["degree"]))
    name = f"{label}: rank correlation with"
    return [
        Test(f"{label}: mean log cost over prediction", off, between(-TILT, TILT), 0.0),
        Test(f"{label}: median deviation of log costs", size(0.5), below(MEDIAN)),
        Test(f"{label}: deviation of log costs, nine in ten", size(0.9), below(NINE)),
        Test(f"{name} the predicted cost", estimated(lambda found: _rank(found, law["costs"])), above(ORDER)),
        Test(f"{name} the degree", estimated(lambda found: _rank(found, law["degree"])), above(DEGREE)),
        Test(f"{name} B", estimated(lambda found: _rank(found, law["B"])), above(COMPLEXITY)),
        Test(f"{label}: lead of the predicted cost over the degree", lead, above(0.0)),
    ]


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the cost of each target with its prediction: against the predicted one, against B(f), against its degree."""
    rows: dict[str, list[tuple[str, dict[str, Any], float, float, float]]] = {}
    for m in measurements:
        law = _law([other for other in measurements if other.point == m.point])
        costs = _costs(m.result["sizes"], np.array([m.result["curves"]]))
        for x_name, x in ((PREDICTED, law["costs"]), ("B(f)", law["B"]), ("degree", law["degree"])):
            rows.setdefault(x_name, []).extend(
                (name, {"d": m.point.d, "keys": m.point.keys}, x[t], costs[t], law["costs"][t])
                for t, name in enumerate(TARGETS)
                if costs[t] > 0
            )
    return [one for x_name, own in rows.items() for one in gather(own, x_name, TENTH)]


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the costs against the predicted ones, against B and against the degree."""
    figure, axes = panels(3, width=4)
    point = max((m.point for m in measurements), key=lambda p: p.d)
    found = series([m for m in measurements if m.point == point])
    families = list(dict.fromkeys(name.split()[0] for name in TARGETS))
    for axis, x_name in zip(axes, dict.fromkeys(one.x_name for one in found), strict=True):
        for one in (s for s in found if s.x_name == x_name):
            family, power = one.name.split()
            look = families.index(family)
            drawn(
                axis, one, words(one.name).split(",")[0] if power == "1" else "", color=COLOURS[look], fmt=MARKERS[look]
            )
            axis.annotate(power, (one.x[0], one.mean[0]), xytext=(4, 3), textcoords="offset points", fontsize=8)
        axis.set(xlabel=x_name, xscale="linear" if x_name == "degree" else "log", yscale="log")
    ends = [end for one in found for end in (one.theory or ())]
    axes[0].plot([min(ends), max(ends)], [min(ends), max(ends)], **THEORY, zorder=0)
    axes[0].set_ylabel(f"{TENTH}, d = {point.d}")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return how far costs are from theory, and the rank correlations, in a sentence."""
    words = []
    for name in ("the predicted cost", "the degree", "B"):
        values, errors = (ending(numbers, f"rank correlation with {name}{end}") for end in ("", " ±"))
        scatters = errors[-1] > ROUNDING  # an order of few targets may not change
        words.append(f"{values[-1]:.3f} {off(errors[-1], '.3f')}" if scatters else f"{values[-1]:.3f}")
    typical, error = (ending(numbers, f": median deviation of log costs{end}")[-1] for end in ("", " ±"))
    return (
        f"Theory predicts the samples that each of {len(TARGETS)} targets needs, to {typical:.1%} in the median (±"
        f" {error:.1%}), and their order: the rank correlation with the predicted cost is {words[0]}, with the degree"
        f" {words[1]}, with B(f) {words[2]}"
    )


def cost(point: Point) -> Cost:
    """Expect one kernel and its factorisations."""
    pairs = point.n * (point.n / 2 + TEST) * point.keys**2
    return Cost(0.1 + 1.3e-9 * pairs + 1.3e-10 * point.n**3, int(200_000_000 + 30 * point.n * (point.n + TEST)))


def _costs(sizes: Array, runs: Array, level: float = ERROR) -> Array:
    """Return `features.sample_cost` of each target on the mean curve of runs (runs, sizes, targets), all at once."""
    n, errors = np.log(sizes), np.log(np.maximum(runs.mean(0), 1e-300) / level)
    below_it = errors <= 0
    k = below_it.argmax(0)
    after, before = (np.take_along_axis(errors, np.maximum(row, 0)[None], 0)[0] for row in (k, k - 1))
    found = np.exp(n[k - 1] + (n[k] - n[k - 1]) * before / np.where(k > 0, before - after, 1.0))
    return np.where(below_it.any(0), np.where(k > 0, found, 0.0), np.inf)


def _law(mine: Sequence[Measurement[Point]]) -> dict[str, Array]:
    """Return what the theory says of each target, a mean over seeds (only the variance, of test sequences, differs)."""
    return {
        name: np.mean([m.result[name] for m in mine], axis=0) for name in ("degree", "B", "rkhs", "variance", "costs")
    }


def _rank(costs: Array, x: Array) -> float:
    """Return the rank correlation of costs with x; 0 if all are equal."""
    return float(rank_correlation(costs, x)[0]) if len(np.unique(costs)) > 1 else 0.0


def _reversed(result: Result, size: float) -> Result:
    """Return the curves with those of the dearest and cheapest targets exchanged."""
    order = np.argsort(result["B"], kind="stable")
    swapped, k = order.copy(), round(size * len(order) / 2)
    swapped[:k], swapped[len(order) - k :] = order[::-1][:k], order[:k][::-1]
    curves = np.array(result["curves"])
    curves[:, order] = result["curves"][:, swapped]
    return {"curves": curves}


def _same(result: Result, _: float) -> Result:
    """Return the curves of a learner to which all targets are alike."""
    return {"curves": np.tile(result["curves"][:, TARGETS.index("keys 2"), None], (1, len(TARGETS)))}


def _predictions(result: Result, size: float) -> Result:
    return {"costs": size * result["costs"]}


def _powers(result: Result, size: float) -> Result:
    """Return predicted costs to a power, right in the geometric mean."""
    middle = np.exp(np.mean(np.log(result["costs"])))
    return {"costs": middle * (result["costs"] / middle) ** size}


def _by_degree(result: Result, _: float) -> Result:
    """Return the predictions of a theory that knows the degree alone: the mean over the targets of each."""
    own, logs = result["degree"], np.log(result["costs"])
    return {"costs": np.exp([logs[own == degree].mean() for degree in own])}


CLAIM = Claim(
    id="features.target-degree",
    version=4,
    statement=(
        "The theory of the test error predicts the samples that random-feature attention needs for 12 targets, down to"
        " a tenth of their variance, without a fit: to 10 % in the mean, to 8 % in the median, nine in ten to 20 %. It"
        " orders them too (rank correlation above 0.97), better than their total degree (above 0.9); $B(f)$ of Fu et"
        " al. 2023 orders them roughly (above 0.6)."
    ),
    formula=(
        r"n_{10}(f)=n_{10}^{\text{theory}}(f);\qquad B(f)=C_k\,\lVert A\rVert^2,\quad C_k=\max(1,\,k^{4.5}\,4^k),"
        r"\quad k=\max(r,\,s-1)"
    ),
    source="fu2023random, theorem 2 and its examples, for B(f); the theory is ours (docs/features.md)",
    settings=Point,
    tiers={
        "quick": Sweep([Point(n=1150)], seeds=16),
        "full": Sweep([Point(n=1200), Point(d=5, n=2700)], seeds=(24, 12)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Samples that bring the test error of each target to a tenth of its variance, at the largest d: against what theory"
        " predicts (left; on the line both are equal), against the complexity B(f) (middle) and against the total degree in"
        " query and keys (right). Numbers beside points are powers; points are means over draws with standard errors."
    ),
    finding=finding,
    differs=(
        Difference(
            "The complexity B(f)",
            "Theorem 2 orders targets by B(f): the larger it is, the more samples they need.",
            finding,
        ),
    ),
    series=series,
    mutations=(
        Mutation("theory predicts {size:g} of the samples", (0.98, 0.85, 0.5), 0.85, changed(_predictions)),
        Mutation("theory predicts {size:g} times the samples", (1.02, 1.2, 2.0), 1.2, changed(_predictions)),
        Mutation("predicted costs are raised to the power {size:g}", (1.02, 1.25, 1.5), 1.25, changed(_powers)),
        Mutation("a theory that knows the degree alone", (1.0,), 1.0, changed(_by_degree)),
        Mutation(
            "the costs of {size:.0%} of the targets are reversed in order", (0.2, 0.6, 1.0), 0.6, changed(_reversed)
        ),
        Mutation(
            "a learner that predicts the mean", (1.0,), 1.0, changed(lambda r, _: {"curves": np.ones_like(r["curves"])})
        ),
        Mutation("every target costs the same", (1.0,), 1.0, changed(_same)),
        *kit.leaks("curves"),
    ),
    unseen="a theory that is wrong for one target in twelve; targets that are not among the twelve; other levels",
    design=(
        "A pilot (runs 1000 and 1001, 12 seeds each) has a median deviation of 2 % with an error of 1 %, a mean of the log"
        " cost over prediction known to 0.010 to 0.015, and the predicted order in both runs (0.98 for the degree, 0.83"
        " for B); it supports the claim, with 8 % in the mean, in 92 % and 85 % of resampled runs. With 16 seeds and"
        " 10 % in the mean it is 97 % and 92 % (of 53 resampled runs)."
    ),
)
