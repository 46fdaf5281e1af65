"""features.sharp-bias: a bias turns the cost d^2 of a correlation into d; where it stops paying is predicted."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, Undecided, mean, resampled
from attlas.claims.features import kit
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels, ticks
from attlas.claims.finding import named, span
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, between, decide
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TARGET = "correlation 1"
TEST = 400  # test sequences
FACTOR = 1.3  # of the crossing
LIMITS = {0.0: 2.0, 1.0: 1.0}  # of the exponent as d grows, by bias
NEAR = 0.3  # of the limit, from d = 64 to 128
OFF = 0.15  # of the logarithm of the error without bias, against its prediction
LEVEL = "log of measured over predicted error without bias"
CROSSING, AHEAD = "measured over predicted crossing, in logarithms", "error over that of the biased layer"


class Point(Settings):
    """Tokens and bias. With `n` learning curves are run up to there; without, the exponent from d to 2d is predicted."""

    d: int = Field(ge=5)
    bias: NonNegativeFloat
    keys: PositiveInt = 8
    n: NonNegativeInt = 0

    @property
    def label(self) -> str:
        """The settings in words."""
        return f"d = {self.d}, b = {self.bias:g}"


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves without and with bias on the same data, and the predicted crossing; or an exponent."""
    if not point.n:
        found = kit.theory(point.d, point.keys, point.bias).exponent(TARGET, d=[point.d, 2 * point.d])
        return {"exponent": float(found.slope[0]), "converged": bool(found.converged.all())}
    here = int(stream(seed, "data", str(point)).integers(2**31))
    data = kit.with_control(features.TargetData([TARGET], point.d, point.keys, point.n, TEST, here), here)
    sizes = features.sample_sizes(point.n // 6, point.n, 4)
    plain, biased = (data.attention(sizes, bias) for bias in (0.0, point.bias))
    return {
        "plain": plain[:, 0],
        "plain_theory": kit.predicted_curves(kit.theory(point.d, point.keys), (TARGET,), tuple(sizes))[:, 0],
        "biased": biased[:, 0],
        "permuted": float(min(plain[-1, 1], biased[-1, 1])),
        "sizes": np.array(sizes, dtype=float),
        "crossing": predicted_crossing(point.d, point.keys, point.bias),
    }


@cache
def predicted_crossing(d: int, keys: int, bias: float) -> float:
    """Return the n from which the unbiased layer is ahead, by theory."""
    return kit.theory(d, keys).crossing(TARGET, (0.0, bias)).value


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge exponents of the theory at large d, and where learning curves cross, against the predicted place."""
    run = [m for m in measurements if m.point.n]
    told = [m for m in measurements if not m.point.n]
    if not run or not told:
        raise Undecided("needs learning curves, and the exponents that the theory has at large d")
    smallest = min(float(np.min(m.result[name])) for m in run for name in ("plain", "biased"))
    tests = [
        Test(kit.SMALLEST, Exact(smallest), above(0.0)),
        Test(kit.PERMUTED, mean([m.result["permuted"] for m in run]), above(kit.NOTHING)),
    ]
    for point in dict.fromkeys(m.point for m in told):
        if point.bias not in LIMITS:
            continue
        value = next(m.result["exponent"] for m in told if m.point == point)
        name = f"predicted exponent from d = {point.d} to {2 * point.d}, b = {point.bias:g}"
        tests.append(Test(name, Exact(value), between(LIMITS[point.bias] - NEAR, LIMITS[point.bias] + NEAR)))
    for point in dict.fromkeys(m.point for m in run):
        mine = [m for m in run if m.point == point]
        plain, biased = (np.log([np.maximum(m.result[name], 1e-300) for m in mine]) for name in ("plain", "biased"))
        ratios = plain - biased
        places = np.log(mine[0].result["sizes"] / mine[0].result["crossing"])
        level = np.mean(plain - np.log(mine[0].result["plain_theory"]), axis=1)
        tests.append(Test(f"{point.label}: {LEVEL}", mean(level), between(-OFF, OFF), 0.0))
        first = ratios[:, places < -np.log(1.5)].mean(1)
        tests.append(
            Test(f"{point.label}: log error over that of the biased layer, few samples", mean(first), above(0.0))
        )

        def zero(drawn_: Mapping[str, Array], places: Array = places) -> float:
            return _crossing(places, drawn_["runs"].mean(0))

        where = resampled(zero, {"runs": ratios})
        tests.append(Test(f"{point.label}: {CROSSING}", where, between(-np.log(FACTOR), np.log(FACTOR)), 0.0))
    numbers = {
        f"{m.point.label}: predicted crossing": float(m.result["crossing"]) for m in {m.point: m for m in run}.values()
    }
    return decide(tests, "where the unbiased layer overtakes the biased one", numbers)


def _crossing(places: Array, ratios: Array) -> float:
    """Return where a curve falls through zero last, by straight lines; an end of the places if it does not within them."""
    if ratios[-1] > 0:
        return float(places[-1])
    falls = np.flatnonzero((ratios[:-1] > 0) & (ratios[1:] <= 0))
    if not len(falls):
        return float(places[0])
    k = falls[-1]
    return float(places[k] + (places[k + 1] - places[k]) * ratios[k] / (ratios[k] - ratios[k + 1]))


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves, and the error without bias over that with it against n over the predicted crossing."""
    run = [m for m in measurements if m.point.n]
    curves = [row for m in run for row in kit.curve_points(m, {"plain": "kernel", "biased": "biased"}, [TARGET])]
    ratios = [
        (m.point.label, {"d": m.point.d, "bias": m.point.bias}, float(n / m.result["crossing"]), float(ratio), None)
        for m in run
        for n, ratio in zip(m.result["sizes"], m.result["plain"] / m.result["biased"], strict=True)
    ]
    return gather(curves, *kit.AXES) + gather(ratios, "samples over the predicted crossing", AHEAD)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the ratio of errors around the predicted crossing, and sample costs of the theory up to d = 128."""
    figure, (left, right) = panels(2)
    for i, one in enumerate(s for s in series(measurements) if s.y_name == AHEAD):
        drawn(left, one, one.name, color=COLOURS[i], fmt=MARKERS[i] + "-")
    left.axhline(1.0, **THEORY)
    left.axvline(1.0, linestyle=":", **THEORY)
    left.set(
        xlabel="samples n / predicted crossing", ylabel="error without bias / with bias", xscale="log", yscale="log"
    )
    ticks(left, (0.5, 0.7, 1.0, 1.5))
    told = [m for m in measurements if not m.point.n]
    for i, bias in enumerate(sorted({m.point.bias for m in told})):
        mine = sorted((m.point.d, m.result["exponent"]) for m in told if m.point.bias == bias)
        d, powers = zip(*mine, strict=True)
        right.plot(d, powers, marker=MARKERS[i], color=COLOURS[i], label=f"bias {bias:g}")
        right.axhline(LIMITS.get(bias, np.nan), linestyle=":", **(THEORY | {"color": COLOURS[i]}))
    right.set(xlabel="d", ylabel="exponent of the predicted cost, d to 2d", xscale="log", ylim=(0.8, 2.2))
    ticks(right, [m.point.d for m in told])
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return measured over predicted crossings, and the exponents, in a sentence."""
    names = named(numbers, end=CROSSING)
    powers = [value for name, value in numbers.items() if name.startswith("predicted exponent from d = 64")]
    ratios = np.exp([numbers[name] for name in names])
    error = max(numbers[f"{name} ±"] for name in names)
    return (
        f"The unbiased layer overtakes the biased one at {span(ratios)} times the predicted number of samples"
        f" (each to ± {error:.0%} or better), in {len(names)} settings. By theory alone, the samples that a correlation"
        f" costs grow from d = 64 to 128 with exponent {max(powers):.2f} without bias and {min(powers):.2f} with bias"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels with their factorisations, or two spectra and their costs."""
    return kit.kernels_cost(point.n, point.keys, TEST) if point.n else Cost(4.0 if point.bias else 1.5, 300_000_000)


CLAIM = Claim(
    id="features.sharp-bias",
    version=1,
    statement=(
        "A bias turns the $d^2$ samples that a correlation of degree one needs into d, and loses when samples are many;"
        " both are predicted (ours): between d = 64 and 128 the exponents of the theory are within 0.3 of 2 and 1, and"
        " the unbiased layer overtakes the biased one within a factor of 1.3 of the predicted number of samples (d = 8"
        " and 12, bias 1, 2 and 4)."
    ),
    formula=(
        r"n_{50}\sim d^{2}\;(b=0),\qquad n_{50}\sim d\;(b>0),\qquad"
        r"\mathbb{E}\,\lVert f-\hat f^{(0)}_{n_\times}\rVert^2=\mathbb{E}\,\lVert f-\hat f^{(b)}_{n_\times}\rVert^2"
    ),
    source="ours, docs/features.md; the bias is that of fu2023random, section 3.3",
    settings=Point,
    tiers={
        "quick": Sweep(
            [
                *(Point(d=64, bias=bias) for bias in (0.0, 1.0)),
                Point(d=8, bias=1.0, n=330),
                Point(d=8, bias=2.0, n=190),
                Point(d=12, bias=4.0, n=300),
            ],
            seeds=(1, 1, 24, 24, 12),
        ),
        "full": Sweep(
            [
                *(Point(d=d, bias=bias) for bias in (0.0, 1.0) for d in (8, 16, 32, 64)),
                Point(d=8, bias=1.0, n=330),
                Point(d=12, bias=1.0, n=920),
                Point(d=12, bias=2.0, n=550),
                Point(d=16, bias=2.0, n=1140),
                Point(d=16, bias=4.0, n=640),
            ],
            seeds=(*(1,) * 8, 30, 16, 16, 10, 16),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: test error without a bias over that with one, on the same data, against samples over the predicted crossing;"
        " curves should fall through one where the dotted line stands. Means over draws with standard errors. Right: the"
        " power of d with which predicted sample costs grow between d and 2d; dotted lines are the limits."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("the predicted crossing is {size:g} of what it is", (1.1, 1.3, 1.5, 2.0), 1.5, scaled("crossing")),
        Mutation("the predicted crossing is {size:g} of what it is", (0.9, 0.75, 0.6), 0.6, scaled("crossing")),
        Mutation("exponents are {size:g} of what they are", (1.1, 1.3, 1.5), 1.5, scaled("exponent")),
        Mutation(
            "the bias multiplies the error by {size:g} at every n",
            (1.1, 1.3, 2.0),
            2.0,
            changed(lambda result, size: {"biased": result["biased"] * size} if "biased" in result else {}),
        ),
        *kit.leaks("plain", "biased"),
    ],
    unseen=(
        "A crossing that is off by less than about 15 %; degrees above one, whose crossings lie beyond a thousand samples;"
        " what a bias costs on other targets (features.bias-misaligned)."
    ),
    design=(
        "The factor of 1.3 was set with the derivation. Runs 1000 and 1001 gave crossings known to 2 to 4 % (99 % intervals"
        " of at most 13 %), so that a true prediction is supported with P > .95 and one that is off by 1.5 is refuted"
        " (24 seeds at d = 8; 16 did not always). The error itself is tested because a leak divides out of a ratio."
    ),
)
