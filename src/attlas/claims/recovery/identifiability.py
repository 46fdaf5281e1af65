"""recovery.identifiability: different parameters give the same layer, and the canonical form is what they share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, Undecided
from attlas.claims.figure import COLOURS, MARKERS, THEORY, finished, panels
from attlas.claims.mutation import Mutation, changed
from attlas.claims.verdict import Test, Verdict, above, below, decide
from attlas.numerics import stream
from attlas.recovery import Layer, difference, parameter_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROUNDING = 1e-12
NUDGE = 1e-3  # of a head's Theta: another layer, whose canonical form must be another one
SEEN = 0.1  # of the nudge, in the canonical form
CLEARLY = 0.1
PAIRS = ("order", "split", "silent", "cancelling", "opposite", "sign")
AT_TWO = ("opposite", "sign")  # these pairs agree on sequences of two tokens only


class Point(Settings):
    """A kind of pair, and the dimension of tokens."""

    pair: Literal["order", "split", "silent", "cancelling", "opposite", "sign"]
    d: int = Field(5, ge=2)


def measure(point: Point, seed: int) -> Result:
    """Return how far apart two layers, and their canonical forms, are: of the same function, and of a nudged one.

    `functions` and `canonical` are of a pair that should agree, `kept` of a layer and its own canonical form,
    `parameters` of the pair as it is given, `at_three` of the pair on three tokens.
    `nudged` and `nudged_canonical` are of the first layer and one whose first head differs by a thousandth.
    """
    return _measured(point, seed)


def _measured(point: Point, seed: int, off: float = 0.0, merge: bool = True) -> Result:
    """Measure; the second layer's values are off by a share `off`, or its heads are not merged."""
    first, second = _pair(point.pair, point.d, seed)
    second = Layer(second.Theta, second.W * (1 + off))
    k = 2 if point.pair in AT_TWO else None
    own, other = (layer.canonical(k=k) if merge else layer for layer in (first, second))
    nudged = Layer(own.Theta + NUDGE * _nudge(own, seed), own.W)
    return {
        "functions": difference(first, second, k),
        "canonical": parameter_error(own, other),
        "kept": difference(first, own, k),
        "at_three": difference(first, second, 3),
        "parameters": _apart(first, second),
        "nudged": difference(own, nudged, k),
        "nudged_canonical": parameter_error(nudged.canonical(k=k) if merge else nudged, own),
    }


def _apart(first: Layer, second: Layer) -> float:
    """Return the relative difference of Theta as it is given; infinite if the numbers of heads differ."""
    if first.heads != second.heads:
        return float("inf")
    return float(np.linalg.norm(first.Theta - second.Theta) / np.linalg.norm(first.Theta))


def _nudge(layer: Layer, seed: int) -> Array:
    """Return a change of the first head's Theta, of its size; where that is zero, of size one."""
    change = np.zeros_like(layer.Theta)
    change[0] = stream(seed, "nudge").standard_normal(change[0].shape)
    return change / np.linalg.norm(change) * (float(np.linalg.norm(layer.Theta)) or 1.0)


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
    """Pairs have one function and one canonical form, to rounding, from other parameters; a nudged layer has another one.

    The pairs of length two differ at length three.
    """
    missing = set(PAIRS) - {m.point.pair for m in measurements}
    if missing:
        raise Undecided(f"no pair of the kind {', '.join(sorted(missing))} was measured")
    worst = {key: _extreme(measurements, key) for key in ("functions", "canonical", "kept")}
    ratios = [m.result["nudged_canonical"] / NUDGE if m.result["nudged"] > ROUNDING else 0.0 for m in measurements]
    tests = [
        Test("functions of a pair differ by", Exact(worst["functions"]), below(ROUNDING)),
        Test("canonical forms of a pair differ by", Exact(worst["canonical"]), below(ROUNDING)),
        Test("a layer and its canonical form differ by", Exact(worst["kept"]), below(ROUNDING)),
        Test(
            "parameters of a pair differ by at least", Exact(-_extreme(measurements, "parameters", -1)), above(CLEARLY)
        ),
        Test(
            "pairs of length two differ at length three by at least",
            Exact(-_extreme([m for m in measurements if m.point.pair in AT_TWO], "at_three", -1)),
            above(CLEARLY),
        ),
        Test(
            "canonical form of a nudged layer: least change over the nudge", Exact(float(np.min(ratios))), above(SEEN)
        ),
    ]
    reason = (
        f"in {len(measurements)} pairs the functions differ by at most {worst['functions']:.1e} and the canonical forms by"
        f" {worst['canonical']:.1e}"
    )
    return decide(tests, reason, {"pairs": float(len(measurements))})


def _extreme(measurements: Sequence[Measurement[Point]], key: str, sign: int = 1) -> float:
    """Return the largest value; what is not a number is as wrong as can be."""
    values = [sign * m.result[key] for m in measurements]
    return float(np.max(np.nan_to_num(values, nan=np.inf, posinf=np.inf, neginf=-np.inf)))


def finding(numbers: Numbers) -> str:
    """Return how well canonical forms agree."""
    return (
        f"{numbers['pairs']:.0f} pairs of layers that compute the same function from different parameters have the same"
        f" canonical form, to {numbers['canonical forms of a pair differ by']:.0e}; some agree on two tokens only, and"
        f" differ by {numbers['pairs of length two differ at length three by at least']:.0%} or more on three"
    )


WRITTEN = {
    "order": "heads in another order",
    "split": "a head split in two",
    "silent": "a head of value zero",
    "cancelling": "two heads that cancel",
    "opposite": "opposite heads, two tokens",
    "sign": "a head of other sign, two tokens",
}
NOTHING = 1e-18  # where a difference of zero is drawn


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw every pair, by its kind."""
    figure, (axis,) = panels(1, width=6.5)
    for i, (key, label) in enumerate(
        (("functions", "functions"), ("canonical", "canonical forms"), ("at_three", "functions at length three"))
    ):
        rows = [PAIRS.index(m.point.pair) + 0.2 * (i - 1) for m in measurements]
        values = [max(m.result[key], NOTHING) for m in measurements]
        axis.plot(values, rows, MARKERS[i], color=COLOURS[i], alpha=0.6, label=label, markersize=4)
    axis.axvline(np.finfo(float).eps, linestyle="--", **THEORY)
    axis.set(xlabel="relative difference", xscale="log")
    axis.set_yticks(range(len(PAIRS)), [WRITTEN[pair] for pair in PAIRS])
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect twenty times some hundred sequences through two layers."""
    return Cost(0.01 + 5e-5 * point.d**2, 100_000_000)


MUTATIONS = (
    Mutation(
        "the second layer's values are off by a share {size:g}",
        (1e-14, 1e-11, 1e-6),
        1e-11,
        measure=_measured,
    ),
    Mutation(
        "equal heads are not merged (canonical form = the layer)",
        (0.0,),
        0.0,
        measure=lambda point, seed, size: _measured(point, seed, size, merge=False),
    ),
    Mutation(
        "the canonical form sees {size:g} of a change of the layer",
        (0.5, 0.01, 0.0),
        0.01,
        change=changed(lambda result, size: {"nudged_canonical": size * min(result["nudged_canonical"], NUDGE)}),
    ),
    Mutation(
        "pairs have the same parameters, to {size:g}",
        (0.5, 0.01, 0.0),
        0.01,
        change=changed(lambda result, size: {"parameters": min(size, result["parameters"])}),
    ),
    Mutation(
        "pairs of length two agree at length three, to {size:g}",
        (0.5, 0.01, 0.0),
        0.01,
        change=changed(lambda result, size: {"at_three": size * result["at_three"]}),
    ),
)


CLAIM = Claim(
    id="recovery.identifiability",
    version=2,
    statement=(
        "Different parameters can give the same layer (Bhattamishra et al. 2026). In six kinds of such pairs, d = 5,"
        " two of them on sequences of two tokens only, both have the same canonical form to $10^{-12}$, with the same"
        " function; a layer whose query-key matrix is changed by a thousandth has another one, by at least a tenth of"
        " that."
    ),
    formula=(
        r"F_{\Theta,W}=F_{\Theta',W'}\;\Rightarrow\;\operatorname{canonical}(\Theta,W)=\operatorname{canonical}(\Theta',W');"
        r"\qquad\text{on two tokens }(\Theta,W)\sim(-\Theta,-W)+(0,2W)"
    ),
    source=(
        "bhattamishra2026provably: heads are not identifiable; kim2026queries: merging equal heads and dropping silent ones;"
        " the form on two tokens is ours"
    ),
    settings=Point,
    tiers={
        "quick": Sweep([Point(pair=pair) for pair in PAIRS], seeds=20),
        "full": Sweep([Point(pair=pair, d=d) for pair in PAIRS for d in (3, 8, 20)], seeds=40),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Relative differences of two layers of the same function, by how their parameters differ: of their outputs, of their"
        " canonical forms, and of their outputs on three tokens. The dashed line is the rounding of one number; no"
        " difference at all is drawn at 1e-18."
    ),
    finding=finding,
    mutations=MUTATIONS,
    unseen="Other kinds of pairs: it tests six known ones, and proves nothing about layers in general.",
    design=(
        "In a pilot of 768 pairs functions and canonical forms differed by at most 4e-16, pairs of length two by 0.25 or"
        " more at length three, and the canonical form saw all of a nudge: a true claim is supported in every run."
    ),
)
