"""recovery.sculpting: the body that agreeing examples carve tells where the heads are, before any polish."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, mean
from attlas.claims.figure import COLOURS, THEORY, finished, panels, ticks
from attlas.claims.finding import factors, named
from attlas.claims.learners import LEARNERS, Learner
from attlas.claims.mutation import Mutation, changed
from attlas.claims.recovery.kit.tasks import planted
from attlas.claims.verdict import Test, Verdict, above, decide
from attlas.numerics import stream
from attlas.recovery import Layer, sculpt
from attlas.recovery.sculpt import search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIO = 2.0  # by which the sculpted body must be better than chance
COSINE = 0.7  # of the span to the differences of the true heads
LEAK = 1e-9  # a body carved by thousands of examples is not exact: a smaller residual is the truth's
SHOWN = {
    "sculpted": LEARNERS["sculpt"],
    "random_span": Learner("sculpted proxy, random span", COLOURS[1], "o"),
    "null": Learner("random proxy and span", COLOURS[6], "X"),
}


class Point(Settings):
    """Heads, tokens, the size of the logits and the number of examples."""

    heads: int = Field(2, ge=2)
    d: int = Field(8, ge=3)
    k: int = Field(2, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(20_000, ge=500)


def measure(point: Point, seed: int) -> Result:
    """Return the residual of the best heads in the sculpted proxy and span, beside what chance gives the same search.

    The null is a random proxy of the same norm with a random span; `random_span` keeps the sculpted proxy.
    """
    truth, data, _ = planted("boolean", point.heads, point.d, point.k, point.scale, point.n, seed)
    found = sculpt(data.X, data.Y, point.heads, seed=seed)
    rng = stream(seed, "null")
    proxy = rng.standard_normal(found.proxy.shape)
    proxy *= np.linalg.norm(found.proxy) / np.linalg.norm(proxy)
    span = np.linalg.qr(rng.standard_normal((point.d**2, point.heads - 1)))[0].T.reshape(found.span.shape)
    true_sum = truth.W.sum(0)
    null, random_span = (search(data, start, span, point.heads, seed) for start in (proxy, found.proxy))
    return {
        "sculpted": found.residual,
        "null": null.residual,
        "random_span": random_span.residual,
        "value_sum": float(np.linalg.norm(found.value_sum - true_sum) / np.linalg.norm(true_sum)),
        "gap": found.gap,
        "cosine": _cosine(found.span, truth),
        "rank": float(found.body.rank),
        "converged": found.converged and null.converged and random_span.converged,
    }


def _blind(point: Point, seed: int, _: float) -> Result:
    """Return the same where the body was carved by outputs that belong to other examples."""
    truth, data, _ = planted("boolean", point.heads, point.d, point.k, point.scale, point.n, seed)
    order = stream(seed, "permutation").permutation(len(data.Y))
    blind = sculpt(data.X, data.Y[order], point.heads, seed=seed, max_starts=1, max_steps=1)
    result = measure(point, seed)
    best = search(data, blind.proxy, blind.span, point.heads, seed).residual
    return result | {"sculpted": best, "cosine": _cosine(blind.span, truth)}


def _cosine(span: NDArray[np.float64], truth: Layer) -> float:
    """Return the smallest cosine between the span and that of the differences of the true heads."""
    differences = (truth.Theta[1:] - truth.Theta[0]).reshape(len(span), -1)
    basis = np.linalg.qr(differences.T)[0]
    return float(np.linalg.svd(span.reshape(len(span), -1) @ basis, compute_uv=False).min())


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Paired over data sets, the sculpted residual is less than half that of the null and of the random span."""
    least = min(float(m.result["sculpted"]) for m in measurements)
    tests = [Test("smallest residual in the sculpted body", Exact(least), above(LEAK))]
    numbers: dict[str, float] = {}
    for point in dict.fromkeys(m.point for m in measurements):
        mine = [m.result for m in measurements if m.point == point]
        label = f"m={point.heads} d={point.d} k={point.k} s={point.scale:g} n={point.n}"
        keys = ("sculpted", "null", "random_span", "value_sum", "gap")
        numbers |= {f"{label} {key}, median": float(np.median([r[key] for r in mine])) for key in keys}
        for other in ("null", "random_span"):
            gains = [np.log(r[other]) - np.log(max(r["sculpted"], 1e-300)) for r in mine]
            tests.append(Test(f"{label} log {other}/sculpted", mean(gains), above(np.log(RATIO))))
        tests.append(Test(f"{label} cosine of the span", mean([r["cosine"] for r in mine]), above(COSINE)))
    label = next(iter(numbers)).rsplit(" sculpted", 1)[0]
    reason = (
        f"before any polish the residual is {numbers[f'{label} sculpted, median']:.3f} in the sculpted body at {label},"
        f" {numbers[f'{label} null, median']:.2f} with a random proxy and span and"
        f" {numbers[f'{label} random_span, median']:.2f} with a random span (medians)"
    )
    return decide(tests, reason, numbers)


def finding(numbers: Numbers) -> str:
    """Return how much the body tells."""
    names = named(numbers, end="log random_span/sculpted")
    where = f"{len(names)} settings" if len(names) > 1 else "the one setting tried"
    return (
        "Before any polish, the residual of the best heads that a search finds is"
        f" {factors(numbers, names, '.1f')} times as large with a random span as in the sculpted body, in {where}"
    )


def ours(numbers: Numbers) -> str:
    """Return that it works, and is not needed."""
    return f"{finding(numbers)}. Yet random starts do as well after the polish: see recovery.multi-head"


def _named(point: Point, points: Sequence[Point]) -> str:
    shown = {"m": "heads", "d": "d", "k": "k"}
    if len({(p.heads, p.d, p.k) for p in points}) < len(points):
        shown |= {
            sign: key for sign, key in {"s": "scale", "n": "n"}.items() if len({getattr(p, key) for p in points}) > 1
        }
    return ", ".join(f"{sign} = {getattr(point, key):g}" for sign, key in shown.items())


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw every run: the residuals by setting, and the gap against the cosine of the span."""
    figure, (left, right) = panels(2, width=5.2)
    points = list(dict.fromkeys(m.point for m in measurements))
    for i, (key, look) in enumerate(SHOWN.items()):
        rows = [points.index(m.point) + 0.2 * (i - 1) for m in measurements]
        left.plot(
            [m.result[key] for m in measurements], rows, look.marker, color=look.colour, alpha=0.6, label=look.name
        )
    left.set(xlabel="relative residual before any polish", xscale="log")
    ticks(left, (0.01, 0.03, 0.1, 0.3, 1))
    left.set_yticks(range(len(points)), [_named(point, points) for point in points])
    right.plot(
        [m.result["gap"] for m in measurements],
        [m.result["cosine"] for m in measurements],
        "s",
        color=LEARNERS["sculpt"].colour,
    )
    right.axvline(2.0, linestyle=":", **THEORY)
    right.set(xlabel="gap of the eigenvalues", ylabel="cosine of the span to the truth", xscale="log", ylim=(0, 1.05))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect the regression of phase 1, five carvings and three searches."""
    size = point.d + point.d**2 * (point.d + 1) / 2
    regression = 1e-10 * point.n * point.k * size**2
    return Cost(
        1.8 + regression + 2e-5 * point.n + 2e-4 * point.heads**2 * point.d**3,
        int(3e8 + 100 * point.n * point.k * point.d),
    )


CLAIM = Claim(
    id="recovery.sculpting",
    version=2,
    statement=(
        "Examples on which the heads agree carve a convex body that tells where the heads are, before any polish: with two"
        " heads (d = 8, logits of standard deviation 3) the same search leaves less than half the residual in it than with a"
        " random span, or a random proxy and span, and the flattest direction of the body has a cosine above 0.7 with the"
        " difference of the heads. Sculpting is Chen and Li's (2024)."
    ),
    formula=(
        r"x_r^\top\Theta_i\,(x_b-x_c)=\log\frac{p_b}{p_c}\quad\text{for every head }i,\text{ where all attend alike}"
    ),
    source="chen2024provably, its algorithm in outline; thresholds and search are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(n=4000)], seeds=8),
        "full": Sweep(
            [
                Point(heads=m, d=d, k=k, scale=s, n=n)
                for m, d, k, s, n in (
                    (2, 6, 2, 3.0, 20_000),
                    (2, 8, 2, 3.0, 20_000),
                    (2, 8, 3, 3.0, 20_000),
                    (2, 8, 3, 1.0, 20_000),
                    (2, 8, 4, 3.0, 20_000),
                )
            ],
            seeds=[40, 12, 12, 12, 12],
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: residual of the best heads in the sculpted body, before any polish, beside what the same search"
        " finds with a random span, and with a random proxy and span; one point per run. Right: how well the span"
        " is found against a gap that can be seen without knowing the heads; from the dotted line on the span is"
        " trusted."
    ),
    finding=finding,
    differs=[
        Difference(
            "Sculpting",
            "Sculpting a convex body around the heads is how a layer of several heads is learned from random examples.",
            ours,
        )
    ],
    unfinished=Unfinished.USED,  # all three searches have the same budget, and are compared by what they have at its end
    mutations=(
        Mutation(
            "the body tells no more than {size:g} of a random span",
            (4.0, 1.5, 1.0),
            1.5,
            change=changed(lambda r, size: {"sculpted": r["random_span"] / size}),
        ),
        Mutation(
            "the cosine of the span is {size:g} of what it is",
            (0.8, 0.5, 0.2),
            0.5,
            change=changed(lambda r, size: {"cosine": size * r["cosine"]}),
        ),
        Mutation(
            "the truth leaks: the residual is {size:g}",
            (1e-12, 0.0),
            1e-12,
            change=changed(lambda _, size: {"sculpted": size}),
        ),
        Mutation("outputs belong to other examples", (1.0,), 1.0, measure=_blind),
    ),
    unseen="Whether sculpting helps after a polish, and more heads or tokens, where the span is lost.",
    design=(
        "In a pilot at d = 8 the residual was ten times smaller than with a random span, log ratio 2.3 with a scatter of"
        " 0.5; eight layers show a factor of two. At d = 6 one body in three was lost, so it is left to the full tier."
    ),
)
