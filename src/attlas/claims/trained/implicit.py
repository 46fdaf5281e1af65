"""trained.implicit: without decay, descent from a start like the prior is not the solution of the smallest trace.

A descent may creep for long after it has fitted its data, so one that has not converged is used all the same. What counts is
the fit: runs without one are left out by the judge.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.aim.minimise import Problem
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, finite_size, mean
from attlas.claims.figure import COLOURS, MARKERS, THEORY, finished, panels
from attlas.claims.finding import ending, factors, named, span, spans
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.trained.kit import constraints, extreme_trace, size_of
from attlas.claims.verdict import Test, Verdict, above, below, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARTS = {"prior": 1.0, "small": 0.05}
FITTED = 1e-5  # of the mean loss at S = 0: descent has fitted its data
TRACE, ERROR = 1.05, 0.05  # what sets descent apart: times the smallest trace; logarithm of the ratio of errors
TRACES, ERRORS = "trace over the smallest, as d grows", "logarithm of the error over that of the smallest trace"
STEPS = 10_000  # of the splitting that finds the smallest trace


class Point(Settings):
    """Samples, widths of teacher and student, size; two tokens, softmax."""

    alpha: PositiveFloat = 0.1
    rho: PositiveFloat = 0.5
    student: PositiveFloat = 0.5
    d: PositiveInt
    steps: PositiveInt = 6000


def measure(point: Point, seed: int) -> Result:
    """Return errors and traces of descent from a start of the prior's scale, a small one, and of the smallest trace."""
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    size = size_of(task, point.rho)
    least, ended = extreme_trace(*constraints(task, channel), 1.0, STEPS)
    zero = 0.25 * float(np.sum(Problem(task.X, task.y, channel, 0.0).target ** 2)) / len(task.X)  # the loss at S = 0
    result: Result = {
        "least": float(np.sum((least - task.S) ** 2)) / point.d / size,
        "least_trace": float(np.trace(least)) / point.d,
        "least_ended": ended,
    }
    converged = [ended]
    for name, scale in STARTS.items():
        found = aim.descend(
            task.X, task.y, channel, round(point.student * point.d), seed=seed, init_scale=scale,
            tol=1e-9, max_steps=point.steps, throw=False,
        )  # fmt: skip
        converged.append(found.converged)
        result |= {
            name: found.mse(task.S).single / size,
            f"{name}_trace": float(np.trace(found.value)) / point.d,
            f"{name}_loss": float(found.losses.max()) / zero,
        }
    return result | {"bayes": _bayes(point.alpha, point.rho), "converged": all(converged)}


@lru_cache(maxsize=64)
def _bayes(alpha: float, rho: float) -> float:
    return float(aim.state_evolution(aim.Softmax(2), alpha, rho, steps=0, throw=False).value)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """On the same data descent from the prior's scale has a larger trace and error than the smallest trace.

    Its trace is also larger than from a small start: the start decides. And it has learned something.
    """
    fitted = [m for m in measurements if m.result["prior_loss"] < FITTED and m.result["least_ended"]]
    if len(fitted) < max(3, 0.8 * len(measurements)):
        raise Undecided(f"only {len(fitted)} of {len(measurements)} problems were solved")
    errors = [m.result[name] for m in fitted for name in ("prior", "least")]
    tests = [Test("smallest error", Exact(min(errors)), above(0))]
    if not min(errors) > 0:
        return decide(tests, "an error is zero")
    numbers: dict[str, float] = {}
    for alpha, rho, student in dict.fromkeys((m.point.alpha, m.point.rho, m.point.student) for m in fitted):
        mine = [m for m in fitted if (m.point.alpha, m.point.rho, m.point.student) == (alpha, rho, student)]
        largest = max(m.point.d for m in mine)
        last = [m.result for m in mine if m.point.d == largest]
        at = f"alpha={alpha:g} student={student:g}"
        traces = finite_size([(m.point.d, m.result["prior_trace"] / m.result["least_trace"]) for m in mine])
        apart = mean([np.log(r["prior"] / r["least"]) for r in last])
        start = mean([m.result["prior_trace"] / m.result["small_trace"] for m in mine])
        tests += [
            Test(f"{at} {TRACES}", traces, above(TRACE)),
            Test(f"{at} {ERRORS}", apart, above(ERROR)),
            Test(f"{at} trace over that from a small start", start, above(1)),
            Test(f"{at} error over that of S = 0", mean([r["prior"] / (1 + rho) for r in last]), below(1)),
        ]
        numbers |= {
            f"{at} error over 2V": float(np.mean([r["prior"] for r in last]) / (2 * last[0]["bayes"])),
            f"{at} small start, {ERRORS}": float(np.mean([np.log(r["small"] / r["least"]) for r in last])),
        }
    found = {test.name: test.estimate.value for test in tests}
    reason = (
        f"descent without decay has {span(ending(found, TRACES))} times the smallest trace, and on the same data an error"
        f" {span(np.exp(ending(found, ERRORS)))} times as large"
    )
    return decide(tests, reason, numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw errors and traces of descent against those of the smallest trace."""
    figure, (left, right) = panels(2)
    for axis, suffix, what in ((left, "", "error"), (right, "_trace", "trace over d")):
        least = [m.result[f"least{suffix}"] for m in measurements]
        for i, name in enumerate(STARTS):
            label = "start like the prior" if name == "prior" else "small start"
            axis.plot(
                least,
                [m.result[f"{name}{suffix}"] for m in measurements],
                MARKERS[i],
                color=COLOURS[i],
                alpha=0.6,
                label=label,
            )
        axis.axline((min(least), min(least)), slope=1, **THEORY)
        axis.set(xlabel=f"{what}, smallest trace", ylabel=f"{what}, descent")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect the steps of two descents, most of them overhead at small sizes, and those of the splitting."""
    n, r = point.alpha * point.d**2, point.student * point.d
    steps = min(point.steps, 1500)
    seconds = 0.05 + steps * (7e-5 + 1e-10 * n * point.d * r) + 2e-7 * n * point.d**2
    return Cost(seconds, int(80_000_000 + 100 * n * point.d + 24 * point.d**4))


def finding(numbers: Numbers) -> str:
    """Say how far descent stays from the smallest trace."""
    apart = named(numbers, end=ERRORS)
    return (
        "Without decay, gradient descent does not find the solution of the smallest trace: from a start like the prior its"
        f" trace is {spans(numbers, TRACES)} times the smallest, and its error {factors(numbers, apart)} times as large, on"
        " the same data"
    )


def _ours(numbers: Numbers) -> str:
    apart = [value for name, value in numbers.items() if name.endswith(ERRORS) and "small start" not in name]
    traces, ratios = ending(numbers, TRACES), ending(numbers, "error over 2V")
    return (
        f"From a start at the scale of the prior, descent has {span(traces)} times the smallest trace and"
        f" {span(np.exp(apart))} times its error on the same data, which is {span(ratios)} times twice the Bayes error."
    )


def _nearer(result: Result, size: float) -> Result:
    """Return what descent that goes towards the smallest trace would have, in logarithms."""
    return {
        name: result[name] ** (1 - size) * result[name.replace("prior", "least")] ** size
        for name in ("prior", "prior_trace")
    }


CLAIM = Claim(
    id="trained.implicit",
    version=4,
    statement=(
        "Without decay, gradient descent with momentum from a start like the prior does not end in the solution of the"
        " smallest trace: as d grows its trace is more than 5 % larger, at the largest d its error more than 5 % larger,"
        " and its trace is larger than from a small start."
    ),
    formula=(
        r"\lVert\hat S_{\text{descent}}-S\rVert>\lVert\hat S_{\text{trace}}-S\rVert,\qquad"
        r"\hat S_{\text{trace}}=\operatorname{argmin}\,\{\operatorname{Tr}S':\;S'\ge0,\;e(S')=0\}"
    ),
    source="boncoraglio2025inductive; this comparison is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, steps=3000) for d in (16, 22, 30, 42)], seeds=(12, 9, 9, 16)),
        "full": Sweep(
            [
                Point(alpha=a, d=d, student=s, steps=20_000)
                for a in (0.1, 0.15)
                for s in (0.5, 1.0)
                for d in (24, 36, 54, 80)
            ],
            seeds=(16, 12, 8, 8) * 4,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Gradient descent without decay against the solution of the smallest trace on the same data, one mark for each data"
        " set and start: errors (left) and traces over d (right). The lines are equality."
    ),
    finding=finding,
    differs=[
        Difference(
            title="Without weight decay",
            statement=(
                "Two pictures of gradient descent without weight decay are current: it finds the solution of the smallest"
                " trace, or it acts like a draw from the posterior, with twice the Bayes error."
            ),
            ours=_ours,
        )
    ],
    unfinished=Unfinished.USED,
    mutations=[
        Mutation("descent goes {size:g} of the way to the smallest trace", (0.1, 1.0), 1.0, change=changed(_nearer)),
        Mutation("the trace of descent is {size:g} of what it is", (0.95, 0.8), 0.8, change=scaled("prior_trace")),
        Mutation("the error of descent is {size:g} of what it is", (0.9, 0.5, 0.0), 0.5, change=scaled("prior")),
        Mutation(
            "descent learns nothing: its error is {size:g} times what it is", (1.2, 5.0), 5.0, change=scaled("prior")
        ),
    ],
    design=(
        "In a pilot the trace was 1.21 times the smallest (standard error 0.034 of the limit) and the error 1.35 times (0.05"
        " in logarithms at d = 42); with these seeds such a gap is found in over 90 % of runs (in 89 % with two"
        " thirds of them, in version 2). No theory says how large it is."
    ),
    unseen="other optimisers: with small steps or Adam descent ends still farther away",
)
