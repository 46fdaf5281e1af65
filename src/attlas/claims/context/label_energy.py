"""context.label-energy: the squares of the labels, which the model offers to the layer, only cost on new tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import context
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.context.kit import Array, bayes, floors, leaked, own
from attlas.claims.estimate import finite_size, resampled
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, filled_and_hollow, finished, panels
from attlas.claims.finding import named, off, span, within
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.05  # of d times the cost, for contexts of up to `SHORT` d examples; above zero for longer ones
SHORT = 10.0
POWER = 0.1  # tolerance of the exponent of d, which is -1


class Point(Settings):
    """Examples of a context and tasks over d, noise, and size."""

    alpha: PositiveFloat
    kappa: PositiveFloat
    noise: PositiveFloat = 0.1
    d: PositiveInt


def label(point: Point) -> str:
    """Name a setting."""
    return f"alpha={point.alpha:g}, kappa={point.kappa:g}"


def measure(point: Point, seed: int) -> Result:
    """Train on endless sequences of drawn tasks, with the label energy and without."""
    number = own(seed, "tasks", str(point.d), label(point))
    tasks = context.draw_tasks(point.d, point.alpha, point.kappa, point.noise, number)
    given, without = (context.population(tasks, column=column).errors() for column in (True, False))
    return {
        "with": given.icl,
        "without": without.icl,
        "with_idg": given.idg,
        "without_idg": without.idg,
        "bayes": bayes(tasks.alpha, point.noise),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """On new tasks the label energy costs, as 1/d; on training tasks it helps a little."""
    tests = floors(
        (m.result[key] / m.result["bayes"] for m in measurements for key in ("with", "without")),
        (m.result[key] / m.point.noise for m in measurements for key in ("with_idg", "without_idg")),
    )
    if (refuted := leaked(tests)) is not None:
        return refuted
    for name in dict.fromkeys(label(m.point) for m in measurements):
        mine = [m for m in measurements if label(m.point) == name]
        rows = [(m.point.d, m.result["with"] - m.result["without"]) for m in mine]
        scaled_ = [(d, d * cost_) for d, cost_ in rows]
        groups = {d: [value for size, value in rows if size == d] for d, _ in rows}
        helped = [(m.point.d, m.point.d * (m.result["without_idg"] - m.result["with_idg"])) for m in mine]
        tests += [
            Test(f"d times the cost on new tasks, {name}", finite_size(scaled_), above(_least(mine[0].point))),
            Test(
                f"exponent of d of the cost, {name}", resampled(_power, groups), between(-1 - POWER, -1 + POWER), -1.0
            ),
            Test(f"d times the help on training tasks, {name}", finite_size(helped), above(0)),
        ]
    costs = span(t.estimate.value for t in tests if t.name.startswith("d times the cost"))
    return decide(tests, f"the label energy costs {costs} over d on new tasks")


def _least(point: Point) -> float:
    """Return what d times the cost must exceed."""
    return LEAST if point.alpha <= SHORT else 0.0


def _power(groups: Mapping[int, Array]) -> float:
    """Return the slope of the logarithm of the mean cost in that of d; steep where a cost is not positive."""
    means = np.array([np.mean(values) for values in groups.values()])
    if not (means > 0).all():
        return -10.0
    return float(np.polyfit(np.log(list(groups)), np.log(means), 1)[0])


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """What the label energy costs on new tasks and helps on training tasks, against d."""
    rows = []
    for m in measurements:
        settings = {"alpha": m.point.alpha, "kappa": m.point.kappa}
        rows.append(("cost on new tasks", settings, m.point.d, m.result["with"] - m.result["without"], None))
        helped = m.result["without_idg"] - m.result["with_idg"]
        rows.append(("help on training tasks", settings, m.point.d, helped, None))
    return gather(rows, "d", "difference of errors")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw both differences against d, with lines 1/d."""
    figure, (axis,) = panels(1, width=6, height=4.4)
    found = sorted(series(measurements), key=lambda s: s.name)
    cases = list(dict.fromkeys(tuple(one.settings.values()) for one in found))
    for one in found:
        i, cost = cases.index(tuple(one.settings.values())), one.name == found[0].name
        look = {"color": COLOURS[i], "fmt": MARKERS[i], "markerfacecolor": COLOURS[i] if cost else "white"}
        drawn(axis, one, "alpha = {:g}, kappa = {:g}".format(*cases[i]) if cost else "", linestyle="none", **look)
        x = np.array(one.x)
        axis.plot(x, one.mean[0] * x[0] / x, **(THEORY | {"color": look["color"], "linestyle": ":"}))
    filled_and_hollow(axis, found[0].name, found[-1].name)
    sizes = sorted({m.point.d for m in measurements})
    axis.set(xlabel=r"$d$", ylabel="difference of errors", xscale="log", yscale="log")
    axis.set_xticks(sizes, [f"{d:g}" for d in sizes])
    axis.set_xticks([], minor=True)
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect two solutions of d equations."""
    return Cost(3e-4 + 1e-9 * point.d**3, int(80_000_000 + 200 * point.d**2))


def finding(numbers: Numbers) -> str:
    """Say what the label energy costs."""
    return (
        f"The squares of the labels carry nothing: using them costs {_per_d(numbers)} on new tasks, falling as d to the"
        f" power {within(numbers, named(numbers, 'exponent of d of the cost'))}"
    )


def _ours(numbers: Numbers) -> str:
    return f"A layer that may use them has an error larger by {_per_d(numbers)} on new tasks, and the same limit"


def _per_d(numbers: Numbers) -> str:
    """Return the smallest and the largest cost with their intervals."""
    names = sorted(named(numbers, "d times the cost on new tasks"), key=lambda name: numbers[name])
    ends = dict.fromkeys((names[0], names[-1]))
    return " to ".join(f"({numbers[name]:#.2g} {off(numbers[f'{name} ±'], '.1g')})/d" for name in ends)


def _constant(rows: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return costs multiplied by a power of d."""
    least = min(m.point.d for m in rows)
    return [
        replace(
            m,
            result=m.result
            | {"with": m.result["without"] + (m.result["with"] - m.result["without"]) * (m.point.d / least) ** size},
        )
        for m in rows
    ]


CLAIM = Claim(
    id="context.label-energy",
    version=4,
    statement=(
        "The sum of squared labels that the model of Lu et al. 2024 gives the layer is worth nothing on new tasks:"
        " after endless training, using it raises the error by $C/d$, the exponent of d within 0.1 of -1 from d = 40 to"
        " 320, with $C$ above 0.05 for contexts of 5 d examples and above zero for longer ones. On training tasks it"
        " lowers the error."
    ),
    formula=(
        r"\mathrm{icl}\left[h=\left(\frac{d}{\ell}\sum_i y_i x_i;\,\frac{1}{\ell}\sum_i y_i^2\right)\right]"
        r"-\mathrm{icl}\left[h=\frac{d}{\ell}\sum_i y_i x_i\right]=\frac{C}{d},\qquad C>0"
    ),
    source="ours, of the model of lu2024asymptotic",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(alpha=a, kappa=k, d=d) for a, k in ((5.0, 0.5), (5.0, 2.0)) for d in (40, 80, 160, 320)],
            seeds=(150, 100, 60, 30) * 2,
        ),
        "full": Sweep(
            [Point(alpha=a, kappa=k, d=d) for a in (5.0, 100.0) for k in (0.5, 2.0) for d in (50, 100, 200, 400)],
            seeds=(600, 300, 150, 60) * 4,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "What the squares of the labels cost on new tasks, and by how much they help on training tasks, against d, for"
        " layers trained on endless sequences of kappa d tasks. Dotted lines fall as 1/d. Points are means over sets"
        " of tasks, with and without them on the same set."
    ),
    finding=finding,
    differs=[
        Difference(
            "The label energy",
            "The model of Lu et al. 2024 and Letey et al. 2025 keeps the sum of squared labels among what the layer reads.",
            _ours,
        )
    ],
    series=series,
    mutations=[
        Mutation("the cost does not fall with d ({size:g} of the way)", (0.1, 1.0), 1.0, change=_constant),
        Mutation(
            "the cost falls as d to the -{size:g}",
            (1.05, 1.5),
            1.5,
            change=lambda rows, size: _constant(rows, 1 - size),
        ),
        Mutation(
            "the label energy helps on new tasks: {size:g} times its cost",
            (0.9, -1.0),
            -1.0,
            change=changed(lambda r, size: {"with": r["without"] + size * (r["with"] - r["without"])}),
        ),
        Mutation(
            "the test tasks leak: errors are {size:g} of what they are", (0.1,), 0.1, change=scaled("with", "without")
        ),
    ],
    design=(
        "In a pilot with sizes from 25 the exponent was -1.08 at k = d/2, from 40 on -1.03 with a standard error of"
        " 0.008 (0.018 at k = 2d); a true law is supported in over 94 % of runs."
        " Version 1 asked for C above 0.05 everywhere; its full tier refuted that (0.002 at alpha = 100, kappa = 2). This"
        " version is judged on data of its own."
    ),
    unseen="layers trained on few sequences, where more parameters also move the peak, and corrections beyond 1/d",
)
