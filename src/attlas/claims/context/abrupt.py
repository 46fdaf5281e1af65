"""context.abrupt: learning to learn waits on a plateau, then comes at once; a smaller start waits longer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import context
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.context.kit import Array, own
from attlas.claims.estimate import Exact, mean
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels
from attlas.claims.lettering import name_ends
from attlas.claims.mutation import Mutation, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, decide
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHA, NOISE = 2.0, 0.1
STEP = 0.02  # times sqrt(d): of time
WITHIN = 0.05  # of half-times and of the end
WAIT, LONG = 0.08, 0.1  # of the slope of half-times, and of the length of the drop
WIDTH = 0.5 * np.log((1 / np.sqrt(0.1) - 1) / (1 / np.sqrt(0.9) - 1))  # from a tenth of the drop to nine, over sqrt(d)
SHOWN = 60  # points of a course


class Point(Settings):
    """Scale of the start, and size."""

    scale: PositiveFloat
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Train v and U by stochastic descent, fresh contexts of fresh tasks at every step; find when the error drops.

    The error on new tasks is exact at every step. The time is the sum of steps.
    """
    d, number = point.d, own(seed, "run", str(point.d))  # starts of all scales have one direction
    batch = d * d  # keeps the noise of the steps where it is
    v, U = point.scale, point.scale * stream(number, "start").standard_normal((d, d)) / np.sqrt(d)
    start = float((v + np.trace(U) / np.sqrt(d)) ** 2 / (4 * np.sqrt(d)))
    length, rate = round(ALPHA * d), STEP * np.sqrt(d)
    b = 1 + 1 / length + (1 + NOISE) / (length / d)
    expected = context.half_time(d, ALPHA, NOISE, start)
    steps = int((1.3 * expected + 4 * np.sqrt(d)) / rate)
    data, noise = (stream(number, which, f"{point.scale:g}") for which in ("data", "noise"))
    errors = np.empty(steps)
    for i in range(steps):
        errors[i] = 1 + NOISE - 2 * v * np.trace(U) / d + b * v * v * np.sum(U * U) / d
        W = data.standard_normal((batch, d))
        h = context.read_contexts(W, NOISE, length, data)[:, :d]
        x = data.standard_normal((batch, d)) / np.sqrt(d)
        y = np.sum(x * W, axis=1) + np.sqrt(NOISE) * noise.standard_normal(batch)
        read = np.sum((x @ U) * h, axis=1)
        off = (v * read - y) / batch
        v, U = v - rate * float(off @ read), U - rate * v * (x * off[:, None]).T @ h
    times = rate * np.arange(steps)
    low, half, high = (_when(times, errors, 1 + NOISE - share / b) for share in (0.1, 0.5, 0.9))
    chosen = np.linspace(0, steps - 1, SHOWN).round().astype(int)
    return {
        "half": half,
        "width": high - low,
        "end": float(errors[-1]),
        "theory_half": expected,
        "theory_end": 1 + NOISE - 1 / b,
        "times": times[chosen],
        "course": errors[chosen],
        "theory_course": context.logistic_error(times[chosen], d, ALPHA, NOISE, start),
        "converged": bool(np.isfinite([low, half, high]).all()),
    }


def _when(times: Array, errors: Array, level: float) -> float:
    """Return when errors first fall below a level; NaN if they do not."""
    below = np.flatnonzero(errors < level)
    return float(times[below[0]]) if len(below) else float("nan")


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Half-times are the law's and grow by sqrt(d) for every factor e of the start; the drop takes 1.84 sqrt(d)."""
    least = min(m.result["end"] for m in measurements)
    tests = [
        Test(
            "smallest error over the best of the layer", Exact(least / measurements[0].result["theory_end"]), above(0.9)
        )
    ]
    for d in sorted({m.point.d for m in measurements}):
        mine = [m for m in measurements if m.point.d == d]
        root = float(np.sqrt(d))
        tests += [
            Test(f"wait for a factor e of the start over sqrt(d), d={d}", mean(_waits(mine)), about(1, WAIT), 1.0),
            Test(
                f"half-time over the law's, d={d}",
                mean([m.result["half"] / m.result["theory_half"] for m in mine]),
                about(1, WITHIN),
                1.0,
            ),
            Test(
                f"length of the drop over the law's, d={d}",
                mean([m.result["width"] / (WIDTH * root) for m in mine]),
                about(1, LONG),
                1.0,
            ),
            Test(
                f"end over the law's, d={d}",
                mean([m.result["end"] / m.result["theory_end"] for m in mine]),
                about(1, WITHIN),
                1.0,
            ),
        ]
    return decide(tests, "")


def _waits(measurements: Sequence[Measurement[Point]]) -> list[float]:
    """Return the slope of half-times over sqrt(d) in the logarithm of 1/scale, for each start tried at all scales."""
    starts: dict[int, list[Measurement[Point]]] = {}
    for m in measurements:
        starts.setdefault(m.seed, []).append(m)
    root = np.sqrt(measurements[0].point.d)
    return [
        float(np.polyfit([np.log(1 / m.point.scale) for m in own_], [m.result["half"] / root for m in own_], 1)[0])
        for own_ in starts.values()
        if len(own_) > 1
    ]


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Half-times against the scale of the start, and the law."""
    rows = [("half-time", {"d": m.point.d}, m.point.scale, m.result["half"], _typical(m.point)) for m in measurements]
    return gather(rows, "scale of the start", "time at which half of the drop is done")


def _typical(point: Point) -> float:
    """Return the half-time of a start whose matrix has no trace: most have little."""
    return context.half_time(point.d, ALPHA, NOISE, point.scale**2 / (4 * np.sqrt(point.d)))


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw courses of single runs with the law, and half-times against the scale of the start."""
    figure, (left, right) = panels(2)
    largest = max(m.point.d for m in measurements)
    scales = sorted({m.point.scale for m in measurements}, reverse=True)
    for i, scale in enumerate(scales):
        run = next(m.result for m in measurements if m.point.d == largest and m.point.scale == scale)
        left.plot(run["times"], run["theory_course"], **(THEORY | {"color": COLOURS[i]}))
        left.plot(
            run["times"][::2],
            run["course"][::2],
            MARKERS[i],
            color=COLOURS[i],
            markersize=4,
            label=f"start {scale:.0e}",
        )
    left.set(xlabel="training time", ylabel="error on new tasks", title=rf"single runs, $d={largest}$", ylim=(0, None))
    for i, one in enumerate(series(measurements)):
        drawn(right, one, rf"$d={one.settings['d']}$", color=COLOURS[i], fmt=MARKERS[i], linestyle="none")
    right.set(xlabel="scale of the start", ylabel="half-time", xscale="log", ylim=(0, None))
    name_ends(right)
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some six hundred steps."""
    return Cost(600 * (5e-5 + 5e-10 * point.d**4 + 2e-8 * point.d**3), 80_000_000)


def finding(numbers: Numbers) -> str:
    """Say how long the plateau is and how short the drop."""
    waits = {k: v for k, v in numbers.items() if k.startswith("wait for a factor e") and "±" not in k}
    drops = {k: v for k, v in numbers.items() if k.startswith("length of the drop") and "±" not in k}
    if not waits or not drops:
        raise LookupError("wait")
    wide, loose = (max(numbers[f"{k} ±"] for k in names) for names in (waits, drops))
    return (
        "Learning to learn comes late and at once: a start smaller by a factor e lengthens the plateau by"
        f" {min(waits.values()):.2f} to {max(waits.values()):.2f} (± {wide:.2f}) times sqrt(d), while the drop takes"
        f" {WIDTH * np.mean(list(drops.values())):.2f} (± {WIDTH * loose:.2f}) times sqrt(d) however small the start"
    )


def _impatient(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return half-times that depend less on the start."""
    found = []
    for m in measurements:
        root = np.sqrt(m.point.d)
        shift = size * root * (np.log(1 / m.point.scale) - np.log(1e3))
        found.append(replace(m, result=m.result | {"half": m.result["half"] - shift}))
    return found


CLAIM = Claim(
    id="context.abrupt",
    version=1,
    statement=(
        "Trained on fresh contexts from a small start, a layer with merged keys and queries waits on a plateau and then"
        " learns at once, as Zhang et al. 2025 found: half of the drop is done at the time of the logistic law to 5 %,"
        r" a start smaller by a factor e waits $\sqrt{d}$ longer to 8 %, and the drop from a tenth to nine tenths takes"
        r" $1.84\sqrt{d}$ to 10 %, both on average over starts."
    ),
    formula=(
        r"a(t)=\frac{1/b}{1+\left(\frac{1}{a_0 b}-1\right)e^{-2t/\sqrt d}},\qquad"
        r"\mathrm{error}=1+\rho-2a+b a^2,\qquad b=1+\frac{1}{\ell}+\frac{1+\rho}{\alpha}"
    ),
    source="zhang2025training for the plateau and the drop; the constants are derived here",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(scale=s, d=d) for d in (12, 18, 24) for s in (1e-2, 1e-3, 1e-4)],
            seeds=(8, 8, 8, 8, 8, 8, 6, 6, 6),
        ),
        "full": Sweep([Point(scale=s, d=d) for d in (16, 32, 64) for s in (1e-2, 1e-3, 1e-4, 1e-5)], seeds=8),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error on new tasks along training, single runs from starts of several scales, with the logistic law"
        " (lines). Right: the time at which half of the drop is done, against the scale of the start. Points are means"
        " over runs with standard errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation(
            "predicted half-times are {size:g} times what they are", (1.03, 1.15), 1.15, change=scaled("theory_half")
        ),
        Mutation("waiting depends on the start by {size:g} less", (0.03, 0.2), 0.2, change=_impatient),
        Mutation("the drop takes {size:g} times as long", (1.1, 1.5), 1.5, change=scaled("width")),
        Mutation(
            "there is no plateau: half-times are {size:g} of what they are", (0.9, 0.1), 0.1, change=scaled("half")
        ),
        Mutation("the test tasks leak: the error ends at {size:g} of what it is", (0.5,), 0.5, change=scaled("end")),
    ],
    design=(
        "Batches of d² keep the noise of the steps at one per cent of the end. Starts of all scales share their"
        " direction, so that slopes of half-times have standard errors of at most 1 %; finite steps delay by 1 %."
    ),
    unseen=(
        "the course of the plateau, training on a fixed set of contexts, keys and queries apart, and optimisers that adapt"
        " their steps"
    ),
)
