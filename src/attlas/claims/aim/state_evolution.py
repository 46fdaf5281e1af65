"""aim.state-evolution: message passing follows the state evolution.

The last of 60 iterates is used, whether or not message passing has converged: at finite d it often cycles about its
fixed point.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import (
    HARDMAX_SCORE,
    LIMIT,
    SCORE,
    above_threshold,
    amp_cost,
    amp_error,
    errors,
    points,
    ratios,
)
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.finding import ending, span
from attlas.claims.finite_size import finite_size_verdict
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Point(Settings):
    """A channel, its settings and the size."""

    channel: Literal["linear", "softmax", "hardmax"]
    tokens: PositiveInt
    noise: float = Field(0.0, ge=0)
    rho: PositiveFloat = 0.5
    alpha: PositiveFloat
    d: PositiveInt


def channel_of(point: Any) -> aim.Channel:
    """Return the channel of a point that has `channel`, `tokens` and perhaps `noise`."""
    if point.channel == "linear":
        return aim.Linear(point.tokens, point.noise)
    return aim.Softmax(point.tokens) if point.channel == "softmax" else aim.Hardmax(point.tokens)


def measure(point: Point, seed: int) -> Result:
    """Run message passing once."""
    return amp_error(channel_of(point), point.d, point.alpha, point.rho, seed)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The final error over V is 1 + C/d within its errors, for every channel."""
    return above_threshold(measurements) or finite_size_verdict(
        [(_label(m.point), m.point.d, m.result["ratio"]) for m in measurements],
        "channel",
        "error of message passing over V",
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against alpha, over V against 1/d, and along the iteration."""
    found = errors(measurements, "amp", "error", lambda m: m.result["theory"])
    return found + ratios(measurements, *_CASE) + _courses(measurements)


def _courses(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        ("amp", {name: getattr(m.point, name) for name in (*_CASE, "d")}, step, float(error), float(V))
        for m in measurements
        for step, (error, V) in enumerate(zip(m.result["course"], m.result["believed"], strict=True))
    ]
    return gather(rows, "iteration", "mse after the step")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw error over theory against 1/d, and the course of the errors at the largest size."""
    figure, (left, right) = panels(2)
    largest = max(m.point.d for m in measurements)
    courses = _courses(measurements)
    for i, final in enumerate(ratios(measurements, *_CASE)):
        style = {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[i % len(MARKERS)]}
        drawn(left, points(final, (0.985 + 0.01 * i).__mul__), _label(Point(d=largest, **final.settings)), **style)
        for course in courses:
            if course.settings == {**final.settings, "d": largest}:
                drawn(right, course, "", **style)
    left.axhline(1, **THEORY)
    left.set(xlabel="1/d", ylabel="error of message passing / V", xlim=(0, None))
    left.legend(frameon=False, fontsize=8)
    right.set(xlabel="iteration", ylabel=f"error, d = {largest}", yscale="log")
    return figure


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    score = HARDMAX_SCORE if point.channel == "hardmax" else SCORE
    return amp_cost(channel_of(point), point.d, point.alpha, score=score)


def finding(numbers: Numbers) -> str:
    """Say how near message passing comes to the prediction."""
    return (
        "Theory predicts what message passing reaches: extrapolated to infinite d its error is"
        f" {span(ending(numbers, LIMIT))} times the predicted one, for every kind of output tried"
    )


def _label(point: Point) -> str:
    noise = f" noise {point.noise:g}" if point.channel == "linear" else ""
    return f"{point.channel} T={point.tokens}{noise} rho={point.rho:g} alpha={point.alpha:g}"


_CASE = ("channel", "tokens", "noise", "rho", "alpha")
_CASES: list[dict[str, Any]] = [
    {"channel": "softmax", "tokens": 2, "alpha": 0.1},
    {"channel": "softmax", "tokens": 3, "alpha": 0.03},
    {"channel": "linear", "tokens": 1, "noise": 0.25, "alpha": 0.4},
    {"channel": "hardmax", "tokens": 2, "alpha": 0.25},
]

CLAIM = Claim(
    id="aim.state-evolution",
    version=2,
    statement="Message passing reaches the error that the state evolution predicts: linear, softmax and hardmax outputs.",
    formula=(
        r"\frac{1}{d}\lVert\hat S-S\rVert^2\to V=F(1/\hat q),\qquad\hat q=2\alpha\,G_2(V),"
        r"\qquad G_2(V)=\sum_{a\le b}(1+\delta_{ab})\operatorname{E}[g_{ab}^2]"
    ),
    source="boncoraglio2025bayes, the state evolution of GAMP-RIE",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, **case) for case in _CASES for d in (40, 80, 120)], seeds=12),
        "full": Sweep([Point(d=d, **case) for case in _CASES for d in (100, 200, 400)], seeds=8),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: final error of message passing over the predicted V, against 1/d; the line is exact agreement. Right: the"
        " error after each iteration at the largest d, and the V that theory gives that iteration. Points are means over"
        " data sets with standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
)
