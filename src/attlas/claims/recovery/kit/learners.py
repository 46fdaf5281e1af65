"""What claims about learners share: a learner on planted data, how often it succeeds, and where nobody can."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from attlas.claims.claim import Cost, Measurement, Numbers, Result, Settings
from attlas.claims.estimate import Exact, share
from attlas.claims.figure import THEORY, drawn, finished, panels
from attlas.claims.finding import interval
from attlas.claims.learners import learner
from attlas.claims.lettering import powers
from attlas.claims.mutation import Mutation, changed
from attlas.claims.recovery.kit.figures import magnitude, runs, shifted
from attlas.claims.recovery.kit.tasks import LEARNERS, SUCCESS, Budget, Name, planted
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EACH, OVERALL = (
    0.8,
    0.9,
)  # the shares of layers that variable projection must find: in every setting, and in all together
RARE = 0.5  # the share below which a learner falls behind
HIDDEN = 0.2  # the share of layers that may seem found where outputs are fewer than parameters
SHARP = 10.0  # logits with a larger standard deviation are sharp
ALL = "share found by variable projection in all settings"
CAPTION = (
    "Error of every learner on fresh examples, on a logarithmic scale, against the number of heads: each run faintly, and"
    " means with standard errors. A run below the dotted line has found the layer. With the fewest examples there are"
    " fewer outputs than parameters, and no learner can find it."
)


class Point(Settings):
    """Heads, tokens, the size of the logits, the number of examples, and a learner with its budget in steps."""

    heads: PositiveInt
    d: int = Field(6, ge=2)
    k: int = Field(4, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(120, ge=1)
    learner: Name = "varpro"
    starts: PositiveInt = 3
    adam_steps: PositiveInt = 1000


def attempt(law: Literal["boolean", "gaussian"], point: Point, seed: int) -> Result:
    """Return the relative error of a learner on fresh examples; the data of a seed are the same for all learners."""
    _, data, fresh = planted(law, point.heads, point.d, point.k, point.scale, point.n, seed)
    budget = Budget(starts=point.starts, adam_steps=point.adam_steps)
    fit = LEARNERS[point.learner](data, point.heads, seed, budget)
    return {"error": fresh.residual(fit.Theta, fit.W), "converged": fit.converged}


def determined(point: Point) -> bool:
    """Return whether there are as many outputs as parameters."""
    return point.n * point.k >= 2 * point.heads * point.d


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Variable projection finds the layer nearly always, Adam seldom where logits are sharp, nobody without enough data."""
    points = list(dict.fromkeys(m.point for m in measurements))
    hits = {p: [m.result["error"] < SUCCESS for m in measurements if m.point == p] for p in points}
    tests = [Test("smallest error", Exact(float(min(m.result["error"] for m in measurements))), above(0.0))]
    numbers: dict[str, float] = {}
    for point in points:
        found = share(hits[point])
        name = f"share found by {learner(point.learner).name} at {label(point)}"
        if not determined(point):
            tests.append(Test(name, found, below(HIDDEN)))
        elif point.learner == "varpro":
            tests.append(Test(name, found, above(EACH)))
        elif point.learner == "adam" and point.scale > SHARP:
            tests.append(Test(name, found, below(RARE)))
        else:
            numbers |= found.numbers(name)
    pooled = [hit for p in points if p.learner == "varpro" and determined(p) for hit in hits[p]]
    tests.append(Test(ALL, share(pooled), above(OVERALL)))
    worst = max(m.result["error"] for m in measurements if m.point.learner == "varpro" and determined(m.point))
    numbers["largest error of variable projection"] = float(worst)
    return decide(tests, f"variable projection finds {sum(pooled)} of {len(pooled)} layers", numbers)


def finding(tokens: str) -> Callable[[Numbers], str]:
    """Return what was found, on tokens of some kind."""

    def said(numbers: Numbers) -> str:
        trials = numbers[f"{ALL}, trials"]
        found = (
            f"From random {tokens} tokens variable projection finds {numbers[ALL] * trials:.0f} of {trials:.0f} layers,"
            f" {interval(numbers, ALL, '.0%')}"
        )
        adam = max((name for name in numbers if _sharp(name)), key=lambda name: numbers[name], default="")
        return f"{found}; where logits are sharp, Adam finds {interval(numbers, adam, '.0%')}" if adam else found

    return said


def _sharp(name: str) -> bool:
    scale = float(name.split(" s=")[1].split(maxsplit=1)[0]) if " s=" in name else 0.0
    return name.startswith("share found by Adam") and "," not in name and scale > SHARP


def missed(measurements: Any, size: float) -> Any:
    """Return the measurements with a share `size` of what variable projection finds lost, evenly over the settings."""
    found, met = [], 0
    for m in measurements:
        if m.point.learner == "varpro" and determined(m.point):
            met += 1
            lost = int(met * size) > int((met - 1) * size)
            found.append(replace(m, result=m.result | {"error": 0.3}) if lost else m)
        else:
            found.append(m)
    return found


def told(measurements: Any, size: float) -> Any:
    """Return the measurements if a share `size` of the layers were told to the learner where data are too few."""
    found, met = [], 0
    for m in measurements:
        met += not determined(m.point)
        lost = not determined(m.point) and int(met * size) > int((met - 1) * size)
        found.append(replace(m, result=m.result | {"error": 1e-12}) if lost else m)
    return found


MUTATIONS = (
    Mutation("variable projection misses {size:g} of the layers", (0.05, 0.2, 0.4), 0.2, change=missed),
    Mutation(
        "every error is {size:g} at least",
        (1e-6, 2e-3),
        2e-3,
        change=changed(lambda r, size: {"error": max(r["error"], size)}),
    ),
    Mutation("the truth leaks: errors are {size:g}", (0.0,), 0.0, change=changed(lambda _, size: {"error": size})),
    Mutation("{size:g} of the layers are known before there are data", (0.1, 0.6, 1.0), 0.6, change=told),
    Mutation(
        "Adam finds {size:g} of the layers with sharp logits",
        (1.0,),
        1.0,
        change=lambda ms, size: [
            replace(m, result=m.result | {"error": 1e-6 / size}) if m.point.learner == "adam" else m for m in ms
        ],
    ),
)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the errors of every learner against the number of heads, as powers of ten."""
    rows = [
        (m.point.learner, _setting(m.point), m.point.heads, magnitude(m.result["error"]), None) for m in measurements
    ]
    return gather(rows, "heads m", "log10 of the relative error on fresh examples")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw a panel for every setting but the heads."""
    settings = list(dict.fromkeys(tuple(_setting(m.point).items()) for m in measurements))
    columns = 4 if len(settings) > 6 else 3
    figure, axes = panels(len(settings), width=max(3.4, 6 / len(settings)), height=3.2, columns=columns)
    reached = [value for m in measurements if isfinite(value := magnitude(m.result["error"]))]
    for axis, setting in zip(axes, settings, strict=True):
        mine = [m for m in measurements if tuple(_setting(m.point).items()) == setting]
        for i, name in enumerate((*LEARNERS, "sculpt")):
            aside = 0.15 * (i - 1)
            own = [m for m in mine if m.point.learner == name]
            runs(axis, [m.point.heads + aside for m in own], [magnitude(m.result["error"]) for m in own], name)
            for one in series(own):
                drawn(axis, shifted(one, aside), linestyle="none")
        axis.axhline(magnitude(SUCCESS), linestyle=":", **THEORY)
        point = mine[0].point
        axis.set_title(f"d = {point.d}, k = {point.k}, s = {point.scale:g}, n = {point.n}", fontsize=9)
        heads = sorted({m.point.heads for m in mine})
        axis.set(xlabel="heads m", xlim=(heads[0] - 0.6, heads[-1] + 0.6))
        axis.set_xticks(heads)
        powers(axis.yaxis, reached)
    for axis in axes[::columns]:
        axis.set_ylabel("error on fresh examples")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect few steps of variable projection; all batches of Adam; all iterations of L-BFGS if logits are sharp."""
    work = point.heads * point.k * point.d * (point.d + point.k)
    if point.learner == "adam":
        return Cost(1e-4 * point.adam_steps * (1 + work / 600), 200_000_000)
    if point.learner == "lbfgs":
        iterations = 1500 if point.scale > SHARP else 200
        return Cost(iterations * (1e-4 + 1.7e-9 * point.n * work), 200_000_000)
    unknowns = point.heads * point.d**2
    return Cost(0.02 + 15 * (1.2e-10 * point.n * point.k * unknowns**2 + 3e-4 * point.heads**2), 200_000_000)


def label(point: Point) -> str:
    """Return the setting in letters."""
    return f"m={point.heads} d={point.d} k={point.k} s={point.scale:g} n={point.n}"


def _setting(point: Point) -> dict[str, float]:
    return {"d": point.d, "k": point.k, "scale": point.scale, "n": point.n}
