"""aim.gradient-descent: does gradient descent, averaged over its starts, reach the Bayes error?

It is compared with message passing on the same data, whose error at finite d is within 2 % of the best (`docs/aim.md`): the
scatter of teachers and data is common to both. A descent that has not converged is no measurement: one such run leaves the
claim undecided. One that has converged without fitting its data is left out by the judge.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import HOLLOW, amp_cost, draw_task, errors, points, require_error
from attlas.claims.aim.kit import theory as theory_of
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Undecided, mean
from attlas.claims.figure import THEORY, drawn, filled_and_hollow, finished, panels
from attlas.claims.finding import interval
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = 0.1  # one run has twice the best error, like a draw from the posterior: averaging must remove nine tenths of that
FITTED = 1e-6  # without noise a larger loss means that descent got stuck or gave up
KINDS = ("single", "averaged", "limit")
SINGLE = "one run over message passing"
AT = " at d = "
INFINITE = "averaged over infinitely many starts"


class Point(Settings):
    """Samples, width, size and number of starts; two tokens, loss on the logits."""

    alpha: PositiveFloat = 0.1
    rho: PositiveFloat = 1.0
    d: PositiveInt
    inits: int = Field(8, ge=2)


def measure(point: Point, seed: int) -> Result:
    """Descend from several starts; return the errors of one run, of the average and of infinitely many starts.

    Each is divided by the error of the prior mean for the drawn teacher, whose scatter it shares; ``amp`` is that of message
    passing on the same data.
    """
    channel = aim.Softmax(2)
    task = draw_task(channel, point.d, point.alpha, point.rho, seed)
    rank = round(point.rho * point.d)
    V, known = theory_of(channel, len(task.X) / point.d**2, rank / point.d)
    best = aim.message_passing(task.X, task.y, channel, rank / point.d, S=task.S, throw=False)
    found = aim.descend(task.X, task.y, channel, rank, inits=point.inits, seed=seed, throw=False)
    prior = float(best.mse[0])
    own = dict(zip(KINDS, (error / prior for error in found.mse(task.S)), strict=True))
    return own | {
        "amp": float(best.mse[-1]) / prior,
        "theory": V,
        "loss": float(found.losses.max()),
        "converged": found.converged and best.converged and known,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The error of infinitely many starts over that of message passing on the same data is 1 at the largest d, to 10 %.

    Only runs that fitted their data are used. Smaller sizes are reported: the ratio does not follow 1 + C/d.
    """
    fitted = [m for m in measurements if m.result["loss"] < FITTED]
    if not fitted or len(fitted) < 0.8 * len(measurements):
        raise Undecided(f"only {len(fitted)} of {len(measurements)} descents fitted their data")
    require_error(fitted)
    tests: list[Test] = []
    beside: dict[str, float] = {}
    for name in dict.fromkeys(_label(m.point) for m in fitted):
        sizes: dict[int, list[float]] = {}
        for m in fitted:
            if _label(m.point) == name:
                sizes.setdefault(m.point.d, []).append(float(np.divide(m.result["limit"], m.result["amp"])))
        largest = max(sizes)
        tests.append(Test(f"{name}{AT}{largest}", mean(sizes[largest]), about(1, EPS), expected=1.0))
        beside |= {f"{name}, smaller d = {d}": float(np.mean(own)) for d, own in sizes.items() if d < largest}
    single = mean([np.divide(m.result["single"], m.result["amp"]) for m in fitted]).numbers(SINGLE)
    found = interval(single, SINGLE) if f"{SINGLE} ±" in single else f"{single[SINGLE]:.2f}"
    reason = (
        f"one run of descent has {found} times the error of message passing on the same data; tested is"
        " the average of infinitely many"
    )
    return decide(tests, reason, beside | single)


def _label(point: Point) -> str:
    return f"alpha = {point.alpha:g}, rho = {point.rho:g}"


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of one run and of the average against alpha; these and of infinitely many starts over the best, against 1/d."""
    found = errors(measurements, "single", "single")
    found += errors(measurements, "averaged", "averaged", lambda m: m.result["theory"])
    return found + _ratios(measurements)


def _ratios(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = []
    for kind, name, theory in zip(KINDS, ("single", "averaged", INFINITE), (None, 1.0, 1.0), strict=True):
        for m in measurements:
            settings = {"alpha": m.point.alpha, "rho": m.point.rho, "inits": m.point.inits}
            rows.append((name, settings, 1 / m.point.d, m.result[kind] / m.result["amp"], theory))
    return gather(rows, "1/d", "mse / mse of message passing")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the three errors over that of message passing against 1/d."""
    figure, (axis,) = panels(1, width=6)
    first = measurements[0].point
    for mine in _ratios(measurements):
        main = mine.settings == {"alpha": first.alpha, "rho": first.rho, "inits": first.inits}
        drawn(axis, points(mine), **({} if main else HOLLOW))
    if len({(m.point.alpha, m.point.rho) for m in measurements}) > 1:
        filled_and_hollow(axis, f"alpha = {first.alpha:g}, rho = {first.rho:g}", "further settings")
    axis.axhline(1, **THEORY)
    axis.axhline(2, linestyle=":", **THEORY)
    axis.set(xlabel="1/d", ylabel="error / that of message passing", xlim=(0, None), ylim=(0.5, None))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some hundreds of steps of two products with all starts, and message passing."""
    n, r = point.alpha * point.d**2, point.rho * point.d
    step = 4 * n * 2 * point.d * r * point.inits / 4e10 + 1.5e-8 * n * 2 * r * point.inits + 1.5e-4
    amp = amp_cost(aim.Softmax(2), point.d, point.alpha)
    return Cost(0.03 + 100 * step + amp.seconds, int(80_000_000 + 40 * n * 2 * r * point.inits))


def finding(numbers: Numbers) -> str:
    """Say how near the average comes, and how far one run stays."""
    d, ratio, half = _largest(numbers)
    return (
        f"Averaging makes gradient descent optimal: over infinitely many starts its error at d = {d} is {ratio:.2f} ±"
        f" {half:.2f} times that of message passing on the same data, and one run has {interval(numbers, SINGLE)} times"
    )


def _ours(numbers: Numbers) -> str:
    d, ratio, half = _largest(numbers)
    return (
        f"One run has {interval(numbers, SINGLE)} times the error of message passing on the same data. Averaged over"
        f" infinitely many starts it has {ratio:.2f} ± {half:.2f} times at d = {d}."
    )


def _largest(numbers: Numbers) -> tuple[int, float, float]:
    """Return the largest size, the ratio there and half the width of its interval."""
    for name, value in numbers.items():
        size = name.rpartition(AT)[2]
        if size.isdecimal():
            return int(size), value, numbers[f"{name} ±"]
    raise LookupError(AT)


def _starts_kept(result: Result, size: float) -> Result:
    """Return what would be measured if averaging removed only the share `size` of what it removes."""
    return {"limit": result["single"] - size * (result["single"] - result["limit"])}


CLAIM = Claim(
    id="aim.gradient-descent",
    version=5,
    statement=(
        "Gradient descent on a softmax layer, averaged over its initialisations, reaches the Bayes-optimal error, as"
        " Boncoraglio et al. say: over infinitely many starts that of message passing on the same data, to 10 % at the"
        " largest d tried (60 in the quick tier, 120 in the full one)."
    ),
    formula=(
        r"\frac{1}{d}\left\lVert S-\frac{1}{K}\sum_{k=1}^{K}\hat S_k\right\rVert^2\to V"
        r"\qquad(K\text{ starts},\;K\to\infty)"
    ),
    source="boncoraglio2025bayes, gradient descent and averaging",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (24, 40, 60)], seeds=(8, 8, 12)),
        "full": Sweep(
            [Point(alpha=a, rho=rho, d=d) for a, rho in ((0.1, 0.5), (0.1, 1.0)) for d in (40, 80, 120)],
            seeds=(20, 12, 10) * 2,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Error of gradient descent over that of message passing on the same data, against 1/d: of one run, of the average"
        " over the starts, and extrapolated to infinitely many starts. The lines are the"
        " best error and twice it (dotted), the error of one draw from the posterior. Points are means over data sets with"
        " standard errors."
    ),
    finding=finding,
    differs=[
        Difference(
            title="Averaged gradient descent",
            statement="Gradient descent, averaged over its starts, was found to reach the Bayes error.",
            ours=_ours,
        )
    ],
    series=series,
    mutations=[
        Mutation("averaging removes {size:g} of what it removes", (0.9, 0.7, 0.5), 0.7, change=changed(_starts_kept)),
        Mutation(
            "errors times {size:g}: the teacher leaks",
            (0.7, 0.0),
            0.7,
            change=changed(lambda result, size: {kind: size * result[kind] for kind in KINDS}),
        ),
    ],
    design=(
        "One run has twice the best error, as a draw from the posterior would; 10 % means that averaging removes nine tenths"
        " of that excess. It was the tolerance before the pilot of version 3, which cut it to 5 % and is withdrawn. In a"
        " pilot (run 1000) of 12 data sets at d = 60 the ratio scattered by 0.045: 12 fresh ones know it to 0.013, and would"
        " support a true claim in over 99 % of runs. It was 1.19 there, after 1.04, 1.08 and 1.13 at d = 16, 24 and 40 in"
        " version 3: a refutation was expected when this design was registered. The ratio grows with d, so nothing is"
        " extrapolated."
    ),
    unseen="What other losses, step sizes and scales of the start would reach, and whether the gap closes at larger d.",
)
