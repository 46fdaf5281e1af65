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
from attlas.claims.estimate import Estimate, Exact, Undecided, mean, resampled, share
from attlas.claims.figure import COLOURS, THEORY, finished, panels, simulated
from attlas.claims.finding import interval
from attlas.claims.mutation import Mutation, changed
from attlas.claims.positional.kit import leaks, own_stream
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOGETHER, EACH, TWO = 0.05, 0.1, 0.2  # of V between the thresholds: three tokens and more, each of them, two tokens
LEAST = 0.3  # of V: an error below this is a leak
NOTHING = 0.02  # of the error of guessing zero, below the first threshold
FOUND = 1e-5  # an error below this is exact recovery
SHARE = 0.75  # of runs that recover above the second
SETTLED = 0.75  # of runs that converge
OVER = "median error over V"


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
    def name(self) -> str:
        """Of the random streams: no two places share data."""
        return f"{self.label}, {self.d}"

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
    task = positional.sample_teacher(L, point.d, point.alpha, own_stream(seed, "task", point.name))
    places = np.full((L, L), 0.4 / (L - 1)) + (0.6 - 0.4 / (L - 1)) * np.eye(L)
    outputs = ((1 - point.mixture) * task.attention + point.mixture * places) @ task.X
    found = positional.message_passing(
        task.X,
        outputs,
        mixture=point.mixture,
        positional_matrix=places,
        Q=task.W[:, 0],
        seed=own_stream(seed, "start", point.name),
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
    """The error is 1 below the first threshold, V between, and exactly zero above the second.

    Between them single runs stay near the error of guessing at these sizes, hence medians. Two tokens have the larger
    effects of the size and a wider tolerance; the others are also taken together.
    """
    tests, ratios = [], []
    for name in dict.fromkeys(m.point.label for m in measurements):
        own = [m for m in measurements if m.point.label == name]
        errors = [m.result["error"] for m in own]
        phase, L = own[0].point.phase, own[0].point.tokens
        if phase == "nothing":
            tests.append(Test(f"error, {name}", mean(errors), about(1, NOTHING), 1.0))
        elif phase == "all":
            tests.append(Test(f"runs that recover exactly, {name}", share([e < FOUND for e in errors]), above(SHARE)))
        else:
            over = [m.result["error"] / m.result["V"] for m in own]
            ratios += over if L > 2 else []
            eps = EACH if L > 2 else TWO
            tests.append(Test(f"{OVER}, {name}, d = {own[0].point.d}", _median(over), about(1, eps), 1.0))
            tests.append(Test(f"smallest error over V, {name}", Exact(min(over)), above(LEAST)))
    if len({m.point.phase for m in measurements}) < 3:
        raise Undecided("needs samples below, between and above the thresholds")
    tests.append(Test(f"{OVER}, three tokens and more", _median(ratios), about(1, TOGETHER), 1.0))
    tests.append(Test("runs that converged", share([m.result["converged"] for m in measurements]), above(SETTLED)))
    return decide(tests, "message passing on outputs that are mostly positional")


def _median(samples: Sequence[float]) -> Estimate:
    """Estimate a median."""
    return resampled(lambda groups: float(np.median(groups["all"])), {"all": samples})


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against samples times tokens."""
    rows = [
        ("amp", {"tokens": m.point.tokens, "size": m.point.d}, m.point.alpha, m.result["error"], m.result["V"])
        for m in measurements
    ]
    return gather(rows, "samples over d", "error of the teacher")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw V as a line and message passing as points, for every number of tokens; and its error over V, run by run."""
    figure, (left, right) = panels(2, width=5)
    names: dict[int, str] = {}
    largest = max(m.point.d for m in measurements if m.point.phase == "some")
    for i, L in enumerate(sorted({m.point.tokens for m in measurements})):
        own = [m for m in measurements if m.point.tokens == L]
        V = np.linspace(1e-3, 1, 60)
        alpha = positional.bayes_alpha(L, V)
        look = THEORY | {"color": COLOURS[i]}
        left.plot([0, *alpha[::-1], 1.3 / L], [1, *V[::-1], 0], label=f"{L} tokens", **look)
        simulated(left, i, [m.point.alpha for m in own], [m.result["error"] for m in own])
        some = [m for m in own if m.point.phase == "some" and m.point.d == largest]
        if not some:
            continue
        over = np.array([m.result["error"] / m.result["V"] for m in some])
        right.plot(np.linspace(i - 0.3, i + 0.3, len(over)), over, ".", color=COLOURS[i], alpha=0.35, markersize=4)
        right.plot([i - 0.35, i + 0.35], [np.median(over)] * 2, color=COLOURS[i], linewidth=2)
        names[i] = f"{L} tokens"
    left.set(xlabel="samples alpha = n/d", ylabel="error of the teacher, $|Q^* - Q|^2/d$", xlim=(0, None))
    right.axhline(1, **THEORY)
    right.axhspan(1 - TOGETHER, 1 + TOGETHER, color="#bbbbbb", alpha=0.3, linewidth=0)
    right.set_xticks(list(names), list(names.values()))
    right.set(xlabel=f"single runs at d = {largest}, and their medians", ylabel="error / V between the thresholds")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some 150 steps of two products."""
    size = point.alpha * point.tokens * point.d**2
    return Cost(0.003 + 150 * 3e-10 * size * (2 if point.tokens == 2 else 1), int(120_000_000 + 60 * size))


def finding(numbers: Numbers) -> str:
    """Say how near message passing is to the limits."""
    name = f"{OVER}, three tokens and more"
    over, half = numbers[name], numbers[f"{name} ±"]
    exact = [key for key in numbers if key.startswith("runs that recover exactly") and key[-1].isdigit()]
    if not exact:
        raise LookupError("runs that recover exactly")
    least = interval(numbers, min(exact, key=lambda key: numbers[key]), ".0%")
    return (
        "However much position is mixed in, the outputs give the meaning away: nothing below 1/(L² + L) samples per"
        f" dimension, a median of {over:.3f} ± {half:.3f} times the predicted error between (three tokens and more), and"
        f" exact recovery above 1/L in {least} of runs"
    )


CLAIM = Claim(
    id="positional.bayes",
    version=5,
    statement=(
        r"The outputs tell all about meaning at $\alpha = 1/L$, however much position is mixed in (60 % here). Message"
        " passing learns nothing below $1/(L^2 + L)$ (to 2 %) and recovers the teacher exactly above $1/L$ in more than"
        " 75 % of runs. Between, the median of its error at d = 1200 is the predicted one: to 5 % over three and four"
        " tokens together, to 10 % in each, and to 20 % for two tokens, where the size matters more."
    ),
    formula=r"\alpha(V)=\frac{V(1-V)}{L V-T(V)},\qquad\alpha(1)=\frac{1}{L^2+L},\quad\alpha(0)=\frac1L",
    source="ours, in the spirit of troiani2025fundamental",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(tokens=2, alpha=0.42, d=1200), Point(tokens=3, alpha=0.25, d=1200), Point(tokens=4, alpha=0.2, d=1200),
             *(Point(tokens=L, alpha=a, d=600) for L, a in ((2, 0.1), (3, 0.05))),
             *(Point(tokens=L, alpha=a, d=400) for L, a in ((2, 0.6), (3, 0.4)))],
            seeds=(44, 120, 100, 120, 120, 30, 30),
        ),
        "full": Sweep(
            [*(Point(tokens=L, alpha=a, d=2400) for L, a in ((2, 0.42), (3, 0.25), (4, 0.2), (5, 0.15))),
             *(Point(tokens=L, alpha=a, d=1200)
               for L, a in ((2, 0.1), (3, 0.05), (4, 0.03), (2, 0.55), (3, 0.37), (4, 0.3)))],
            seeds=(30, 40, 40, 40) + (60,) * 3 + (30,) * 3,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error of the best learner (lines) and of message passing (points, means over data sets) against samples, for"
        " several numbers of tokens. Right: error of message passing over the prediction between the thresholds, every run a"
        " point; bars are medians, the band is 5 %."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
    mutations=[
        Mutation("V of the theory times {size:g}", (1.02, 1.1, 1.2, 1.5), 1.1,
                 change=changed(lambda result, size: {"V": result["V"] * size})),
        Mutation("V of the theory times {size:g} (too low)", (0.98, 0.85, 0.7), 0.85,
                 change=changed(lambda result, size: {"V": result["V"] * size})),
        Mutation("V of the theory is {size:g} higher", (0.01, 0.05), 0.05,
                 change=changed(lambda result, size: {"V": result["V"] + size} if 0 < result["V"] < 1 else {})),
        Mutation("recovery begins at 1/L instead of 1/(L^2 + L)", (1.0,), 1.0,
                 change=changed(lambda result, _: {"V": 1.0} if result["V"] > 0 else {})),
        Mutation("exact recovery in {size:g} of the runs only", (0.0,), 0.0,
                 change=changed(lambda result, _: {"error": 0.1} if result["V"] == 0 else {})),
        Mutation("something is learned everywhere: errors times {size:g}", (0.99, 0.9), 0.9,
                 change=changed(lambda result, size: {"error": result["error"] * size} if result["V"] == 1 else {})),
        Mutation("the teacher leaks: errors between the thresholds are {size:g} of what they are, below Bayes",
                 (0.97, 0.85, 0.0), 0.85,
                 change=changed(lambda result, size: {"error": result["error"] * size} if 0 < result["V"] < 1 else {})),
        Mutation("the teacher leaks in the first seed of each place: errors times {size:g}", (0.01,), 0.01,
                 change=leaks("error")),
    ],
    unseen=(
        "The shape of the error just above 1/(L^2 + L), where message passing scatters most at these sizes; an error of V"
        " below 5 % (one of 10 % is left undecided in one run of five), or below 20 % for two tokens alone; the few runs"
        " that stay near the error of guessing."
    ),
    design=(
        "Version 4 tested means and was supported in two of five runs: one run of a hundred stays near the error of"
        " guessing, and such tails widen its intervals. In its 1710 measurements medians were 1.00 times V (two and three"
        " tokens) and 0.99 (four), and errors below the first threshold 0.993 and 0.996. Runs resampled from them supported"
        " a true theory in 98 %."
    ),
)  # fmt: skip
