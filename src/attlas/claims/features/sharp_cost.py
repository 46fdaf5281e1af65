"""features.sharp-cost: the samples that halve the error, and their growth with d, predicted without a simulation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import resampled, slope
from attlas.claims.features import kit
from attlas.claims.figure import COLOURS, MARKERS, drawn, finished, panels, ticks
from attlas.claims.finding import interval, named, span
from attlas.claims.lettering import name_ends
from attlas.claims.mutation import Mutation, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, below, between, decide
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TARGETS = ("query 2", "keys 2", "correlation 1", "rotated 1")
LEARNERS = {"plain": "kernel", "biased": "biased"}
TEST = 400  # test sequences
EPS, POWER, MEDIAN = 0.1, 0.3, 0.08  # of the log cost of a target, of its exponent; median over cells, in logarithms
HALVING = "samples that halve the error"
RATIO, EXPONENT = "mean log of measured over predicted cost", "measured minus predicted exponent"


class Point(Settings):
    """Tokens, strength of the bias of the second learner, and the largest sample. Heads are infinitely many."""

    d: int = Field(ge=5)
    keys: PositiveInt = 8
    bias: PositiveFloat = 1.0
    n: int = Field(ge=32)


def measure(point: Point, seed: int) -> Result:
    """Return learning curves without and with bias on the same data, (sizes, targets), and the predicted costs.

    Leave-one-out chooses the penalty; the theory's costs are at the best one.
    """
    here = int(stream(seed, "data", str(point)).integers(2**31))
    data = kit.with_control(features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, here), here)
    sizes = features.sample_sizes(max(8, point.n // 16), point.n, 4)
    curves = {"plain": data.attention(sizes), "biased": data.attention(sizes, point.bias)}
    costs = {
        f"{name}_cost": kit.predicted_costs(kit.theory(point.d, point.keys, bias), TARGETS, (0.5,))[0]
        for name, bias in (("plain", 0.0), ("biased", point.bias))
    }
    return {
        **{name: curve[:, :-1] for name, curve in curves.items()},
        **costs,
        "permuted": float(min(curve[-1, -1] for curve in curves.values())),
        "sizes": np.array(sizes, dtype=float),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge costs and exponents of every target against the predicted ones, with and without bias."""
    tests = kit.guards(measurements, tuple(LEARNERS), "plain", lambda _: TARGETS)
    groups = {
        p: _ratios([m for m in measurements if m.point == p]) for p in dict.fromkeys(m.point for m in measurements)
    }
    every = np.concatenate(list(groups.values()))
    if (stopped := kit.censored(tests, np.exp(every))) is not None:
        return stopped
    d = np.log([p.d for p, rows in groups.items() for _ in rows])

    def median(drawn_: Any) -> float:
        return float(np.median([np.abs(rows.mean(0)) for rows in drawn_.values()]))

    tests.append(
        Test("median over cells of |log of measured over predicted|", resampled(median, groups), below(MEDIAN))
    )
    for column, (learner, target) in enumerate(_cells()):
        name = f"{target}, {'with' if learner == 'biased' else 'without'} bias"
        own = {p: rows[:, column] for p, rows in groups.items()}
        over = resampled(lambda drawn_: float(np.mean([rows.mean() for rows in drawn_.values()])), own)
        tests.append(Test(f"{name}: {RATIO}", over, between(-EPS, EPS), 0.0))
        power = slope(d, every[:, column])
        tests.append(Test(f"{name}: {EXPONENT}", power, between(-POWER, POWER), 0.0))
    cells = np.array([np.exp(rows.mean(0)) for rows in groups.values()])
    numbers = {"least ratio": float(cells.min()), "largest ratio": float(cells.max()), "cells": float(cells.size)}
    return decide(tests, "samples that halve the error beside the predicted ones", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return costs against d, measured and predicted, and the learning curves."""
    costs = [
        (
            LEARNERS[learner],
            {"target": target, "keys": m.point.keys, "bias": m.point.bias if learner == "biased" else 0.0},
            float(m.point.d),
            kit.cost_of(m.result["sizes"], m.result[learner][:, TARGETS.index(target)], 0.5),
            float(m.result[f"{learner}_cost"][TARGETS.index(target)]),
        )
        for m in measurements
        for learner, target in _cells()
    ]
    curves = [row for m in measurements for row in kit.curve_points(m, LEARNERS, TARGETS)]
    return gather(costs, "d", HALVING) + gather(curves, *kit.AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the costs against d, without bias (left) and with (right)."""
    figure, axes = panels(2, width=5.4)
    found = [one for one in series(measurements) if one.y_name == HALVING]
    for axis, name, title in zip(axes, LEARNERS.values(), ("without bias", "with bias"), strict=True):
        for one in (s for s in found if s.name == name):
            i = TARGETS.index(one.settings["target"])
            drawn(
                axis,
                one,
                kit.words(TARGETS[i]) if axis is axes[1] else "",
                color=COLOURS[i],
                fmt=MARKERS[i],
                linestyle="none",
            )
        axis.set(xlabel="token dimension d", ylabel=HALVING, xscale="log", yscale="log", title=title)
        ticks(axis, [m.point.d for m in measurements])
    axes[0].sharey(axes[1])
    name_ends(axes[1])
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return the ratios in a sentence."""
    names = named(numbers, end=RATIO)
    ratios, error = np.exp([numbers[name] for name in names]), max(numbers[f"{name} ±"] for name in names)
    median = interval(numbers, "median over cells of |log of measured over predicted|", ".1%")
    return (
        f"Measured over predicted samples that halve the error are {span(ratios)} (each to ± {error:.0%} or better),"
        f" averaged over d, for each target with and without bias; measured and predicted are {median} apart in the median"
        f" of {numbers['cells']:.0f} cells of target, bias and d"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels with their factorisations, and once in a process the theory."""
    return kit.kernels_cost(point.n, point.keys, TEST)


def _cells() -> list[tuple[str, str]]:
    return [(learner, target) for learner in LEARNERS for target in TARGETS]


def _ratios(measurements: Sequence[Measurement[Point]]) -> Array:
    """Return log measured over predicted costs of runs of one point, (runs, cells), whose mean is that of the mean curve."""
    sizes, columns = measurements[0].result["sizes"], []
    for learner, target in _cells():
        place = TARGETS.index(target)
        curves = [m.result[learner][:, place] for m in measurements]
        columns.append(kit.run_costs(sizes, curves, 0.5) - np.log(measurements[0].result[f"{learner}_cost"][place]))
    return np.stack(columns, axis=1)


def _steeper(*names: str) -> Callable[[Sequence[Measurement[Point]], float], list[Measurement[Point]]]:
    """Return a change that multiplies predicted costs by (d/8)^size."""

    def change(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
        return [
            replace(m, result=m.result | {name: m.result[name] * (m.point.d / 8) ** size for name in names})
            for m in measurements
        ]

    return change


CLAIM = Claim(
    id="features.sharp-cost",
    version=1,
    statement=(
        "The samples that halve the error of random-feature attention are predicted without a simulation (ours): for"
        " squares of the query, key averages, correlations and rotated correlations, with and without a bias, to 10 % on"
        " average over d = 5 to 12, with exponents in d within 0.3 of the predicted ones."
    ),
    formula=r"n_{50}(f,d):\quad\mathbb{E}\,\lVert f-\hat f_{n_{50}}\rVert^2=\tfrac12\operatorname{Var}f",
    source="ours, docs/features.md; the targets are fu2023random's",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(d=5, n=120), Point(d=7, n=220), Point(d=9, n=340), Point(d=12, n=580)], seeds=(24, 16, 14, 12)
        ),
        "full": Sweep(
            [
                Point(d=6, keys=16, n=200),
                Point(d=8, keys=16, n=320),
                Point(d=12, keys=16, n=600),
                Point(d=16, keys=16, n=1000),
            ],
            seeds=(30, 24, 16, 10),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Samples that bring the test error to half of the variance, against d, without bias (left) and with (right):"
        " measured (points, means over draws with standard errors) and predicted (lines)."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation(
            "predicted costs are {size:g} of what they are",
            (1.05, 1.1, 1.2, 1.5),
            1.2,
            scaled("plain_cost", "biased_cost"),
        ),
        Mutation(
            "predicted exponents are off by {size:g}",
            (0.1, 0.3, 0.6, 1.0),
            0.6,
            _steeper("plain_cost", "biased_cost"),
        ),
        Mutation(
            "the theory does not know of the bias: its costs with bias are {size:g} of the way to those without",
            (0.5, 1.0),
            1.0,
            lambda measurements, size: [
                replace(
                    m,
                    result=m.result
                    | {"biased_cost": m.result["biased_cost"] ** (1 - size) * m.result["plain_cost"] ** size},
                )
                for m in measurements
            ],
        ),
        *kit.leaks("plain", "biased"),
    ],
    unseen=(
        "A prediction that is off by less than about 10 % for one target; targets of degree three, whose learning curves are"
        " flat at one half."
    ),
    design=(
        "Runs 1000 and 1001 (d = 6 to 12) gave means within 4 % of the prediction with standard errors of 1.5 to 2 %, and"
        " exponents known to 0.06: too little for the 0.15 that was planned, so d begins at 5 and exponents are judged to"
        " 0.3, half of what the bias takes off them (P = .92 on runs 1002 and 1003, then more seeds at d = 9 and 12). Costs"
        " are those of the mean curve, by the jackknife: single curves cross one half too early."
    ),
)
