"""positional.baseline: when attention is worth more than fixed weights by place."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import positional
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Sweep
from attlas.claims.estimate import Exact, finite_size, mean, share
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels
from attlas.claims.finding import interval, named
from attlas.claims.mutation import Mutation, changed
from attlas.claims.positional.kit import (
    LIMIT,
    SIZES,
    Row,
    Student,
    crossing,
    draw_task,
    leaks,
    minima,
    part,
    reaches,
    spread,
    switch,
    theory,
)
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, below, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS, EACH = 0.05, 0.1  # of the crossing: of the mean over models, and of each
STAY = 0.6  # share of data sets, at the largest size, with positional minima at every alpha
LEAST = 0.9, 0.3  # of the baseline: an error by position, or by meaning, below this is a leak
ENDS = (0.5, 1.6)  # of the predicted crossing
CROSSING, PLACE = "crossing over theory", "test error by position over the baseline"
STAYS = "data sets with positional minima at every alpha"
PAYS, GAP = "test error by meaning over the baseline, between", "loss by position over loss by meaning, less 1, between"


class Point(Student):
    """A model, and the size at which its crossing is looked for; `most`, up to how much of it position is compared."""

    d: PositiveInt
    most: PositiveFloat = 1.5

    @property
    def range(self) -> tuple[float, ...]:
        """Shares of the predicted crossing at which position is compared with the baseline."""
        return (0.6, 1.0, self.most)


@lru_cache(maxsize=16)
def expected(model: positional.Model) -> tuple[float, float, float, bool]:
    """Return the predicted crossing, d log(test error by meaning)/d log(alpha) there, the switch, and whether found."""
    (at, known), (flip, found) = crossing(model), switch(model)
    low, high = (theory(model, step * at, "semantic") for step in (0.95, 1.05))
    slope = float(np.log(high.test / low.test)) / 0.1
    return at, slope, flip, known and found and low.converged and high.converged


def measure(point: Point, seed: int) -> Result:
    """Return the alpha at which the semantic test error crosses that of the best layer by place, over theory.

    Two steps of Newton's iteration on one growing data set. ``place`` holds test errors by position over the baseline at
    shares of the predicted crossing, NaN where there is no positional minimum; ``pays`` and ``gap`` the test error by
    meaning over the baseline, and the relative difference of the losses, at the geometric mean of crossing and switch.
    """
    model = point.model
    at, slope, flip, ended = expected(model)
    bottom = positional.baseline(model)
    task = draw_task(point, max(point.most, ENDS[1]) * at, seed)
    step = 1.0
    for _ in range(2):
        fit = positional.minimise(part(task, step * at), "semantic", throw=False)
        ended &= fit.converged
        step = float(np.clip(step - np.log(fit.test / bottom) / slope, *ENDS))
    place = [positional.minimise(part(task, share * at), "positional", throw=False) for share in point.range]
    between = part(task, sqrt(at * flip))
    both = minima(between)
    ended &= all(fit.converged for fit in (*place, *both.values()))
    return {
        "crossing": step,
        "place": np.array([fit.test / bottom if fit.mechanism == "positional" else np.nan for fit in place]),
        "pays": both["semantic"].test / bottom,
        "gap": both["positional"].loss / spread(between) / both["semantic"].loss - 1,
        "alpha_l": at,
        "alpha_c": flip,
        "slope": slope,
        "converged": ended,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Meaning crosses the baseline where theory says; position never does; crossing and switch come in either order."""
    every = finite_size([(m.point.d, m.result["crossing"]) for m in measurements], sizes=SIZES)
    tests = [Test(f"{CROSSING}, mean{LIMIT}", every, about(1, EPS), 1.0)]
    tests += reaches(measurements, CROSSING, lambda m: m.result["crossing"], EACH)
    for name in dict.fromkeys(m.point.label for m in measurements):
        own = [m for m in measurements if m.point.label == name]
        early = own[0].result["alpha_l"] < own[0].result["alpha_c"]  # meaning pays before it is the better fit
        for i, step in enumerate(own[0].point.range):
            there = [value for m in own if np.isfinite(value := m.result["place"][i])]
            words = f"{PLACE}, {name}, alpha = {step * own[0].result['alpha_l']:.3g}"
            tests += [Test(words, mean(there), above(1))] if len(there) > 1 else []  # else the test of minima fails
        largest = max(m.point.d for m in own)
        whole = share([np.isfinite(m.result["place"]).all() for m in own if m.point.d == largest])
        tests.append(Test(f"{STAYS}, {name}, d = {largest}", whole, above(STAY)))
        pays, gap = (mean([m.result[key] for m in own if m.point.d == largest]) for key in ("pays", "gap"))
        tests.append(Test(f"{PAYS}, {name}, d = {largest}", pays, below(1) if early else above(1)))
        tests.append(Test(f"{GAP}, {name}, d = {largest}", gap, below(0) if early else above(0)))
    for key, way, floor in (("place", "position", LEAST[0]), ("pays", "meaning", LEAST[1])):
        found = np.hstack([m.result[key] for m in measurements])
        if np.isfinite(found).any():
            tests.append(
                Test(f"smallest test error by {way} over the baseline", Exact(float(np.nanmin(found))), above(floor))
            )
    places = {f"crossing and switch of {m.point.label}: {key}": m.result[key] for m in measurements
              for key in ("alpha_l", "alpha_c")}  # fmt: skip
    return decide(tests, f"meaning beats the baseline from {every.value:.3f} times the predicted alpha", places)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Test errors by position over the baseline, against samples."""
    rows = [
        (
            "test error by position over the baseline",
            {"at": m.point.label, "d": m.point.d},
            round(step * m.result["alpha_l"], 3),
            ratio,
            None,
        )
        for m in measurements
        for step, ratio in zip(m.point.range, m.result["place"], strict=True)
    ]
    return gather(rows, "alpha", "test error over the baseline")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw errors by position over the baseline against alpha, and the crossing of meaning over theory against 1/d."""
    figure, (left, right) = panels(2)
    for i, name in enumerate(dict.fromkeys(m.point.label for m in measurements)):
        own = [m for m in measurements if m.point.label == name]
        largest = max(m.point.d for m in own)
        colour = COLOURS[i]
        for mine in series([m for m in own if m.point.d == largest]):
            drawn(left, mine, f"{name} (d = {largest})", color=colour, fmt=MARKERS[i])
        marks = own[0].result
        left.axvline(marks["alpha_c"], linestyle="--", **(THEORY | {"color": colour}))
        left.axvline(marks["alpha_l"], linestyle=":", **(THEORY | {"color": colour}))
        rows: list[Row] = [("crossing", {}, 1 / m.point.d, m.result["crossing"], None) for m in own]
        drawn(right, gather(rows, "1/d", "crossing")[0], name, color=colour, fmt=MARKERS[i], linestyle="none")
    left.axhline(1, **THEORY)
    left.annotate("best layer by place", (0.98, 1), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                  textcoords="offset points", xytext=(0, 2), fontsize=8)  # fmt: skip
    left.set(xlabel="samples alpha = n/d", ylabel="test error by position / baseline")
    right.axhline(1, **THEORY)
    right.set(xlabel="1/d", ylabel="crossing of meaning / predicted", xlim=(0, None))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect seven fits of some twenty steps with their test errors, and the theory."""
    n = (7 if point.token_scale == 1 else 2.4) * point.d
    return Cost(0.022 + 8e-8 * n * point.d, int(150_000_000 + 200 * n * point.d))


def finding(numbers: Numbers) -> str:
    """Say from where on attention pays."""
    best = min(named(numbers, PLACE), key=lambda name: numbers[name])
    return (
        f"Attention by position never beats fixed weights (its test error is at best {interval(numbers, best)} times"
        f" theirs); attention by meaning does from {interval(numbers, f'{CROSSING}, mean{LIMIT}', '.3f')} times the"
        " predicted alpha on, before the switch in one setting and after it in the other"
    )


def _swapped(result: Result, _: float) -> Result:
    """The errors change their names; where there is no positional minimum 1.5 stands for it."""
    place = [*result["place"][np.isfinite(result["place"])], 1.5][0]
    return {"place": np.full(3, result["pays"]), "pays": float(place), "gap": -result["gap"]}


def _leaking(result: Result, size: float) -> Result:
    """Errors are smaller, and the crossing where a straight line in the logarithms puts it."""
    moved = result["crossing"] - np.log(max(size, 1e-3)) / result["slope"]
    return {key: np.multiply(result[key], size) for key in ("place", "pays")} | {
        "crossing": float(np.clip(moved, *ENDS))
    }


def _missing(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """This share of the data sets has no positional minimum."""
    return [
        replace(m, result=m.result | {"place": np.full(3, np.nan)}) if (i * 0.618034) % 1 < size else m
        for i, m in enumerate(measurements)
    ]


_MINE = {"mixture": 0.3, "encoding": 3.0, "most": 4.0}
_PUBLISHED = {"mixture": 0.3, "encoding": 1.0, "token_scale": 0.5, "decay": 0.01}

CLAIM = Claim(
    id="positional.baseline",
    version=4,
    statement=(
        r"A layer that attends by position is worse than the best fixed weights by place at every $\alpha$ tried (more"
        " than 60 % of data sets have such a minimum at all of them at the largest size). A layer that attends by"
        r" meaning beats them from the $\alpha$ that the theory says, to 5 % on average over two settings and 10 % in"
        " each: in our setting before the losses switch, in the published one after it, so that there the better fit is"
        " still worse than fixed weights."
    ),
    formula=r"\varepsilon_{\text{semantic}}(\alpha_l)=4\sigma^2(1-\omega)^2\operatorname{Var}\,\sigma(S(S+R))",
    source="cui2024phase, the comparison with a linear positional layer",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(**_MINE, d=d) for d in (80, 120, 180, 280)] + [Point(**_PUBLISHED, d=d) for d in (160, 240, 360, 500)],
            seeds=(36, 24, 24, 40, 36, 24, 24, 60),
        ),
        "full": Sweep(
            [Point(**_MINE, d=d) for d in (100, 180, 320, 500)] + [Point(**_PUBLISHED, d=d) for d in (250, 400, 650, 1000)],
            seeds=(80, 60, 50, 60, 80, 60, 50, 60),
        ),
    },
    absent=("place",),
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: test error of the positional minimum over that of the best layer by place, against samples; dotted lines are"
        " where meaning is predicted to beat that layer, dashed ones where the losses switch. Right: where meaning beats it"
        " over the prediction, against 1/d; the line is exact agreement. Points are means over data sets with standard"
        " errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("the predicted crossing times {size:g}", (1.02, 1.1, 1.12, 1.3), 1.12,
                 change=changed(lambda result, size: {"crossing": result["crossing"] / size})),
        Mutation("the predicted crossing times {size:g} (too early)", (0.98, 0.9, 0.7), 0.9,
                 change=changed(lambda result, size: {"crossing": result["crossing"] / size})),
        Mutation("the baseline is {size:g} times what it is", (1.05, 1.5), 1.5,
                 change=changed(lambda result, size: {key: np.divide(result[key], size) for key in ("place", "pays")})),
        Mutation("branches swapped: the test error of either is the other's", (1.0,), 1.0, change=changed(_swapped)),
        Mutation("positional minima are missing in a share {size:g} of the data sets", (0.02, 0.6, 0.8, 1.0), 0.6,
                 change=_missing),
        Mutation("test labels leak: errors times {size:g}", (0.98, 0.85, 0.0), 0.85, change=changed(_leaking)),
        Mutation("test labels leak in the first seed of each place: errors times {size:g}", (0.01,), 0.01,
                 change=leaks("place", "pays")),
    ],
    unseen=(
        "Samples beyond four times the crossing (1.5 times in the published setting: further on its positional minimum is"
        " not stable); an error of the crossing below 5 %."
    ),
    design=(
        "In a pilot crossings had standard errors of 0.8 % (mean over settings) to 1.7 %, the difference of the losses in"
        " the published setting was 0.039 with 0.005, and 90 % of its data sets had positional minima at every alpha at"
        " d = 500. A true theory was supported in 99 % of resampled pilot runs; that resampling does not count chance"
        " misfits of the law 1/d."
    ),
)  # fmt: skip
