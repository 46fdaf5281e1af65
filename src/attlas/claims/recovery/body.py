"""recovery.body: the sculpted body contains the parameters up to a slack; wholly only if examples are many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, Undecided, mean, share
from attlas.claims.figure import THEORY, distinct, drawn, finished, panels
from attlas.claims.finding import interval
from attlas.claims.mutation import Mutation, changed
from attlas.claims.recovery.kit.tasks import planted
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, decide
from attlas.numerics import stream
from attlas.recovery.body import Body
from attlas.recovery.sculpt import rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SLACKS = (0.1, 0.3, 1.0, 3.0)  # half-thickness of a slab, in logits
SLACK = 1.0  # of the tests: a factor e in the odds of attention
INSIDE = 0.9  # the share of slabs and half-spaces that two true heads must satisfy
OUTSIDE = 0.4  # the share that a random head of the same law may satisfy
FEW, MANY = 4000, 16_000  # examples
WHOLE = {FEW: below(0.2), MANY: above(0.3)}  # the share of heads inside the whole body, two tokens
WINDOW = 0.0  # by which the share is higher in the better half of the rows, with few examples: any difference tells
LOST = 0.1  # by which it is lower with a third head


class Point(Settings):
    """Heads, tokens, the size of the logits and the number of examples."""

    heads: int = Field(2, ge=2)
    d: int = Field(8, ge=3)
    k: int = Field(2, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(4000, ge=500)


def measure(point: Point, seed: int) -> Result:
    """Return the shares of slabs and half-spaces that true heads satisfy, by slack, and those that random heads do.

    `close` and `far` are the shares, with a slack of one, in the half of the rows on which heads agree best, and in the
    rest.
    """
    truth, data, _ = planted("boolean", point.heads, point.d, point.k, point.scale, point.n, seed)
    *_, (_, body, _) = rounds(data)
    strangers = stream(seed, "null").standard_normal(truth.Theta.shape) * point.scale / point.d
    off, chance = (violations(body, Theta) for Theta in (truth.Theta, strangers))
    near = body.scores[_rows(body)] <= np.median(body.scores)
    return {
        "inside": [float(np.mean(off < slack)) for slack in SLACKS],
        "random": [float(np.mean(chance < slack)) for slack in SLACKS],
        "whole": [float(np.mean(own < SLACK)) == 1.0 for own in off],
        "needed": [float(own.max()) for own in off],
        "close": float(np.mean(off[:, near] < SLACK)),
        "far": float(np.mean(off[:, ~near] < SLACK)),
        "constraints": float(off.shape[1]),
    }


def violations(body: Body, Theta: Array) -> Array:
    """Return by how much every head misses every slab and half-space, (heads, slabs + sides); at most 0 inside."""
    slabs = np.abs(np.einsum("sab,iab->is", body.slabs, Theta) - body.levels)
    sides = np.einsum("sab,iab->is", body.sides, Theta) - body.limits
    return np.concatenate([slabs, sides], axis=1)


def _rows(body: Body) -> NDArray[np.intp]:
    """Return the row that each slab, and then each half-space, was read off, in the order in which `carve` makes them."""
    P, best = body.patterns, body.patterns.argmax(1)
    others = [np.flatnonzero(best != b) for b in range(P.shape[1])]
    thin = [P[other, b] > 0.05 for b, other in enumerate(others)]
    slabs, sides = (
        np.concatenate([other[own if kept else ~own] for other, own in zip(others, thin, strict=True)])
        for kept in (True, False)
    )
    if len(slabs) != len(body.slabs):
        raise ValueError("slabs and rows do not belong together")
    return np.concatenate([slabs, sides])


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Two true heads satisfy nearly all constraints with slack, random ones few; all of them only with many examples."""
    one = SLACKS.index(SLACK)
    points = list(dict.fromkeys(m.point for m in measurements))
    if not any(p.heads == 2 for p in points):
        raise Undecided("needs layers of two heads")
    tests: list[Test] = []
    numbers: dict[str, float] = {}
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        label = f"m={point.heads} d={point.d} k={point.k} n={point.n}"
        inside = [r["inside"][one] for r in mine]
        numbers |= {
            f"{label} share inside, slack {slack:g}": float(np.mean([r["inside"][i] for r in mine]))
            for i, slack in enumerate(SLACKS)
        }
        numbers[f"{label} slack that a head needs, median"] = float(np.median([x for r in mine for x in r["needed"]]))
        if point.heads > 2:
            partners = [p for p in points if p == point.model_copy(update={"heads": 2})]
            if partners:
                both = {m.seed: m.result["inside"][one] for m in measurements if m.point == partners[0]}
                lost = [
                    both[m.seed] - m.result["inside"][one] for m in measurements if m.point == point and m.seed in both
                ]
                tests.append(Test(f"{label} share inside, less than with two heads", mean(lost), above(LOST)))
            continue
        tests += [
            Test(f"{label} {SHARE}", mean(inside), above(INSIDE)),
            Test(
                f"{label} share of the body around a random head",
                mean([r["random"][one] for r in mine]),
                below(OUTSIDE),
            ),
        ]
        whole = share([x for r in mine for x in r["whole"]])
        if point.n == FEW or (point.n, point.k) == (MANY, 2):
            tests.append(Test(f"{label} {WHOLLY}", whole, WHOLE[point.n]))
        numbers |= whole.numbers(f"{label} {WHOLLY}")
        if point.n == FEW:
            tests.append(Test(f"{label} {CLOSER}", mean([r["close"] - r["far"] for r in mine]), above(WINDOW)))
        exact = min(float(np.mean([slack == 0 for slack in r["needed"]])) for r in mine)
        tests.append(Test(f"{label} bodies without any error", Exact(exact), below(1.0)))
    found = [test.estimate.value for test in tests if test.name.endswith(SHARE)]
    reason = (
        f"with a slack of one logit two true heads satisfy {min(found):.1%} of the body's slabs and half-spaces or more"
    )
    return decide(tests, reason, numbers)


SHARE = "share of the body around a true head"
WHOLLY = "heads inside the whole body"
CLOSER = "share in rows that agree better, more than in the rest"


def finding(numbers: Numbers) -> str:
    """Return how often."""
    few, many = (next((n for n in numbers if n.endswith(f"n={size} {SHARE}")), None) for size in (FEW, MANY))
    if few is None or many is None:
        raise LookupError(SHARE)
    inside, whole = (
        [interval(numbers, name.replace(SHARE, what), form) for name in (few, many)]
        for what, form in ((SHARE, ".1%"), (WHOLLY, ".0%"))
    )
    needed = [numbers[name.replace(SHARE, "slack that a head needs, median")] for name in (few, many)]
    return (
        f"With a slack of one logit a true head satisfies {inside[0]} of a sculpted body's constraints from {FEW} examples,"
        f" where {whole[0]} of heads satisfy all of them (the median head needs a slack of about {needed[0]:.2g}), and"
        f" {inside[1]} from {MANY}, where {whole[1]} do (about {needed[1]:.2g})"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the share of constraints that true and random heads satisfy against the slack."""
    rows = []
    for kind in ("inside", "random"):
        for m in measurements:
            settings = {"head": "true" if kind == "inside" else "random"} | m.point.model_dump(exclude={"scale"})
            rows += [("sculpt", settings, slack, m.result[kind][i], None) for i, slack in enumerate(SLACKS)]
    return gather(rows, "slack in logits", "share of slabs and half-spaces that hold")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the shares."""
    figure, (axis,) = panels(1, width=6)
    shown = list(dict.fromkeys(m.point for m in measurements))
    for one in series(measurements):
        own = {key: one.settings[key] for key in ("heads", "d", "k", "n")}
        i = next(i for i, p in enumerate(shown) if p.model_dump(include=set(own)) == own)
        true = one.settings["head"] == "true"
        label = f"m = {own['heads']}, d = {own['d']}, k = {own['k']}, n = {own['n']}" if true else ""
        style = distinct(i)
        drawn(
            axis,
            one,
            label or "_random",
            linestyle="-" if true else "--",
            fillstyle="full" if true else "none",
            **style,
        )
    axis.axvline(SLACK, linestyle=":", **THEORY)
    axis.set(xlabel="slack in logits", ylabel="share of constraints that hold", xscale="log", ylim=(0, 1.02))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect the regression of phase 1 and five carvings."""
    size = point.d + point.d**2 * (point.d + 1) / 2
    seconds = 0.15 + 1e-10 * point.n * point.k * size**2 + 3e-5 * point.n
    return Cost(seconds, int(3e8 + 100 * point.n * point.k * point.d))


CLAIM = Claim(
    id="recovery.body",
    version=5,
    statement=(
        "The body that agreeing examples carve contains the parameters up to a slack: with one logit of slack two true heads"
        " satisfy more than 90 % of its slabs and half-spaces (d = 8, logits of standard deviation 3) and a random head"
        " fewer than 40 %. A third head costs more than 0.1 of the share. Whether the whole body holds a head is a matter of"
        " examples: of sequences of two tokens, 4000 give a body with fewer than 20 % of the heads inside, 16,000 one with"
        " more than 30 %. With 4000, rows on which heads agree better are read better. Chen and Li's (2024) body contains"
        " all heads."
    ),
    formula=(
        r"\lvert\langle x_r(x_b-x_c)^\top,\Theta_i\rangle-\log(p_b/p_c)\rvert<1,\qquad"
        r"\langle x_r(x_b-x_c)^\top,\Theta_i\rangle<\log(0.05/p_c)+1"
    ),
    source="chen2024provably, the body of its algorithm; thresholds, windows and slack are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(), Point(k=3), Point(n=MANY), Point(heads=3)], seeds=[20, 16, 24, 12]),
        "full": Sweep(
            [Point(n=n, k=k) for n in (FEW, MANY) for k in (2, 3)]
            + [Point(heads=m, n=n) for m in (3, 4) for n in (FEW, MANY)],
            seeds=40,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Share of a sculpted body's slabs and half-spaces that a head satisfies, against the slack in logits: true heads"
        " (full symbols) and random heads of the same law (open ones), means over layers with standard errors. The dotted"
        " line is the slack of the tests."
    ),
    finding=finding,
    differs=[
        Difference(
            "The body contains the heads",
            "The heads lie inside the body that examples on which they agree carve, with high probability.",
            lambda numbers: (
                f"{finding(numbers)}. Where attention is nearly zero or one, heads that agree in attention to 0.1 differ by"
                " several logits; more examples leave rows on which they agree more closely"
            ),
        )
    ],
    series=series,
    mutations=(
        Mutation(
            "true heads satisfy {size:g} times as many constraints",
            (0.99, 0.85, 0.5),
            0.85,
            change=changed(lambda r, size: {"inside": [size * x for x in r["inside"]]}),
        ),
        Mutation(
            "every head is inside: the truth leaks",
            (1.0,),
            1.0,
            change=changed(
                lambda r, _: {"inside": [1.0] * len(SLACKS), "whole": [True] * len(r["whole"]), "needed": [0.0]}
            ),
        ),
        Mutation(
            "no head is ever inside a whole body",
            (0.0,),
            0.0,
            change=changed(lambda r, _: {"whole": [False] * len(r["whole"])}),
        ),
        Mutation(
            "the body is so large that it holds {size:g} of everything",
            (0.7, 0.95),
            0.7,
            change=changed(lambda r, size: {"random": [max(x, size) for x in r["random"]]}),
        ),
    ),
    unseen="What the body tells beyond its constraints, and a slack below one logit.",
    design=(
        "In a pilot 96 % of constraints held, 18 and 25 % around random heads, no head was inside the whole body; 16 layers"
        " show all of it. Before version 4 the claim said that hardly any head is ever inside a whole body. The full tier"
        " refuted that: 71 % (57 to 83) are with 16,000 examples. That run served as the pilot of this version, whose data"
        " are its own; 24 layers put the interval of such a share above 0.3 with probability 0.99. Version 5 drops an upper"
        " edge of 1 from the share of constraints: no share can pass it, and two of five intervals touched it."
    ),
)
