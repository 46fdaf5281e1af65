"""positional.bayes: what outputs tell about meaning, whatever the share of position in them.

Message passing on the outputs of a mixed teacher, at three places of every number of tokens: below 1/(L^2 + L), between, and
above 1/L. Runs that wander or end short are used as they are.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import positional
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, mean, share
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels, simulated
from attlas.claims.mutation import Mutation, changed
from attlas.claims.positional.kit import Row, own_stream
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAR = 0.08  # of V between the thresholds, in units of the error of guessing zero
NOTHING = 0.02  # of the error of guessing zero, below the first threshold
FOUND = 1e-5  # an error below this is exact recovery
SHARE = 0.75  # of runs that recover above the second
SETTLED = 0.75  # of runs that converge
OFF = "error less V"


class Point(Settings):
    """Tokens, samples over d, the share of position in the outputs, and the size."""

    tokens: int = Field(ge=2)
    alpha: PositiveFloat
    mixture: float = Field(0.6, ge=0, lt=1)
    d: PositiveInt

    @property
    def label(self) -> str:
        """The settings in words."""
        return f"L = {self.tokens}, alpha = {self.alpha:g}"

    @property
    def phase(self) -> str:
        """Below weak recovery, between, or above exact recovery."""
        L = self.tokens
        return "nothing" if self.alpha < 1 / (L * L + L) else "all" if self.alpha > 1 / L else "some"


@lru_cache(maxsize=64)
def best(tokens: int, alpha: float) -> float:
    """Return V of the best learner."""
    return float(positional.bayes(tokens, alpha).value)


def measure(point: Point, seed: int) -> Result:
    """Mix a teacher's attention with a matrix of places, and pass messages on the outputs."""
    L = point.tokens
    task = positional.sample_teacher(L, point.d, point.alpha, own_stream(seed, "task", str(point.d)))
    places = np.full((L, L), 0.4 / (L - 1)) + (0.6 - 0.4 / (L - 1)) * np.eye(L)
    outputs = ((1 - point.mixture) * task.attention + point.mixture * places) @ task.X
    found = positional.message_passing(
        task.X,
        outputs,
        mixture=point.mixture,
        positional_matrix=places,
        Q=task.W[:, 0],
        seed=own_stream(seed, "start", str(point.d)),
        max_steps=600,
        throw=False,
    )
    return {
        "error": float(found.mse[-1]),
        "V": best(L, point.alpha),
        "steps": found.steps,
        "converged": found.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The error is 1 below the first threshold, V between, to 0.08, and exactly zero above the second."""
    tests = []
    for name in dict.fromkeys(m.point.label for m in measurements):
        own = [m for m in measurements if m.point.label == name]
        errors = [m.result["error"] for m in own]
        phase = own[0].point.phase
        if phase == "nothing":
            tests.append(Test(f"error, {name}", mean(errors), about(1, NOTHING), 1.0))
        elif phase == "all":
            tests.append(Test(f"runs that recover exactly, {name}", share([e < FOUND for e in errors]), above(SHARE)))
        else:
            largest = max(m.point.d for m in own)
            off = mean([m.result["error"] - m.result["V"] for m in own if m.point.d == largest])
            tests.append(Test(f"{OFF}, {name}, d = {largest}", off, between(-NEAR, NEAR), 0.0))
            tests.append(Test(f"smallest error, {name}", Exact(min(errors)), above(FOUND)))
    if len({m.point.phase for m in measurements}) < 3:
        raise Undecided("needs samples below, between and above the thresholds")
    tests.append(Test("runs that converged", share([m.result["converged"] for m in measurements]), above(SETTLED)))
    return decide(tests, "message passing on outputs that are mostly positional")


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against samples times tokens."""
    rows = [
        ("amp", {"tokens": m.point.tokens, "size": m.point.d}, m.point.alpha, m.result["error"], m.result["V"])
        for m in measurements
    ]
    return gather(rows, "samples over d", "error of the teacher")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw V as a line and message passing as points, for every number of tokens; the error over V against 1/d."""
    figure, (left, right) = panels(2)
    for i, L in enumerate(sorted({m.point.tokens for m in measurements})):
        own = [m for m in measurements if m.point.tokens == L]
        V = np.linspace(1e-3, 1, 60)
        alpha = positional.bayes_alpha(L, V)
        left.plot([0, *alpha[::-1], 1.3 / L], [1, *V[::-1], 0], **(THEORY | {"color": COLOURS[i]}))
        largest = {m.point.alpha: max(o.point.d for o in own if o.point.alpha == m.point.alpha) for m in own}
        shown = [m for m in own if m.point.d == largest[m.point.alpha]]
        simulated(left, i, [m.point.alpha for m in shown], [m.result["error"] for m in shown])
        at = float(positional.bayes_alpha(L, 0.75))
        left.annotate(
            f"{L} tokens", (at, 0.75), textcoords="offset points", xytext=(6, 4), color=COLOURS[i], fontsize=9
        )
        some = [m for m in own if m.point.phase == "some"]
        for j, a in enumerate(sorted({m.point.alpha for m in some})):
            rows: list[Row] = [
                ("amp", {}, 1 / m.point.d, m.result["error"] / m.result["V"], None) for m in some if m.point.alpha == a
            ]
            (mine,) = gather(rows, "1/d", "error / V")
            right.errorbar(mine.x, mine.mean, yerr=mine.standard_error, fmt=MARKERS[2 * i + j], color=COLOURS[i], capsize=2,
                           label=f"{L} tokens, alpha = {a:g}")  # fmt: skip
    left.set(xlabel="samples alpha = n/d", ylabel="error of the teacher |Q* - Q|²/d", xlim=(0, None))
    right.axhline(1, **THEORY)
    right.set(xlabel="1/d", ylabel="error / V", xlim=(0, None))
    right.legend(frameon=False, fontsize=8)
    return figure


def cost(point: Point) -> Cost:
    """Expect some 200 steps of two products."""
    size = point.alpha * point.tokens * point.d**2
    return Cost(0.01 + 200 * 1.2e-9 * size, int(120_000_000 + 60 * size))


def finding(numbers: Numbers) -> str:
    """Say how near message passing is to the limits."""
    off = {name: value for name, value in numbers.items() if name.startswith(OFF) and not name.endswith("±")}
    if not off:
        raise LookupError(OFF)
    half = max(numbers[f"{name} ±"] for name in off)
    exact = min(value for name, value in numbers.items() if name.startswith("runs that recover exactly") and name.endswith(
        tuple("0123456789")))  # fmt: skip
    return (
        "However much position is mixed in, the outputs give the meaning away: nothing below 1/(L² + L) samples per"
        " dimension,"
        f" an error within {max(map(abs, off.values())):.2f} ± {half:.2f} of the predicted one between, and exact"
        " recovery above"
        f" 1/L in {exact:.0%} of runs"
    )


_SOME = [Point(tokens=L, alpha=a, d=d) for L, a in ((2, 0.42), (3, 0.25)) for d in (300, 600, 1200)]
_ENDS = [Point(tokens=L, alpha=a, d=600) for L, a in ((2, 0.1), (2, 0.6), (3, 0.05), (3, 0.4))]

CLAIM = Claim(
    id="positional.bayes",
    version=1,
    statement=(
        "The outputs tell all about meaning at alpha = 1/L, however much position is mixed in (60 % here): for two and three"
        " tokens message passing learns nothing below 1/(L^2 + L) (to 2 %), has the predicted error between, to 0.08"
        " (guessing zero has 1), and"
        " recovers the teacher exactly above 1/L in more than 75 % of runs."
    ),
    formula=r"\alpha(V)=\frac{V(1-V)}{L V-T(V)},\qquad\alpha(1)=\frac{1}{L^2+L},\quad\alpha(0)=\frac1L",
    source="ours, in the spirit of troiani2025fundamental",
    settings=Point,
    tiers={
        "quick": Sweep([*_SOME, *_ENDS], seeds=(16, 16, 32) + (16, 16, 24) + (36,) * 4),
        "full": Sweep(
            [Point(tokens=L, alpha=a, d=d) for L, a in ((2, 0.3), (2, 0.42), (3, 0.15), (3, 0.25), (4, 0.15))
             for d in (600, 1200, 2400)]
            + [Point(tokens=L, alpha=a, d=2000) for L, a in ((2, 0.1), (2, 0.55), (3, 0.05), (3, 0.37), (4, 0.3))],
            seeds=(24, 24, 24) * 5 + (30,) * 5,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error of the best learner (lines) and of message passing at the largest size (points) against samples, for"
        " two and three tokens. Right: error of message passing over the prediction between the thresholds, against 1/d; the"
        " line is exact agreement. Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
    mutations=[
        Mutation("V of the theory times {size:g}", (1.05, 1.5, 2.0), 1.5,
                 change=changed(lambda result, size: {"V": result["V"] * size})),
        Mutation("recovery begins at 1/L instead of 1/(L^2 + L)", (1.0,), 1.0,
                 change=changed(lambda result, _: {"V": 1.0} if result["V"] > 0 else {})),
        Mutation("exact recovery in {size:g} of the runs only", (0.0,), 0.0,
                 change=changed(lambda result, _: {"error": 0.1} if result["V"] == 0 else {})),
        Mutation("something is learned everywhere: errors times {size:g}", (0.99, 0.9), 0.9,
                 change=changed(lambda result, size: {"error": result["error"] * size} if result["V"] == 1 else {})),
        Mutation("the teacher leaks: errors times {size:g}", (0.0,), 0.0,
                 change=changed(lambda result, size: {"error": result["error"] * size})),
    ],
    unseen="The shape of the error just above 1/(L^2 + L), where message passing scatters most at these sizes.",
    design=(
        "In a pilot errors scattered by 0.06 at d = 1200 and were up to 0.02 above V there: below 1/L message passing"
        " has large"
        " effects of the size, and an extrapolation would need ten times the runs. Hence one large size and an absolute"
        " tolerance; a true theory is supported in 97 % of resampled runs."
    ),
)  # fmt: skip
