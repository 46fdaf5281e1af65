"""recovery.hard-instances: m heads can hide a parity of m coordinates, which learners do not find."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, mean
from attlas.claims.figure import THEORY, finished, panels
from attlas.claims.finding import interval
from attlas.claims.learners import learner
from attlas.claims.mutation import Mutation, changed
from attlas.claims.recovery.kit.figures import runs, shifted
from attlas.claims.recovery.kit.parity import attempted, deviation, drawn_task
from attlas.claims.recovery.kit.tasks import LEARNERS, Budget, Name
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT = 1e-12
CHANCE = 0.05  # of one half, within which an accuracy is no better than guessing
SOLVED = 0.8  # the accuracy that every learner must have on the control


class Point(Settings):
    """Heads, which are also hidden coordinates; tokens, examples; a learner with its budget in steps."""

    heads: int = Field(5, ge=3)
    d: int = Field(12, ge=4)
    n: int = Field(400, ge=100)
    learner: Name = "varpro"
    starts: PositiveInt = 1
    steps: PositiveInt = 12
    lbfgs_steps: PositiveInt = 150
    adam_steps: PositiveInt = 400


def measure(point: Point, seed: int) -> Result:
    """Return how exact the parity is, and what a learner makes of it and of a control with the same norms."""
    task = drawn_task(point.heads, point.d, point.n, seed)
    budget = Budget(point.starts, point.steps, point.adam_steps, point.lbfgs_steps)
    return attempted(task, point.learner, budget, seed) | {"deviation": deviation(task.parity, task.fresh)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The parity is exact; on it every learner is at chance, and on the control of the same norms it is not."""
    errors = [m.result[f"{kind}_error"] for m in measurements for kind in ("parity", "control")]
    tests = [
        Test("largest deviation of the parity", Exact(max(m.result["deviation"] for m in measurements)), below(EXACT)),
        Test("smallest error", Exact(float(min(errors))), above(0.0)),
    ]
    for point in dict.fromkeys(m.point for m in measurements):
        mine = [m.result for m in measurements if m.point == point]
        label = f"m={point.heads} d={point.d} n={point.n} {learner(point.learner).name}"
        chance = between(0.5 - CHANCE, 0.5 + CHANCE)
        tests += [
            Test(f"{label} accuracy on the parity", mean([r["parity"] for r in mine]), chance, 0.5),
            Test(f"{label} accuracy on the control", mean([r["control"] for r in mine]), above(SOLVED)),
        ]
    parity, control = (
        [test.estimate.value for test in tests if test.name.endswith(f"accuracy on the {kind}")]
        for kind in ("parity", "control")
    )
    reason = (
        f"the sign of the parity is right with accuracy {min(parity):.3f} to {max(parity):.3f}, that of the control of equal"
        f" norms with {min(control):.3f} to {max(control):.3f}"
    )
    return decide(tests, reason)


def finding(numbers: Numbers) -> str:
    """Return who finds which."""
    names = [name for name in numbers if name.endswith(("accuracy on the parity", "accuracy on the control"))]
    if not names:
        raise LookupError("accuracy")
    best = interval(numbers, max((name for name in names if name.endswith("parity")), key=lambda name: numbers[name]))
    worst = interval(numbers, min((name for name in names if name.endswith("control")), key=lambda name: numbers[name]))
    return (
        "Two layers have the same norms, but only one is learned: on that one every learner has the sign of the output right"
        f" at least {worst} of the time; the other hides a parity, and no learner has its sign right more than {best} of the"
        " time (chance is 0.50)"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the accuracy of every learner on the parity against the number of heads, beside chance."""
    rows = [
        (m.point.learner, m.point.model_dump(include={"d", "n"}), m.point.heads, m.result["parity"], 0.5)
        for m in measurements
    ]
    return gather(rows, "heads m", "accuracy of the parity on unseen tokens")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the accuracies on parity and control, and those on the parity by the number of heads."""
    figure, (left, right) = panels(2)
    for i, name in enumerate(LEARNERS):
        mine = [m for m in measurements if m.point.learner == name]
        if not mine:
            continue
        look, aside = learner(name), 0.15 * (i - 1)
        accuracies = ([m.result[kind] for m in mine] for kind in ("control", "parity"))
        left.plot(*accuracies, look.marker, color=look.colour, alpha=0.6, label=look.name)
        runs(right, [m.point.heads + aside for m in mine], [m.result["parity"] for m in mine], name)
        for one in series(mine):
            place = shifted(one, aside)
            right.errorbar(place.x, one.mean, yerr=one.standard_error, fmt=look.marker, color=look.colour, capsize=2)
    left.axhline(0.5, linestyle=":", **THEORY)
    left.set(xlabel="accuracy on the control", ylabel="accuracy on the parity", xlim=(0.4, 1.02), ylim=(0.3, 1.02))
    right.axhline(0.5, linestyle=":", **THEORY)
    heads = sorted({m.point.heads for m in measurements})
    right.set_xticks(heads)
    right.set(xlabel="heads m", ylabel="accuracy on the parity")
    right.set(xlim=(heads[0] - 0.6, heads[-1] + 0.6), ylim=(0.3, 1.02))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect two searches that use up their budgets."""
    unknowns = point.heads * point.d**2
    rows = 2 * point.n
    seconds = {
        "varpro": point.starts * point.steps * (0.02 + 5e-11 * (rows * unknowns**2 + 4 * unknowns**3)),
        "lbfgs": point.starts * point.lbfgs_steps * (5e-4 + 6e-9 * rows * unknowns),
        "adam": point.adam_steps * (5e-4 + 8e-7 * unknowns),
    }
    return Cost(0.1 + 2 * seconds[point.learner], 300_000_000)


def _found(measurements: Any, size: float) -> Any:
    """Return the measurements if one learner, the first, were right with this accuracy."""
    first = measurements[0].point.learner
    return [
        replace(m, result=m.result | {"parity": m.result["parity"] - 0.5 + size}) if m.point.learner == first else m
        for m in measurements
    ]


CLAIM = Claim(
    id="recovery.hard-instances",
    version=2,
    statement=(
        "Some layers are not learned: five heads can hide a parity of five coordinates, exactly, and on tokens they have not"
        " seen variable projection, L-BFGS and Adam stay within 0.05 of chance on it, while in the same budgets each has the"
        " sign right more than 80 % of the time on a control of the same norms (d = 12, 400 examples). Chen and Li (2024)"
        " prove that statistical queries need exponentially many steps in m for some layers."
    ),
    formula=(
        r"\Theta_i=B\,(1_S-\tau_i e_d)\,e_d^\top,\quad W_i=w_i\,e_d e_d^\top:"
        r"\qquad F(X)_{rd}=\prod_{j\in S}x_{rj}\quad\text{where }x_{1d}\ne x_{2d}"
    ),
    source="chen2024provably, the lower bound; the construction is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(learner=name) for name in LEARNERS], seeds=[6, 6, 7]),
        "full": Sweep(
            [
                Point(heads=m, d=14, n=1500, learner=name, steps=30, lbfgs_steps=1000, adam_steps=10_000)
                for m in (5, 7)
                for name in LEARNERS
            ],
            seeds=[8, 10, 10] * 2,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: how often every learner has the sign of the output right on tokens it has not seen, on a layer that hides a"
        " parity against a control of the same norms, one point per run. Right: the parity by the number of heads, each run"
        " faintly and means with standard errors. Dotted lines are chance."
    ),
    finding=finding,
    differs=[
        Difference(
            "Hard instances",
            "Some layers of m heads hide a parity of m coordinates that no learner finds.",
            lambda numbers: f"{finding(numbers)}. For fewer heads see recovery.lower-bound",
        )
    ],
    series=series,
    # a learner is its budget: what it has when that is spent is its answer, and Adam always spends it
    unfinished=Unfinished.USED,
    mutations=(
        Mutation("one learner has the parity right {size:g} of the time", (0.55, 0.65, 1.0), 0.65, change=_found),
        Mutation("one learner is wrong on the parity {size:g} of the time less", (0.35, 0.1), 0.35, change=_found),
        Mutation(
            "the parity is off by {size:g}", (1e-14, 1e-6), 1e-6, change=changed(lambda _, size: {"deviation": size})
        ),
        Mutation(
            "accuracies on the control are lower by {size:g}",
            (0.05, 0.3),
            0.3,
            change=changed(lambda r, size: {"control": r["control"] - size}),
        ),
        Mutation(
            "the truth leaks: errors are {size:g}", (0.0,), 0.0, change=changed(lambda _, size: {"control_error": size})
        ),
    ),
    unseen="A learner that needs more steps or examples than these budgets, or that eliminates over GF(2).",
    design=(
        "In a pilot accuracies were 0.488 to 0.494 with a scatter of 0.02, and 0.94 or more on controls; six layers suffice."
        " It shares the sizes of recovery.lower-bound at m = 5, not its data."
    ),
)
