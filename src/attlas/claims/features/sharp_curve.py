"""features.sharp-curve: the test error of infinitely many heads, at every n, penalty and noise, predicted without a fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import NonNegativeFloat, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact
from attlas.claims.features import kit
from attlas.claims.features.kit import words
from attlas.claims.figure import COLOURS, MARKERS, THEORY, finished, panels
from attlas.claims.finding import interval
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, between, decide
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGETS = ("query 1", "query 2", "keys 2", "correlation 1", "correlation 3", "weighted 1")
NOISE = "label noise"
COLUMNS = (*TARGETS, NOISE)
RIDGES = (0.004, 0.1)  # absolute: about a hundredth and a quarter of the trace of the kernel
TEST = 600  # test sequences
MEDIAN, MOST, TILT = 0.05, 0.15, 0.1  # of |log ratio|: median over cells, nine in ten, and the mean of each target


class Point(Settings):
    """Bias strength, tokens and the largest sample; a quarter of it is learned from as well."""

    bias: NonNegativeFloat = 0.0
    d: PositiveInt = 8
    keys: PositiveInt = 8
    n: PositiveInt = 400

    @property
    def sizes(self) -> tuple[int, int]:
        """The sample sizes."""
        return self.n // 4, self.n


def measure(point: Point, seed: int) -> Result:
    """Return simulated and predicted errors over variance, (penalties, sizes, targets and noise)."""
    own = kit.theory(point.d, point.keys, point.bias)
    here = int(stream(seed, "data", str(point)).integers(2**31))  # settings share no data: their chances do not add up
    errors = kit.simulated_errors(own, TARGETS, point.sizes, RIDGES, "infinite", here, TEST)
    return {"errors": errors, "theory": kit.predicted(own, TARGETS, point.sizes, RIDGES, "infinite")}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge how far means over seeds are from the prediction: over all cells, and one way for each target."""
    smallest = min(float(np.min(m.result["errors"])) for m in measurements)
    tests = [
        Test("median deviation over cells", kit.deviation(measurements), below(MEDIAN)),
        Test("deviation that nine in ten cells keep", kit.deviation(measurements, 0.9), below(MOST)),
        *(
            Test(f"{name}: mean log ratio", kit.tilt(measurements, place), between(-TILT, TILT), 0.0)
            for place, name in enumerate(COLUMNS)
        ),
        Test(kit.SMALLEST, Exact(smallest), above(0.0)),
    ]
    cells = sum(m.result["theory"].size for m in _first(measurements))
    return decide(tests, f"{cells} predicted errors beside simulated ones", {"cells": float(cells)})


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return errors against n, simulated and predicted, of every target and penalty."""
    rows = [
        (
            "biased" if m.point.bias else "kernel",
            {"target": name, "d": m.point.d, "keys": m.point.keys, "bias": m.point.bias, "ridge": ridge},
            float(n),
            float(m.result["errors"][r, s, t]),
            float(m.result["theory"][r, s, t]),
        )
        for m in measurements
        for t, name in enumerate(COLUMNS)
        for r, ridge in enumerate(RIDGES)
        for s, n in enumerate(m.point.sizes)
    ]
    return gather(rows, "n", "mse over variance at this penalty")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw simulated against predicted errors, and their ratio over the predicted error."""
    figure, (left, right) = panels(2)
    found = series(measurements)
    ends = [value for one in found for value in (one.theory or ())]
    left.plot([min(ends), max(ends)], [min(ends), max(ends)], **THEORY)
    right.axhline(1.0, **THEORY)
    for place, name in enumerate(COLUMNS):
        style: dict[str, Any] = {
            "color": COLOURS[place % len(COLOURS)],
            "fmt": MARKERS[place % len(MARKERS)],
            "capsize": 2,
        }
        mine = [one for one in found if one.settings["target"] == name]
        x, y, error = (
            np.concatenate([np.asarray(getattr(one, part)) for one in mine])
            for part in ("theory", "mean", "standard_error")
        )
        left.errorbar(x, y, yerr=error, linestyle="none", markersize=5, label=words(name), **style)
        right.errorbar(x, y / x, yerr=error / x, linestyle="none", markersize=5, **style)
    left.set(xlabel="predicted error / variance", ylabel="simulated error / variance", xscale="log", yscale="log")
    right.set(xlabel="predicted error / variance", ylabel="simulated / predicted", xscale="log")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return the deviations with their errors in a sentence."""
    median, most = (
        interval(numbers, name, ".1%")
        for name in ("median deviation over cells", "deviation that nine in ten cells keep")
    )
    return (
        f"Theory predicts {numbers['cells']:.0f} test errors of attention with infinitely many heads without a fit: the"
        f" median deviation of the simulated errors is {median}, and nine in ten deviate by less than {most}, which"
        " includes the scatter between seeds"
    )


def cost(point: Point) -> Cost:
    """Expect a kernel, its factorisations, and once in a process the theory."""
    rows = point.n * (point.n / 2 + TEST)
    each = 6e-8 * point.keys**2 if point.bias else 1.1e-8 * point.keys**2
    return Cost(0.05 + (each + 1e-7) * rows + 4e-10 * point.n**3, int(200_000_000 + 30 * point.n * (point.n + TEST)))


def _first(measurements: Sequence[Measurement[Point]]) -> list[Measurement[Point]]:
    """Return one measurement of every point."""
    return list({m.point: m for m in measurements}.values())


def _theory_of(measurements: Sequence[Measurement[Point]], **wrong: float) -> list[Measurement[Point]]:
    """Return the measurements beside a theory whose bias or penalties are a multiple of what they are."""
    ridges = tuple(wrong.get("ridge", 1.0) * ridge for ridge in RIDGES)
    found = []
    for m in measurements:
        own = kit.theory(m.point.d, m.point.keys, wrong.get("bias", 1.0) * m.point.bias)
        theory = kit.predicted(own, TARGETS, m.point.sizes, ridges, "infinite")
        found.append(replace(m, result=m.result | {"theory": theory}))
    return found


CLAIM = Claim(
    id="features.sharp-curve",
    version=1,
    statement=(
        "The test error of random-feature attention with infinitely many heads is predicted without a fit (ours): for six"
        " targets and label noise, with and without a bias, at two sample sizes and two penalties each, predicted and"
        " simulated errors differ by less than 5 % in the median and 15 % in nine of ten cells, and by less than 10 % on"
        " average for each target."
    ),
    formula=(
        r"\mathbb{E}\,\lVert f-\hat f_\lambda\rVert^2=\frac{\partial}{\partial t}\,"
        r"\lambda\,\theta^\top\Bigl(A+\frac{\lambda}{n\Omega+t}\Bigr)^{-1}\theta\,\Big|_{t=0}"
    ),
    source="ours, docs/features.md; after simon2023eigenlearning and bordelon2020spectrum",
    settings=Point,
    tiers={
        "quick": Sweep([Point(), Point(d=6, keys=12, n=600), Point(bias=1.0)], seeds=(24, 24, 12)),
        "full": Sweep(
            [
                Point(n=1600),
                Point(d=16, keys=16, n=1000),
                Point(bias=1.0, n=800),
                Point(bias=2.0),
                Point(bias=1.0, d=16, keys=16, n=600),
            ],
            seeds=(24, 24, 16, 24, 12),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: simulated test error over the variance of the target against the predicted one, for every target, penalty,"
        " sample size and bias; the line is equality. Right: the ratio of the two. Means over draws with standard errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation(
            "the theory predicts {size:g} times the error that it does", (1.05, 1.1, 1.25, 1.5), 1.1, scaled("theory")
        ),
        Mutation(
            "the theory's penalty is {size:g} times what it is",
            (1.2, 1.5, 2.0),
            1.5,
            lambda measurements, size: _theory_of(measurements, ridge=size),
        ),
        Mutation(
            "the theory's bias is {size:g} of what it is",
            (0.8, 0.5, 0.0),
            0.5,
            lambda measurements, size: _theory_of(measurements, bias=size),
        ),
        Mutation(
            "a share {size:g} of the test sequences is known",
            (0.1, 0.2, 0.5, 1.0),
            0.2,
            changed(lambda result, size: {"errors": np.multiply(result["errors"], 1 - size)}),
        ),
    ],
    unseen=(
        "A theory that is off by less than about 10 % in the same direction on one target, or on single cells; tokens that"
        " are not on the sphere; penalties below 0.004."
    ),
    design=(
        "Tolerances are those of the derivation's own comparison (medians of 2 to 3 %, nine in ten within 7 %). Runs 1000"
        " and 1001 gave a median of 1.4 %, nine in ten within 6 %, and standard errors of 1 to 2 % for each target: with"
        " 24, 24 and 12 seeds a true theory is supported with P = 1, one that is 10 % off is refuted. Settings share no"
        " data."
    ),
)
