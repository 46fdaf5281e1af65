"""recovery.identifiability: different parameters give the same layer, and the canonical form is what they share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import stream
from attlas.recovery import Layer, difference, parameter_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROUNDING = 1e-12
CLEARLY = 1e-3
PAIRS = ("order", "split", "silent", "cancelling", "opposite", "sign")
AT_TWO = ("opposite", "sign")  # these pairs agree on sequences of two tokens only


class Point(Settings):
    """A kind of pair, and the dimension of tokens."""

    pair: Literal["order", "split", "silent", "cancelling", "opposite", "sign"]
    d: int = Field(5, ge=2)


def measure(point: Point, seed: int) -> Result:
    """Return how far the two functions are apart where they should agree, their canonical forms, and at length three."""
    first, second = _pair(point.pair, point.d, seed)
    k = 2 if point.pair in AT_TWO else None
    return {
        "functions": difference(first, second, k),
        "canonical": parameter_error(first.canonical(k=k), second.canonical(k=k)),
        "at_three": difference(first, second, 3),
        "parameters": parameter_error(first, second) if first.heads == second.heads else float("inf"),
    }


def _pair(kind: str, d: int, seed: int) -> tuple[Layer, Layer]:
    T, T2, A, B = stream(seed, "teacher").standard_normal((4, d, d))
    zero = np.zeros((d, d))

    def layer(*heads: tuple[Array, Array]) -> Layer:
        return Layer(np.array([head[0] for head in heads]), np.array([head[1] for head in heads]))

    return {
        "order": (layer((T, A), (T2, B)), layer((T2, B), (T, A))),
        "split": (layer((T, A), (T2, B)), layer((T, 0.3 * A), (T, 0.7 * A), (T2, B))),
        "silent": (layer((T, A)), layer((T, A), (T2, zero))),
        "cancelling": (layer((T, A)), layer((T, A), (T2, B), (T2, -B))),
        "opposite": (layer((T, A), (-T, A)), layer((zero, 2 * A))),
        "sign": (layer((T, A), (zero, B)), layer((-T, -A), (zero, B + 2 * A))),
    }[kind]


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Functions and canonical forms are equal to rounding; the pairs of length two differ clearly at length three."""
    if any(np.isnan(value) for m in measurements for value in m.result.values()):
        return Verdict(Outcome.REFUTED, "a difference is not a number", -np.inf, "orders of magnitude")
    functions = max(m.result["functions"] for m in measurements)
    canonical = max(m.result["canonical"] for m in measurements)
    reason = (
        f"in {len(measurements)} pairs the functions differ by at most {functions:.1e} and the canonical forms by"
        f" {canonical:.1e}"
    )
    numbers = {"functions": functions, "canonical forms": canonical}
    at_three = [m.result["at_three"] for m in measurements if m.point.pair in AT_TWO]
    if not at_three:
        reason = f"no pair that agrees at length two was measured; {reason}"
        return Verdict(Outcome.INCONCLUSIVE, reason, 0.0, "", numbers)
    apart = min(at_three)
    numbers["pairs of length two at length three"] = apart
    reason += f"; those that agree at length two differ by {apart:.2f} or more at length three"
    margin = float(min(np.log10(ROUNDING / max(functions, canonical, 1e-300)), np.log10(max(apart, 1e-300) / CLEARLY)))
    return Verdict(Outcome.SUPPORTED if margin > 0 else Outcome.REFUTED, reason, margin, "orders of magnitude", numbers)


def finding(numbers: Numbers) -> str:
    """Return how well canonical forms agree."""
    return (
        "Layers that compute the same function from different parameters have the same canonical form, to"
        f" {numbers['canonical forms']:.0e}; some agree on two tokens only, and differ by"
        f" {numbers['pairs of length two at length three']:.0%} or more on three"
    )


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw every pair, by its kind."""
    figure, (axis,) = panels(1, width=6.5)
    for i, (key, label) in enumerate(
        (("functions", "functions"), ("canonical", "canonical forms"), ("at_three", "functions at length three"))
    ):
        rows = [PAIRS.index(m.point.pair) + 0.2 * (i - 1) for m in measurements]
        values = [max(m.result[key], 1e-18) for m in measurements]
        axis.plot(values, rows, MARKERS[i], color=COLOURS[i], alpha=0.6, label=label, markersize=4)
    axis.axvline(np.finfo(float).eps, linestyle="--", **THEORY)
    axis.set(xlabel="relative difference", xscale="log")
    axis.set_yticks(range(len(PAIRS)), PAIRS)
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect six hundred sequences through two layers."""
    return Cost(0.03 + 1e-5 * point.d**2, 100_000_000)


CLAIM = Claim(
    id="recovery.identifiability",
    version=1,
    statement="Different parameters can give the same layer; what can be recovered is the canonical form, which they share.",
    formula=(
        r"F_{\Theta,W}=F_{\Theta',W'}\;\Rightarrow\;\operatorname{canonical}(\Theta,W)=\operatorname{canonical}(\Theta',W');"
        r"\qquad\text{on two tokens }(\Theta,W)\sim(-\Theta,-W)+(0,2W)"
    ),
    source="ours; chen2024provably assumes it away by non-degeneracy",
    settings=Point,
    tiers={
        "quick": Sweep([Point(pair=pair) for pair in PAIRS], seeds=10),
        "full": Sweep([Point(pair=pair, d=d) for pair in PAIRS for d in (3, 8, 20)], seeds=40),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Relative differences of two layers of the same function, by how their parameters differ: of their outputs, of their"
        " canonical forms, and of their outputs on three tokens. The dashed line is the rounding of one number."
    ),
    finding=finding,
)
