"""positional.tokens: one token hides its teacher from message passing where two do not.

With one token |z| itself is seen (phase retrieval). An informed start, with 99.5 % of the teacher, tells what could be
found; the usual one, what is found. Runs that end short are used as they are: either they have found the teacher or not.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import positional
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, resampled, share
from attlas.claims.figure import COLOURS, THEORY, finished, panels
from attlas.claims.finding import interval
from attlas.claims.mutation import Mutation, changed
from attlas.claims.positional.kit import own_stream
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWN = 0.995  # of the squared length of the teacher, in an informed start
FOUND = 1e-5
MOST, FEW = 0.7, 0.3  # shares of runs
NEAR = -0.12, 0.2  # about V, where usual starts do not find the teacher: errors at finite size are above it
OFF = "median error of usual starts less V"
ALGORITHM, EDGE = (
    1.12847141,
    1e-4,
)  # published threshold of message passing in phase retrieval, and how near ours must be


class Point(Settings):
    """Tokens, samples over d, and the size. ``kind`` is what theory says of the place: hard, or easy."""

    tokens: PositiveInt
    alpha: PositiveFloat
    kind: Literal["hard", "easy"]
    d: PositiveInt = 400

    @property
    def label(self) -> str:
        """The settings in words."""
        return f"L = {self.tokens}, alpha = {self.alpha:g}"

    @property
    def name(self) -> str:
        """Of the random streams: no two places share data."""
        return f"{self.label}, {self.d}"


def measure(point: Point, seed: int) -> Result:
    """Pass messages from the usual start and from an informed one; return both errors, and where theory has a hard phase."""
    task = positional.sample_teacher(point.tokens, point.d, point.alpha, own_stream(seed, "task", point.name))
    Q, z = task.W[:, 0], task.z[:, :, 0]
    noise = np.random.default_rng(own_stream(seed, "informed", point.name)).standard_normal(point.d)
    start = (KNOWN * Q + np.sqrt(KNOWN * (1 - KNOWN)) * noise, 1 - KNOWN)
    begin = own_stream(seed, "start", point.name)
    usual = positional.message_passing(task.X, z=z, Q=Q, seed=begin, max_steps=800, throw=False)
    informed = positional.message_passing(task.X, z=z, Q=Q, start=start, max_steps=800, throw=False)
    phase = positional.hard_phase(point.tokens)
    return {
        "usual": float(usual.mse[-1]),
        "informed": float(informed.mse[-1]),
        "edge": phase[1] if phase else 0.0,
        "V": float(positional.bayes(point.tokens, point.alpha).algorithm),
        "converged": usual.converged and informed.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Hard places: informed runs find the teacher, usual ones do not. Easy ones: both do."""
    groups: dict[Point, list[Result]] = {}
    for m in measurements:
        groups.setdefault(m.point, []).append(m.result)
    if {point.kind for point in groups} != {"hard", "easy"} or len({point.tokens for point in groups}) < 2:
        raise Undecided("needs hard and easy places, of one token and of more")
    tests = []
    for point, own in groups.items():
        found = {start: share([r[start] < FOUND for r in own]) for start in ("usual", "informed")}
        region = below(FEW) if point.kind == "hard" else above(MOST)
        tests.append(Test(f"usual starts that find the teacher, {point.label}", found["usual"], region))
        tests.append(Test(f"informed starts that find the teacher, {point.label}", found["informed"], above(MOST)))
        if point.kind == "hard":
            off = resampled(lambda groups: float(np.median(groups["all"])), {"all": [r["usual"] - r["V"] for r in own]})
            tests.append(Test(f"{OFF}, {point.label}, d = {point.d}", off, between(*NEAR), 0.0))
    edges = {point.tokens: own[0]["edge"] for point, own in groups.items()}
    tests += [
        Test(
            "end of the hard phase of one token, over the literature", Exact(edges[L] / ALGORITHM), about(1, EDGE), 1.0
        )
        for L in edges
        if L == 1
    ]
    more = max(edge for L, edge in edges.items() if L > 1)
    tests.append(Test("end of a hard phase of more tokens (0 is none)", Exact(more), below(1e-12)))
    return decide(tests, "message passing from the usual start and from an informed one")


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Share of runs that find the teacher, against samples."""
    rows = [
        (
            f"{start} start",
            {"tokens": m.point.tokens, "size": m.point.d},
            m.point.alpha,
            float(m.result[start] < FOUND),
            None,
        )
        for start in ("usual", "informed")
        for m in measurements
    ]
    return gather(rows, "samples over d", "share that finds the teacher")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw alpha(V) of one token and of the others, with the errors of every run."""
    tokens = sorted({m.point.tokens for m in measurements})
    figure, axes = panels(len(tokens), width=4.2)
    V = np.linspace(1e-3, 1, 200)
    for axis, L in zip(axes, tokens, strict=True):
        axis.plot(positional.bayes_alpha(L, V), V, **THEORY)
        own = [m for m in measurements if m.point.tokens == L]
        for start, marker, colour, shift in (("usual", "o", COLOURS[1], -0.004), ("informed", "^", COLOURS[0], 0.004)):
            x = [m.point.alpha * (1 + shift) for m in own]
            axis.plot(x, [max(m.result[start], 0) for m in own], marker, color=colour, markersize=5, alpha=0.6,
                      markeredgewidth=0, label=f"{start} start")  # fmt: skip
        low, high = (f({m.point.alpha for m in own}) for f in (min, max))
        axis.set(
            xlabel="samples alpha = n/d",
            ylabel="error of the teacher",
            xlim=(0.8 * low, 1.15 * high),
        )
        axis.set_title(f"{L} token{'s' if L > 1 else ''}", fontsize=10)
        phase = positional.hard_phase(L)
        if phase:
            axis.axvspan(*phase, color="#bbbbbb", alpha=0.4, linewidth=0)
            axis.annotate("hard", (sum(phase) / 2, 0.97), ha="center", va="top", fontsize=9)
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some 800 steps of two products where usual starts do not find the teacher, else 500 for several tokens."""
    size = point.alpha * point.tokens * point.d**2
    steps = 800 if point.kind == "hard" else 500 if point.tokens > 1 else 150
    return Cost(0.01 + steps * 4e-10 * size, int(120_000_000 + 60 * size))


def finding(numbers: Numbers) -> str:
    """Say what one token hides and two do not."""

    def least(start: str, L: str = "") -> str:
        head = f"{start} starts that find the teacher" + (f", L = {L}" if L else "")
        ends = ("low", "high", "trials")
        found = [name for name in numbers if name.startswith(head) and not name.endswith(ends)]
        if not found:
            raise LookupError(head)
        return interval(numbers, min(found, key=lambda name: numbers[name]), ".0%")

    near = {value: name for name, value in numbers.items() if name.startswith(OFF) and not name.endswith("±")}
    if not near:
        raise LookupError(OFF)
    usual = near[max(near, key=abs)]
    return (
        "One token has a hard phase and more have none: with one token just above alpha = 1,"
        f" {least('usual', '1')} of usual starts and {least('informed')} of informed ones find the teacher (the others end"
        f" {interval(numbers, usual, '+.2f').replace('± +', '± ')} from the predicted error); with two,"
        f" {least('usual', '2')} of usual starts do just above alpha = 1/2"
    )


CLAIM = Claim(
    id="positional.tokens",
    version=5,
    statement=(
        r"With one token (phase retrieval) there is a hard phase, $1 < \alpha < 1.128$. At $\alpha = 1.06$ more than 70"
        " % of informed starts of message passing find the teacher and fewer than 30 % of usual ones; the median error"
        " of these at d = 1000 is at most 0.12 below and 0.2 above the predicted 0.41 (guessing zero has 1). At"
        r" $\alpha = 1.35$ more than 70 % of both find it. With two and three tokens there is no hard phase: just above"
        r" $\alpha = 1/L$ more than 70 % of both find it."
    ),
    formula=r"\alpha(V)=\frac{V(1-V)}{L V-T(V)}\ \text{falls in }V\text{ for }L\ge2,\text{ and not for }L=1",
    source="ours; barbier2019optimal for one token",
    settings=Point,
    tiers={
        "quick": Sweep(
            [
                Point(tokens=1, alpha=1.06, kind="hard", d=1000),
                Point(tokens=1, alpha=1.35, kind="easy"),
                Point(tokens=2, alpha=0.54, kind="easy"),
                Point(tokens=3, alpha=0.37, kind="easy"),
            ],
            seeds=(90, 26, 26, 26),
        ),
        "full": Sweep(
            [
                Point(tokens=1, alpha=1.06, kind="hard", d=1500),
                Point(tokens=1, alpha=1.25, kind="easy", d=1000),
                Point(tokens=2, alpha=0.53, kind="easy", d=1000),
                Point(tokens=3, alpha=0.35, kind="easy", d=1000),
                Point(tokens=4, alpha=0.27, kind="easy", d=1000),
            ],
            seeds=(80, 26, 26, 26, 26),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Errors of message passing against samples, every run a point, from the usual start and from one that knows"
        " 99.5 % of"
        " the teacher. Lines are the fixed points of the theory: where the line bends back, the best error is zero and the"
        " usual start does not reach it (hard)."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
    mutations=[
        Mutation("two tokens have a hard phase too", (1.0,), 1.0,
                 change=lambda measurements, _: [_stuck(m) if m.point.tokens > 1 else m for m in measurements]),
        Mutation("one token has no hard phase", (1.0,), 1.0,
                 change=changed(lambda result, _: {"usual": result["informed"]})),
        Mutation("the hard phase ends at {size:g} of the place", (0.99,), 0.99,
                 change=changed(lambda result, size: {"edge": result["edge"] * size})),
        Mutation("the teacher leaks: errors of usual starts times {size:g}", (0.9, 0.5, 0.1, 0.0), 0.5,
                 change=changed(lambda result, size: {"usual": result["usual"] * size})),
        Mutation("V of the theory times {size:g}", (1.1, 1.7), 1.7,
                 change=changed(lambda result, size: {"V": result["V"] * size})),
        Mutation("V of the theory is {size:g}: usual starts find the teacher", (0.0,), 0.0,
                 change=changed(lambda _, size: {"V": size})),
    ],
    unseen=(
        "Whether another algorithm finds the teacher in the hard phase; narrow hard phases of more than three tokens; an"
        " error of V below 0.2."
    ),
    design=(
        "In a pilot every run did what theory says; 26 data sets decide shares of 0.7 even with one failure. The median"
        " error of usual starts with one token was 0.07 above V at d = 1000, with a standard error of 0.02: single runs stay"
        " near the error of guessing, hence a median and a region that reaches further up. Version 4 had 44 seeds there: a"
        " true theory was supported in 85 % of its resampled runs, and two mutations stayed undecided in two runs of five."
        " Of its 220 measurements, 80 drawn anew support a true theory in all of 150 runs and refute these mutations in"
        " 98 %; 90 leave a margin."
    ),
)  # fmt: skip


def _stuck(m: Measurement[Point]) -> Measurement[Point]:
    return Measurement(m.point, m.seed, m.result | {"usual": 0.4})
