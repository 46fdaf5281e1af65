"""recovery.queries-multi-head: H heads by saturating and isolating, their number unknown, where other ways fail."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, mean, share
from attlas.claims.figure import THEORY, distinct, drawn, finished, panels, ticks
from attlas.claims.finding import ending, interval, span
from attlas.claims.lettering import powers
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.recovery.kit.figures import curves, magnitude
from attlas.claims.recovery.kit.tasks import oracle_of, query_layer
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, decide
from attlas.recovery import learn_from_queries, parameter_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUCCESS = 1e-6
OFTEN = 0.8
HALF = 0.5
FEWER = 0.7  # of the published count
EASY = (2, 4)  # heads and dimension: every way succeeds
LARGE = 8  # from this dimension on the counts are compared
STARTS, STEPS = 3, 60  # of a fit to ordinary queries
_WAYS: tuple[Literal["isolate", "copies", "ordinary"], ...] = ("isolate", "copies", "ordinary")
NAMES = {"isolate": "isolating", "copies": "copies of tokens", "ordinary": "ordinary queries"}


class Point(Settings):
    """Heads, tokens, outputs, and the way. Isolating is not told the number of heads; the other ways are."""

    heads: PositiveInt
    d: int = Field(ge=2)
    outputs: PositiveInt = 1
    way: Literal["isolate", "copies", "ordinary"] = "isolate"


def measure(point: Point, seed: int) -> Result:
    """Return the heads that one way finds, the relative error of their parameters, and the queries.

    Ordinary queries are about as many as isolating takes; they are fitted from three random starts, 60 steps each.
    """
    truth = query_layer(point.heads, point.d, point.outputs, seed)
    found = learn_from_queries(
        oracle_of(truth),
        point.d,
        heads=None if point.way == "isolate" else point.heads,
        method=point.way,
        ratio=max(_isolating(point) * point.outputs / _unknowns(point), 1.0),
        max_starts=STARTS,
        max_steps=STEPS,
        seed=seed,
    )
    return {
        "heads": float(found.layer.heads),
        "error": parameter_error(found, truth),
        "queries": float(found.certificate.queries),
        "certificate": found.residual,
        "converged": found.converged,
    }


def bound(point: Point) -> int:
    """Return the queries that kim2026queries takes if H is known."""
    return 4 * point.heads * point.d**2 - 2 * point.heads + 1


def _isolating(point: Point) -> float:
    """Return about how many queries isolating takes."""
    H, d = point.heads, point.d
    return H * d**2 + 4.25 * H * d + 22 * H + d + 12


def _unknowns(point: Point) -> int:
    """Return how many numbers a layer has."""
    return point.heads * point.d * (point.d + point.outputs)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Isolating succeeds on four layers of five; the others on more than half of the easy ones and less of the hard ones.

    With one output a query is one equation, so that fewer queries than unknowns, or an error of exactly zero, mean a leak.
    """
    errors = np.nan_to_num([m.result["error"] for m in measurements], nan=np.inf, posinf=np.inf)
    found = [(m, bool(error < SUCCESS)) for m, error in zip(measurements, errors, strict=True)]
    hits = {way: [hit for m, hit in found if m.point.way == way] for way in NAMES}
    if not hits["isolate"]:
        raise Undecided("needs layers on which heads are isolated")
    tests = [Test("share of layers found by isolating", share(hits["isolate"]), above(OFTEN), 1.0)]
    for way in _WAYS[1:]:
        easy = [hit for m, hit in found if m.point.way == way and (m.point.heads, m.point.d) == EASY]
        hard = [hit for m, hit in found if m.point.way == way and (m.point.heads, m.point.d) != EASY]
        if not easy or not hard:
            raise Undecided(f"needs layers of two heads and of more, by {NAMES[way]}")
        tests += [
            Test(f"share of easy layers found by {NAMES[way]}", share(easy), above(HALF)),
            Test(f"share of hard layers found by {NAMES[way]}", share(hard), below(HALF)),
        ]
    ours = [m for m in measurements if m.point.way == "isolate" and m.point.d >= LARGE]
    for heads, d, outputs in sorted({(m.point.heads, m.point.d, m.point.outputs) for m in ours}):
        point = Point(heads=heads, d=d, outputs=outputs)
        ratios = [m.result["queries"] / bound(point) for m in ours if m.point == point]
        tests.append(Test(f"H={heads} d={d} outputs={outputs} queries over 4Hd^2 - 2H + 1", mean(ratios), below(FEWER)))
    if not ours:
        raise Undecided(f"needs layers of d = {LARGE} or more")
    numbers_of = [m.result["queries"] * m.point.outputs / _unknowns(m.point) for m, hit in found if hit]
    lies = [
        m.result["certificate"] < SUCCESS and error > 10 * SUCCESS
        for m, error in zip(measurements, errors, strict=True)
    ]
    tests += [
        Test("layers certified but wrong", Exact(float(sum(lies))), below(0.5)),
        Test("smallest error", Exact(float(errors.min())), above(0)),
        Test("least numbers asked over unknowns", Exact(min(numbers_of, default=np.inf)), above(1)),
    ]
    counted = ", ".join(f"{NAMES[way]} {sum(own)} of {len(own)}" for way, own in hits.items() if own)
    return decide(tests, f"layers found to {SUCCESS:g}: {counted}", {"layers": float(len(hits["isolate"]))})


def finding(numbers: Numbers) -> str:
    """Return how often, and from how many queries."""
    return (
        f"Isolating finds all heads of {interval(numbers, 'share of layers found by isolating', '.0%')} of"
        f" {numbers['layers']:.0f} layers, their number unknown; where there are five heads, copies of tokens find"
        f" {interval(numbers, 'share of hard layers found by copies of tokens', '.0%')} and as many ordinary queries"
        f" {interval(numbers, 'share of hard layers found by ordinary queries', '.0%')}"
    )


def ours(numbers: Numbers) -> str:
    """Return the queries as a share of the published number."""
    return (
        f"Saturating and isolating one head at a time takes {span(ending(numbers, 'queries over 4Hd^2 - 2H + 1'))} of that"
        f" from d = {LARGE} on, and is not told H; interpolation over copies loses digits with every head in double"
        f" precision, and finds {numbers['share of hard layers found by copies of tokens']:.0%} of the layers of five heads"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return queries over the published count, and errors as powers of ten, against the number of heads."""
    points = [
        (NAMES[m.point.way], {"d": m.point.d, "outputs": m.point.outputs}, m.point.heads, m) for m in measurements
    ]
    queries = [(way, own, heads, m.result["queries"] / bound(m.point), None) for way, own, heads, m in points]
    errors = [(way, own, heads, magnitude(min(m.result["error"], 10.0)), None) for way, own, heads, m in points]
    return [
        *gather(queries, "heads H", "queries over 4Hd^2 - 2H + 1"),
        *gather(errors, "heads H", "log10 of the relative error of the parameters"),
    ]


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the queries of isolating, and the errors of every way, against the number of heads."""
    figure, (left, right) = panels(2)
    found = series(measurements)
    curves(left, [one for one in found if one.y_name.startswith("queries") and one.name == NAMES["isolate"]])
    for one in (one for one in found if one.y_name.startswith("log10")):
        drawn(right, one, linestyle="none", **distinct(list(NAMES.values()).index(one.name)))
    left.axhline(1.0, linestyle=":", **THEORY)
    left.set(xlabel="heads H", ylabel="queries / (4Hd² - 2H + 1)", xscale="log")
    right.axhline(magnitude(SUCCESS), linestyle=":", **THEORY)
    right.set(xlabel="heads H", ylabel="error of the parameters", xscale="log")
    powers(right.yaxis)
    for axis in (left, right):
        ticks(axis, [m.point.heads for m in measurements])
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some microseconds for a query, more with many heads; the steps of fits; all orders of copied heads."""
    H, d = point.heads, point.d
    seconds = {
        "isolate": 0.003 + 2.7e-5 * _isolating(point) * (2 + H / 4),
        "copies": 0.003 + 2.4e-5 * bound(point) * (1 + H / 2),
        "ordinary": 0.005 + STARTS * STEPS * (6e-5 + 3.9e-8 * (H * d * d) ** 2.1),
    }[point.way]
    return Cost(seconds, 150_000_000)


def _share_that(
    own: Callable[[Point], bool], entries: dict[str, float]
) -> Callable[[Sequence[Measurement[Point]], float], list[Measurement[Point]]]:
    """Return a change that gives these results to a share of the layers of a kind, evenly among them."""

    def change(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
        changed_, seen = [], 0
        for m in measurements:
            hit = own(m.point) and int((seen + 1) * size) > int(seen * size)
            seen += own(m.point)
            changed_.append(replace(m, result=m.result | entries) if hit else m)
        return changed_

    return change


def _lies(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    lie = {"error": 1.0, "certificate": 1e-12}
    return [replace(m, result=m.result | lie) if place < size else m for place, m in enumerate(measurements)]


def _is_hard(way: str) -> Callable[[Point], bool]:
    return lambda point: point.way == way and (point.heads, point.d) != EASY


MUTATIONS = (
    Mutation(
        "isolating fails on {size:g} of the layers",
        (0.1, 0.3, 0.5),
        0.5,
        change=_share_that(lambda point: point.way == "isolate", {"error": 1.0, "certificate": 1.0}),
    ),
    *(
        Mutation(
            f"{NAMES[way]} find {{size:g}} of the hard layers",
            (0.5, 1.0),
            1.0,
            change=_share_that(_is_hard(way), {"error": 1e-9, "certificate": 1e-9}),
        )
        for way in _WAYS[1:]
    ),
    Mutation("queries are {size:g} of what they are", (1.1, 1.5, 2.0), 2.0, change=scaled("queries")),
    Mutation("queries are {size:g} of what they are", (0.9, 0.5, 0.1), 0.5, change=scaled("queries")),
    Mutation("{size:g} certificates lie", (1, 5), 1, change=_lies),
    Mutation("errors are {size:g}", (0.0,), 0.0, change=changed(lambda _, size: {"error": size})),
)


CLAIM = Claim(
    id="recovery.queries-multi-head",
    version=4,
    statement=(
        "By saturating and isolating, all heads of at least 80 % of random layers (2 to 8 heads, d = 4 to 8, one"
        " output) are recovered to $10^{-6}$ from value queries, their number unknown, from d = 8 on with less than 0.7"
        " of the $4Hd^2 - 2H + 1$ queries of Kim, Kim and Guo (2026). Interpolation over copies of tokens in double"
        " precision, and a fit of as many ordinary queries (three starts, 60 steps), recover more than half of the"
        " layers with two heads, d = 4, and less than half with five heads, d = 6."
    ),
    formula=(
        r"f([b+u;\,b])=b^\top\sum_{i=1}^{H}W_i+\sum_{i=1}^{H}\sigma(b^\top\Theta_i u)\,u^\top W_i,"
        r"\qquad\text{queries}<0.7\,(4Hd^2-2H+1)"
    ),
    source="kim2026queries for copies of tokens and their count; saturating and isolating is ours",
    settings=Point,
    tiers={
        "quick": Sweep(
            [
                *(Point(heads=2, d=4, way=way) for way in _WAYS),
                *(Point(heads=5, d=6, way=way) for way in _WAYS),
                *(Point(heads=H, d=8) for H in (2, 4, 8)),
            ],
            seeds=[16, 16, 40, 12, 12, 12, 20, 20, 24],
        ),
        "full": Sweep(
            [
                *(Point(heads=2, d=4, way=way) for way in _WAYS[1:]),
                *(Point(heads=H, d=d, way=way) for H, d in ((5, 6), (5, 8), (6, 6)) for way in _WAYS[1:]),
                *(Point(heads=H, d=d, outputs=o) for H in (2, 4, 8, 16) for d in (4, 8, 16, 24) for o in (1, 4)),
            ],
            seeds=[*(60,) * 2, *(24,) * 6, *(6,) * 32],
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: queries over the published 4Hd² - 2H + 1, the dotted line, against the number of heads. Right:"
        " relative error of the parameters, by way, on a logarithmic scale; below the dotted line they are found. Means"
        " over layers with standard errors."
    ),
    finding=finding,
    differs=[
        Difference(
            "Queries for several heads",
            "H heads are recovered from value queries by interpolation over copies of tokens, in exact arithmetic with"
            " probability one.",
            ours,
            "4Hd² - 2H + 1 queries",
        )
    ],
    series=series,
    unfinished=Unfinished.USED,
    mutations=MUTATIONS,
    unseen=(
        "Rare failures of isolating (one layer in ten), oracles that bound the size of tokens (isolating sends 1e8), and"
        " what better arithmetic, or more starts, would do for the other ways."
    ),
    design=(
        "The 740 runs of version 2, with other random numbers, are the pilot: isolating found all layers, the other ways"
        " none of 60 each with five heads, d = 6, and 120 and 107 of 120 with two. Query counts have a tail (0.53 of the"
        " published on average, 0.98 at most), so that 12 layers of eight heads were too few: 24 of them, and 40 easy layers"
        " for ordinary queries, support the claim in 99 % of 800 draws from the pilot."
    ),
)
