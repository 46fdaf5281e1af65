"""aim.state-evolution: message passing reaches the error of the state evolution.

Runs that have not converged are used as they are; a tenth of them leaves the claim undecided.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import (
    HARDMAX_SCORE,
    LIMIT,
    SCORE,
    amp_cost,
    amp_error,
    converged,
    errors,
    leaning,
    perfect_learner,
    points,
    ratios,
    reaches,
    require_error,
    wrong_theory,
)
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import THEORY, distinct, drawn, finished, panels
from attlas.claims.finding import spans
from attlas.claims.mutation import Mutation
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Verdict, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EPS = 0.05  # of the error, in units of V
LEANING = 0.03  # of the overlap of error and estimate, in units of V


class Point(Settings):
    """A channel, its settings and the size."""

    channel: Literal["linear", "softmax", "hardmax"]
    tokens: PositiveInt
    noise: float = Field(0.0, ge=0)
    rho: PositiveFloat = 1.0
    alpha: PositiveFloat
    d: PositiveInt


def channel_of(point: Any) -> aim.Channel:
    """Return the channel of a point that has `channel`, `tokens` and perhaps `noise`."""
    if point.channel == "linear":
        return aim.Linear(point.tokens, point.noise)
    return aim.Softmax(point.tokens) if point.channel == "softmax" else aim.Hardmax(point.tokens)


def measure(point: Point, seed: int) -> Result:
    """Run message passing once."""
    return _measured(point, seed, None)


def _measured(point: Point, seed: int, onsager: float | None) -> Result:
    return amp_error(channel_of(point), point.d, point.alpha, point.rho, seed, onsager)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """For every channel the final error over V is 1 + C/d, with 1 known to 5 %, and has no overlap with the estimate."""
    require_error(measurements)
    tests = reaches(measurements, _label, EPS) + leaning(measurements, _label, LEANING) + [converged(measurements)]
    return decide(tests, "the error of message passing over V is extrapolated to d = infinity")


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
        style = distinct(i)
        drawn(left, points(final, (0.985 + 0.01 * i).__mul__), _words(final.settings), **style)
        for course in courses:
            if course.settings == {**final.settings, "d": largest}:
                drawn(right, course, "", **style)
    left.axhline(1, **THEORY)
    left.set(xlabel="1/d", ylabel="error of message passing / V", xlim=(0, None))
    right.set(xlabel="iteration", ylabel=f"error, d = {largest}", yscale="log")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    score = HARDMAX_SCORE if point.channel == "hardmax" else SCORE
    return amp_cost(channel_of(point), point.d, point.alpha, score=score)


def finding(numbers: Numbers) -> str:
    """Say how near message passing comes to the prediction."""
    return (
        "Theory predicts what message passing reaches: extrapolated to infinite d its error is"
        f" {spans(numbers, LIMIT)} times the predicted one, for every kind of output tried"
    )


def _words(case: Mapping[str, Any]) -> str:
    noise = f", noise = {case['noise']:g}" if case["channel"] == "linear" else ""
    return f"{case['channel']}, T = {case['tokens']}{noise}, rho = {case['rho']:g}, alpha = {case['alpha']:g}"


def _label(point: Point) -> str:
    noise = f" noise {point.noise:g}" if point.channel == "linear" else ""
    return f"{point.channel} T={point.tokens}{noise} rho={point.rho:g} alpha={point.alpha:g}"


_CASE = ("channel", "tokens", "noise", "rho", "alpha")
_CASES: list[dict[str, Any]] = [
    {"channel": "softmax", "tokens": 2, "alpha": 0.08},
    {"channel": "linear", "tokens": 1, "noise": 0.5, "alpha": 0.25},
    {"channel": "hardmax", "tokens": 2, "alpha": 0.2},
]
_NARROW: list[dict[str, Any]] = [
    {"channel": "softmax", "tokens": 3, "rho": 0.5, "alpha": 0.03},
    {"channel": "linear", "tokens": 2, "noise": 0.25, "rho": 0.5, "alpha": 0.1},
]

CLAIM = Claim(
    id="aim.state-evolution",
    version=2,
    statement=(
        "Message passing reaches the error V that the state evolution predicts, as Boncoraglio et al. say: extrapolated to"
        " infinite d within 5 %, for linear, softmax and hardmax outputs, and what remains wrong has no overlap with the"
        " estimate (to 3 % of V), as it must be for the best one."
    ),
    formula=(
        r"\frac{1}{d}\lVert\hat S-S\rVert^2\to V=F(1/\hat q),\qquad\hat q=2\alpha\,G_2(V),"
        r"\qquad G_2(V)=\sum_{a\le b}(1+\delta_{ab})\operatorname{E}[g_{ab}^2]"
    ),
    source="boncoraglio2025bayes, the state evolution of GAMP-RIE",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(d=d, **case) for case in _CASES for d in (24, 40, 64, 100)],
            seeds=(30, 16, 12, 20, 40, 24, 16, 26, 30, 16, 12, 14),
        ),
        "full": Sweep(
            [Point(d=d, **case) for case in _CASES + _NARROW for d in (40, 70, 120, 200)],
            seeds=(60, 40, 24, 24) * len(_CASES + _NARROW),
        ),
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
    mutations=[
        wrong_theory((1.03, 1.05, 1.1), 1.1),
        wrong_theory((0.97, 0.95, 0.9), 0.9),
        perfect_learner(),
        Mutation("Onsager term times {size:g}", (0.9, 0.8, 0.6), 0.8, measure=_measured),
    ],
    unseen="Errors that vanish as d grows; errors of V below 5 %; widths below 1 in the quick tier.",
    design=(
        "In a pilot errors over V scattered by 2.2/d to 3/d from data set to data set, and their overlap with the estimate"
        " by 1/d; sizes and seeds give standard errors of 1 % and 0.5 % at d = infinity, and support a true theory with"
        " probability 0.9 (a lack of fit by chance, 1 % in each of six fits, is most of the rest)."
    ),
)
