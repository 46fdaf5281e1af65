"""context.task-diversity: with long contexts new tasks are learned from k > d training tasks, and not from fewer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import context
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.context.kit import SIZES, bayes, floors, leaked, own, points, predicted
from attlas.claims.estimate import finite_size
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels
from attlas.claims.finding import interval
from attlas.claims.lettering import name_ends
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = (30.0, 300.0, 3000.0)  # examples of a context over d
LONG = len(ALPHAS) - 1
SLOPE = 0.06  # of an exponent
LEFT = 0.01  # of 1 - kappa
GONE = 0.001  # excess above kappa = 1, long contexts
BETWEEN = (0, 1)  # the lengths between which exponents are measured: at k = d longer ones feel the smallest task of all


class Point(Settings):
    """Tasks over d, noise, and size."""

    kappa: PositiveFloat
    noise: PositiveFloat = 0.1
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Train on endless sequences of drawn tasks, at three lengths of contexts; return what exceeds the noise, new tasks."""
    number = own(seed, "tasks", str(point.d), f"{point.kappa:g}")
    layers, theory = [], []
    for alpha in ALPHAS:
        tasks = context.draw_tasks(point.d, alpha, point.kappa, point.noise, number)
        layers.append(context.population(tasks, column=False).errors())
        theory.append(predicted(tasks.alpha, tasks.kappa, np.inf, 0.0, point.noise).icl - point.noise)
    return {
        "excess": np.array([e.icl for e in layers]) - point.noise,
        "idg": np.array([e.idg for e in layers]),
        "theory": np.array(theory),
        "bayes": bayes(ALPHAS[0], point.noise),
    }


def exponent(values: Sequence[float]) -> float:
    """Return by which power of the length the excess falls."""
    a, b = BETWEEN
    return float(-np.log(values[b] / values[a]) / np.log(ALPHAS[b] / ALPHAS[a]))


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Below k = d the excess stays at 1 - kappa, above it vanishes; exponents in alpha are 0, 1/2 at k = d, and 1."""
    tests = floors(
        ((m.result["excess"][0] + m.point.noise) / m.result["bayes"] for m in measurements),
        (float(np.min(m.result["idg"])) / m.point.noise for m in measurements),
    )
    if (refuted := leaked(tests)) is not None:
        return refuted
    numbers = {}
    for kappa in sorted({m.point.kappa for m in measurements}):
        mine = [m for m in measurements if m.point.kappa == kappa]
        expected = exponent(mine[0].result["theory"])
        slope = finite_size([(m.point.d, exponent(m.result["excess"])) for m in mine], sizes=SIZES)
        tests.append(
            Test(
                f"exponent of the length at kappa={kappa:g}",
                slope,
                between(expected - SLOPE, expected + SLOPE),
                expected,
            )
        )
        numbers[f"predicted exponent of the length at kappa={kappa:g}"] = expected
        if kappa == 1:
            continue
        last = finite_size([(m.point.d, m.result["excess"][LONG]) for m in mine], sizes=SIZES)
        region = about(1 - kappa, LEFT) if kappa < 1 else between(0, GONE)
        tests.append(
            Test(f"excess of long contexts at kappa={kappa:g}", last, region, float(mine[0].result["theory"][LONG]))
        )
    told = ", ".join(
        f"{t.estimate.value:.3f} at {t.name.split(' at ')[1]}" for t in tests if t.name.startswith("excess")
    )
    return decide(tests, f"with long contexts the error exceeds the noise by {told}", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """What exceeds the noise on new tasks against the length of contexts, for every number of tasks and size."""
    rows = [
        ("excess on new tasks", {"kappa": m.point.kappa, "d": m.point.d}, alpha, float(value), float(theory))
        for m in measurements
        for alpha, value, theory in zip(ALPHAS, m.result["excess"], m.result["theory"], strict=True)
    ]
    return gather(rows, "examples of a context over d", "error minus noise")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the excess against the length of contexts with the theory, largest d."""
    figure, (axis,) = panels(1, width=6)
    largest = max(m.point.d for m in measurements)
    noise = measurements[0].point.noise
    alphas = np.geomspace(10, 2 * ALPHAS[-1], 60)
    shown = [s for s in series(measurements) if s.settings["d"] == largest]
    for i, one in enumerate(sorted(shown, key=lambda s: s.settings["kappa"])):
        kappa, colour = one.settings["kappa"], COLOURS[i % len(COLOURS)]
        curve = [predicted(float(a), kappa, np.inf, 0.0, noise).icl - noise for a in alphas]
        axis.plot(alphas, curve, **(THEORY | {"color": colour}), label=f"kappa = {kappa:g}")
        drawn(axis, points(one), "", color=colour, fmt=MARKERS[i % len(MARKERS)], linestyle="none")
    axis.set(
        xlabel=r"examples of a context over $d$, $\alpha$",
        ylabel="error on new tasks minus noise",
        xscale="log",
        yscale="log",
        title=rf"$\tau=\infty$, $d={largest}$",
    )
    name_ends(axis)
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect three solutions of d equations."""
    return Cost(5e-4 + 1e-9 * point.d**3, int(80_000_000 + 200 * point.d**2))


def finding(numbers: Numbers) -> str:
    """Say what is left below k = d and how it falls at and above it."""
    few, wide = (numbers[f"excess of long contexts at kappa=0.5{end}"] for end in ("", " ±"))
    many = numbers["excess of long contexts at kappa=2"]
    edge, beyond = (
        f"-{interval(numbers, f'exponent of the length at kappa={kappa}')}" for kappa in (1, 2)
    )  # the powers are told with the sign of a fall
    predicted_edge = numbers["predicted exponent of the length at kappa=1"]
    return (
        f"Long contexts do not replace tasks: with d/2 training tasks the error on new ones stays {few:.3f} above the noise"
        f" (± {max(wide, 0.001):.3f} at most) however long the context, with 2d it comes within {many:.4f} of it. At k = d"
        f" the excess falls as the length to the power {edge} (predicted: -{predicted_edge:.2f}), with 2d tasks to the power"
        f" {beyond}"
    )


def _bent(result: Result, size: float) -> Result:
    """Return excesses that fall by another power."""
    return {"excess": np.asarray(result["excess"]) * (np.array(ALPHAS) / ALPHAS[LONG]) ** -size}


CLAIM = Claim(
    id="context.task-diversity",
    version=1,
    statement=(
        r"Trained on endless sequences of $k = \kappa d$ tasks, linear attention with contexts of 3000 d examples"
        r" exceeds the noise on new tasks by $1 - \kappa$ below k = d, to 1 %, and by less than 0.001 above. From 30 d"
        " to 300 d examples the excess falls by the power of the length that the theory of Lu et al. 2024 has there, to"
        " 0.06: none below k = d, 1 above, and at k = d one that tends to 1/2."
    ),
    formula=(
        r"\tau=\infty,\ \alpha\to\infty:\quad\mathrm{icl}-\rho\to1-\kappa\ (\kappa<1),\qquad"
        r"\propto\alpha^{-1/2}\ (\kappa=1),\qquad\propto\alpha^{-1}\ (\kappa>1)"
    ),
    source="lu2024asymptotic; raventos2023pretraining saw a transition in trained transformers; derived again",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(kappa=k, d=d) for k in (0.5, 0.8, 1.0, 2.0) for d in (40, 60, 100, 160)],
            seeds=(60, 40, 24, 12) * 2 + (200, 150, 100, 60) + (60, 40, 24, 12),
        ),
        "full": Sweep(
            [Point(kappa=k, d=d) for k in (0.5, 0.8, 1.0, 2.0) for d in (60, 100, 200, 400)],
            seeds=(200, 120, 60, 24) * 2 + (800, 600, 300, 100) + (200, 120, 60, 24),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Error on new tasks minus the noise against the length of contexts, for layers trained on endless sequences of"
        " kappa d tasks. Lines are the theory. Points are means over sets of tasks with standard errors, at the"
        " largest d."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("exponents are {size:g} larger", (0.03, 0.2), 0.2, change=changed(_bent)),
        Mutation("excesses are {size:g} times what they are", (1.005, 1.03), 1.03, change=scaled("excess")),
        Mutation("excesses are {size:g} of what they are", (0.995, 0.97), 0.97, change=scaled("excess")),
        Mutation(
            "errors on training tasks are reported as those on new ones ({size:g})",
            (1.0,),
            1.0,
            change=changed(lambda result, size: {"excess": np.asarray(result["idg"]) - 0.1 * size}),
        ),
        Mutation("the test tasks leak: excesses are {size:g} of what they are", (0.01,), 0.01, change=scaled("excess")),
    ],
    design=(
        "In a pilot only k = d scattered, because its smallest eigenvalues do: many seeds there give its exponent a"
        " standard error of 0.005. Lengths beyond 300 d are not used for it: at these d the smallest task of all then"
        " governs. A true theory is supported in over 98 % of runs."
    ),
    unseen=(
        "how large the excess is at and above k = d, where only its power is tested; the limit of endless contexts itself;"
        " and a transition that lies within a fifth of k = d"
    ),
)
