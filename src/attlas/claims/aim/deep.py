"""aim.deep: of two attention layers, the last is learned first.

Runs that have not converged are used as they are: their scores are integrals of finite accuracy. Samples are chosen so that
alpha d^2 is an integer at every size: message passing then asks for the same information again and again, and has it stored.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import LIMIT, SIZES, draw_task, points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, finite_size, mean
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels
from attlas.claims.finding import spans
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, below, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = 0.15  # of the errors, in units of the diagonal theory
BLURRED = 0.03  # relative standard error of the theory that is still small against that
LEAST = 0.05  # by which the first layer's error exceeds the second's, in units of the prior's
STEPS = 30
ACCURACY = 0.02  # of the integrals behind a score; 1e-3 changes errors in the fifth digit
LAYERS = ("first", "second")
GAP = "first minus second"


class Point(Settings):
    """Samples, width of both layers, residual strength and size; `samples` are those behind the theory."""

    alpha: PositiveFloat = 0.1
    rho: PositiveFloat = 1.0
    skip: float = Field(1.0, ge=0)
    d: PositiveInt
    samples: int = Field(512, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Run message passing on two layers; return both errors over that of the prior mean, beside the diagonal theory."""
    channel = aim.Deep(skip=point.skip, samples=point.samples, accuracy=ACCURACY)
    task = draw_task(channel, point.d, point.alpha, point.rho, seed)
    found = aim.message_passing(task.X, task.y, channel, point.rho, S=task.S, max_steps=STEPS, throw=False)
    residue = task.S - found.S_hat
    theory = _theory(channel, point.alpha, point.rho)
    return {
        "errors": found.mse[-1] / found.mse[0],
        "course": found.mse,
        "cross": float(np.sum(residue[0] * residue[1])) / point.d,
        "theory": theory.value,
        "theory_error": theory.standard_error,
        "correlation": float(theory.qhat[0, 1] / np.sqrt(theory.qhat[0, 0] * theory.qhat[1, 1])),
        "converged": found.converged and theory.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The first layer's error exceeds the second's, paired over data sets; both extrapolate to the diagonal theory, to 15 %.

    The theory is a Monte Carlo estimate itself, whose standard error must be small against 15 %.
    """
    if len({(m.point.rho, m.point.skip) for m in measurements}) > 1:
        raise Undecided("judge one rho and one skip at a time")
    tests = []
    for alpha in sorted({m.point.alpha for m in measurements}):
        mine = [m for m in measurements if m.point.alpha == alpha]
        largest = max(m.point.d for m in mine)
        gaps = [float(m.result["errors"][0] - m.result["errors"][1]) for m in mine]
        theory = float(mine[0].result["theory"][0] - mine[0].result["theory"][1])
        tests.append(Test(f"alpha = {alpha:g}: {GAP}", mean(gaps), above(LEAST), expected=theory))
        for i, name in enumerate(LAYERS):
            rows = [(m.point.d, float(m.result["errors"][i] / m.result["theory"][i])) for m in mine]
            limit = finite_size(rows, sizes=SIZES)
            tests.append(Test(f"alpha = {alpha:g}, {name} layer{LIMIT}", limit, about(1, EPS), expected=1.0))
        blur = max(
            m.result["theory_error"][i] / m.result["theory"][i] for m in mine if m.point.d == largest for i in (0, 1)
        )
        tests.append(Test(f"alpha = {alpha:g}: relative error of the theory", Exact(float(blur)), below(BLURRED)))
    correlation = max(abs(float(m.result["correlation"])) for m in measurements)
    reason = f"the diagonal theory drops correlations of up to {correlation:.0%}"
    return decide(tests, reason, {"correlation that the theory drops": correlation})


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of both layers over the diagonal theory against 1/d, and along the iteration."""
    return _ratios(measurements) + _courses(measurements)


def _ratios(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (f"{name} layer", {"alpha": m.point.alpha}, 1 / m.point.d, m.result["errors"][i] / m.result["theory"][i], 1.0)
        for i, name in enumerate(LAYERS)
        for m in measurements
    ]
    return gather(rows, "1/d", "mse / diagonal theory")


def _courses(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (f"{name} layer", {"alpha": m.point.alpha, "d": m.point.d}, step, errors[i], None)
        for i, name in enumerate(LAYERS)
        for m in measurements
        for step, errors in enumerate(m.result["course"])
    ]
    return gather(rows, "iteration", "mse after the step")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw both layers' errors over the diagonal theory against 1/d, and their course at the largest alpha and size."""
    figure, (left, right) = panels(2)
    largest, top = max(m.point.d for m in measurements), max(m.point.alpha for m in measurements)
    theory = next(m.result["theory"] for m in measurements if m.point.alpha == top)
    for layer, name in enumerate(LAYERS):
        style = {"color": COLOURS[layer], "fmt": MARKERS[layer]}
        beside = (0.98 + 0.04 * layer).__mul__  # so that the layers do not hide each other
        for mine in _ratios(measurements):
            if mine.name == f"{name} layer":
                main = mine.settings["alpha"] == top
                drawn(left, points(mine, beside), None if main else "", **style, alpha=1.0 if main else 0.4)
        for mine in _courses(measurements):
            if mine.name == f"{name} layer" and mine.settings == {"alpha": top, "d": largest}:
                drawn(right, mine, "", **style)
        right.axhline(float(theory[layer]), **(THEORY | {"color": COLOURS[layer]}))
    if len({m.point.alpha for m in measurements}) > 1:
        left.plot([], [], "o", color="#555555", alpha=0.4, markersize=5, label="smaller alpha")
    left.axhline(1, **THEORY)
    left.set(xlabel="1/d", ylabel="error / diagonal theory", xlim=(0, None))
    right.set(xlabel="iteration", ylabel=f"error at alpha = {top:g}, d = {largest}", ylim=(0, None))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect half a millisecond for each score; the theory is shared by all runs."""
    n = point.alpha * point.d**2
    return Cost(0.15 + STEPS * n * 3e-4, int(150_000_000 + 200 * n * point.d))


def finding(numbers: Numbers) -> str:
    """Say by how much the first layer lags behind, and how near the diagonal theory is."""
    return (
        f"The last layer is learned first: the error of the first is larger by {spans(numbers, GAP)}, where guessing the"
        f" prior mean gives 1; extrapolated to infinite d both layers have {spans(numbers, LIMIT)} times the error of the"
        " diagonal theory"
    )


@lru_cache(maxsize=64)
def _theory(channel: aim.Deep, alpha: float, rho: float) -> aim.FixedPoint:
    return aim.state_evolution(channel, alpha, rho, throw=False)


CLAIM = Claim(
    id="aim.deep",
    version=2,
    statement=(
        "Of two stacked attention layers the last is learned first, and the diagonal approximation predicts both"
        r" errors, to 15 % as d grows (two tokens, $\rho = 1$)."
    ),
    formula=r"A_l=\operatorname{softmax}(\beta H^{(l)}),\quad x^{(2)}=(cI+A_1)\,x^{(1)},\quad y=A_2:\qquad V_2<V_1",
    source="boncoraglio2025bayes, deep attention",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (20, 30, 40, 50)], seeds=(16, 9, 6, 5)),
        "full": Sweep(
            [Point(alpha=a, d=d, samples=4096) for a in (0.1, 0.2, 0.3) for d in (20, 30, 50, 80)],
            seeds=(24, 16, 8, 6) * 3,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error of message passing in each layer over the diagonal theory, against 1/d; the"
        " line is exact agreement. Right: the errors after each iteration at the largest alpha and d, and the theory's"
        " fixed point. Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
    mutations=[
        Mutation(
            "the layers change places",
            (1.0,),
            1.0,
            change=changed(lambda result, _: {"errors": result["errors"][::-1]}),
        ),
        Mutation(
            "the diagonal theory is off by a factor {size:g}",
            (1.1, 1.3, 1.5),
            1.3,
            change=changed(lambda result, size: {"theory": np.multiply(result["theory"], size)}),
        ),
        Mutation(
            "errors times {size:g}: the teachers leak",
            (0.5, 0.0),
            0.5,
            change=changed(lambda result, size: {"errors": np.multiply(result["errors"], size)}),
        ),
    ],
    design=(
        "In a pilot errors over the theory scattered by 2/d (first layer) and 4/d (second); sizes and seeds give standard"
        " errors of 2 % and 3 % at d = infinity, and support a true theory with probability 0.95."
    ),
    unseen="What dropping the correlation of the layers' noises costs, if it is below 15 %.",
)
