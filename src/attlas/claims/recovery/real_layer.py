"""recovery.real-layer: layers as models have them, with biases, a causal mask and low rank, are recovered from examples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import tokens
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, share
from attlas.claims.figure import THEORY, distinct, drawn, finished, panels, ticks
from attlas.claims.finding import interval
from attlas.claims.lettering import powers
from attlas.claims.mutation import Mutation, changed
from attlas.claims.recovery.kit.figures import magnitude
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, decide
from attlas.numerics import stream
from attlas.recovery import Layer, parameter_error
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import best_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUCCESS = 1e-6  # relative error of the parameters
EACH, OVERALL = 0.8, 0.9  # the shares of layers that must be found: in every setting, and in all together
HIDDEN = 0.2  # the share that may seem found where the learner is not told of the biases or of the mask
STARTS, STEPS = 4, 60
ALL = "share found in all settings"


class Point(Settings):
    """A layer of torch's shape and start, `scale` times its logits; and whether the learner is told its options."""

    d: int = Field(6, ge=2)
    heads: PositiveInt = 2
    k: int = Field(4, ge=2)
    n: int = Field(120, ge=1)
    scale: PositiveFloat = 1.0
    bias: bool = False
    causal: bool = False
    low_rank: bool = False
    told: bool = True


def model(point: Point, seed: int) -> Layer:
    """Draw a layer as `torch.nn.MultiheadAttention` starts: Xavier-uniform projections, an output of +-1/sqrt(d).

    Biases, which torch starts at zero, are N(0, 1/4), as training might leave them.
    """
    d, rng = point.d, stream(seed, "teacher", "real layer")
    bound = np.sqrt(6 / (4 * d))  # of a fused (3 d, d) matrix
    Wq, Wk, Wv = rng.uniform(-bound, bound, (3, d, d))
    Wo = rng.uniform(-1, 1, (d, d)) / np.sqrt(d)
    biases = rng.standard_normal((4, d)) / 2 if point.bias else (None,) * 4
    return Layer.from_weights(point.scale * Wq, Wk, Wv, Wo, *biases, heads=point.heads, causal=point.causal)


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of the parameters that variable projection finds, and its residual."""
    truth = model(point, seed)
    X = tokens.gaussian(point.n, point.k, point.d, stream(seed, "data", "real layer"))
    fit = _found(point, X, truth(X), seed)
    return {"error": parameter_error(fit, truth), "residual": fit.residual, "converged": fit.converged}


def _found(point: Point, X: Any, Y: Any, seed: int) -> Fit:
    data = Examples.of(X, Y, bias=point.bias and point.told, causal=point.causal and point.told)
    rank = point.d // point.heads if point.low_rank else None
    starts = (
        random_start(point.heads, point.d, stream(seed, "start", str(number)), rank=rank, bias=data.bias)
        for number in range(STARTS)
    )
    return best_of(data, starts, rank=rank, max_steps=STEPS)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Nearly all layers are found in every setting, hardly any where the learner is not told what the layer has."""
    points = list(dict.fromkeys(m.point for m in measurements))
    hits = {p: [m.result["error"] < SUCCESS for m in measurements if m.point == p] for p in points}
    told = [p for p in points if p.told]
    if not told or len(told) == len(points):
        raise Undecided("needs layers whose options are told to the learner, and some whose options are not")
    tests = [Test("smallest error", Exact(float(min(m.result["error"] for m in measurements))), above(0.0))]
    for point in points:
        region = above(EACH) if point.told else below(HIDDEN)
        tests.append(Test(f"share found at {label(point)}", share(hits[point]), region))
    pooled = [hit for p in told for hit in hits[p]]
    tests.append(Test(ALL, share(pooled), above(OVERALL)))
    errors = [m.result["error"] for m in measurements if m.point.told]
    numbers = {"median error": float(np.median(errors)), "settings": float(len(told))}
    return decide(tests, f"{sum(pooled)} of {len(pooled)} layers are found to {SUCCESS:g}", numbers)


def label(point: Point) -> str:
    """Return the setting in words and letters."""
    options = [
        name for name, own in (("biases", point.bias), ("causal", point.causal), ("low rank", point.low_rank)) if own
    ]
    own = " ".join([*options, *(["untold"] if not point.told else [])]) or "plain"
    return f"{own} d={point.d} H={point.heads} n={point.n} s={point.scale:g}"


def finding(numbers: Numbers) -> str:
    """Return how many."""
    trials = numbers[f"{ALL}, trials"]
    return (
        f"{numbers[ALL] * trials:.0f} of {trials:.0f} layers of PyTorch's shape, {interval(numbers, ALL, '.0%')}, are"
        f" recovered to {SUCCESS:g} from random examples, in {numbers['settings']:.0f} settings of biases, mask, rank and"
        " scale; the median relative error of"
        f" their parameters is {numbers['median error']:.0e}"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the errors against the scale of the logits, as powers of ten."""
    rows = [
        (_options(m.point), {"d": m.point.d, "heads": m.point.heads}, m.point.scale, magnitude(m.result["error"]), None)
        for m in measurements
    ]
    return gather(rows, "scale s", "log10 of the relative error of the parameters")


def _options(point: Point) -> str:
    return label(point).split(" d=", maxsplit=1)[0]


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the mean error of every setting."""
    figure, (axis,) = panels(1, width=7)
    found = series(measurements)
    names = list(dict.fromkeys(one.name for one in found))
    for one in found:
        place = names.index(one.name)
        aside = replace(one, x=tuple(x * (1 + 0.03 * (place - len(names) / 2)) for x in one.x))
        drawn(axis, aside, one.name.replace("untold", "(not told)"), linestyle="none", **distinct(place))
    axis.axhline(magnitude(SUCCESS), linestyle=":", **THEORY)
    axis.set(xlabel="scale s of the logits", ylabel="error of the parameters", xscale="log")
    ticks(axis, {m.point.scale for m in measurements})
    powers(axis.yaxis)
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect ten steps; all of them where the learner is not told what the layer has."""
    unknowns = point.heads * point.d**2
    step = 1e-3 + 1.2e-7 * unknowns**2
    return Cost((15 if point.told else STARTS * STEPS) * step, 200_000_000)


def _missed(measurements: Any, size: float) -> Any:
    """Return the measurements with a share `size` of the layers lost, evenly over the settings."""
    found, met = [], 0
    for m in measurements:
        met += m.point.told
        lost = m.point.told and int(met * size) > int((met - 1) * size)
        found.append(replace(m, result=m.result | {"error": 0.3}) if lost else m)
    return found


def _lost(measurements: Any, size: float) -> Any:
    """Return the measurements with a share `size` of the layers with biases lost: the query bias was forgotten."""
    found, met = [], 0
    for m in measurements:
        own = m.point.told and m.point.bias and m.point.causal
        met += own
        found.append(
            replace(m, result=m.result | {"error": 0.1}) if own and int(met * size) > int((met - 1) * size) else m
        )
    return found


def _leaked(measurements: Any, size: float) -> Any:
    """Return the measurements with a share `size` of the layers found by a learner that is not told their options."""
    found, met = [], 0
    for m in measurements:
        met += not m.point.told
        hit = not m.point.told and int(met * size) > int((met - 1) * size)
        found.append(replace(m, result=m.result | {"error": 1e-12}) if hit else m)
    return found


def _permuted(point: Point, seed: int, _: float) -> Result:
    """Return the error where every output belongs to another example."""
    truth = model(point, seed)
    X = tokens.gaussian(point.n, point.k, point.d, stream(seed, "data", "real layer"))
    Y = truth(X)[stream(seed, "permutation").permutation(len(X))]
    data = Examples.of(X, Y, bias=point.bias and point.told, causal=point.causal and point.told)
    start = random_start(point.heads, point.d, stream(seed, "start", "0"), bias=data.bias)
    fit = best_of(data, [start], max_steps=10)
    return {"error": parameter_error(fit, truth), "residual": fit.residual, "converged": True}


MUTATIONS = (
    Mutation("{size:g} of the layers are missed", (0.05, 0.2, 0.4), 0.4, change=_missed),
    Mutation("{size:g} of the causal layers with biases are missed", (0.2, 0.5, 1.0), 0.5, change=_lost),
    Mutation(
        "every error is {size:g} at least",
        (1e-9, 2e-6),
        2e-6,
        change=changed(lambda r, size: {"error": max(r["error"], size)}),
    ),
    Mutation("{size:g} of the layers are found without being told their options", (0.2, 0.6, 1.0), 0.6, change=_leaked),
    Mutation("the truth leaks: errors are {size:g}", (0.0,), 0.0, change=changed(lambda _, size: {"error": size})),
    Mutation("outputs belong to other examples", (1.0,), 1.0, measure=_permuted),
)

_SETTINGS = [
    Point(bias=bias, causal=causal, low_rank=low, scale=scale)
    for scale in (1.0, 4.0)
    for bias in (False, True)
    for causal in (False, True)
    for low in (False, True)
]
_UNTOLD = [Point(bias=True, told=False, scale=4.0), Point(causal=True, told=False, scale=4.0)]


CLAIM = Claim(
    id="recovery.real-layer",
    version=1,
    statement=(
        r"Layers of PyTorch's shape (Xavier projections, $d_{\text{head}} = d/H$, logits as they start and four times"
        " as large) are recovered from random examples to $10^{-6}$, with or without biases, a causal mask, and the"
        " rank of the heads told: more than 80 % of them in every setting and 90 % of all, by variable projection from"
        " four random starts. A learner that is not told of the biases or of the mask finds fewer than 20 %."
    ),
    formula=(
        r"F(X)_r=b+\sum_i\operatorname{softmax}_{c\le r}\bigl(x_r^\top\Theta_i x_c+u_i^\top x_c\bigr)\,XW_i,"
        r"\qquad\Theta_i=W_{q,i}^\top W_{k,i}/\sqrt{d_{\mathrm{head}}}"
    ),
    source="chen2024provably for layers without options; the learner is ours",
    settings=Point,
    tiers={
        "quick": Sweep([*_SETTINGS, *_UNTOLD], seeds=[36] * 16 + [24] * 2),
        "full": Sweep(
            [
                *_SETTINGS,
                *(
                    Point(d=d, heads=heads, n=300, bias=bias, causal=bias, low_rank=True, scale=scale)
                    for d, heads in ((8, 4), (12, 3), (16, 4))
                    for bias in (False, True)
                    for scale in (1.0, 4.0)
                ),
                *_UNTOLD,
            ],
            seeds=[60] * 16 + [36] * 12 + [60] * 2,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Relative error of the recovered parameters, on a logarithmic scale, against the scale of the logits: means with"
        " standard errors, for every combination of options. Layers below the dotted line are recovered; a learner that is"
        " not told of the biases or of the mask should recover none."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,  # a layer that is not found within the budget is the measurement
    mutations=MUTATIONS,
    unseen=(
        "A failure of fewer than one layer in ten, layers that training has made (their heads may be closer to each other"
        " than random ones), dimensions beyond 16, noise, and tokens that are not Gaussian."
    ),
    design=(
        "In a pilot all 192 layers of d = 6 were found, 12 in each setting, to 3e-12 at worst, and none of 24 where the"
        " learner was not told; so were 18 of 18 of d = 8 to 16. Of 36 layers in a setting one may be missed: the 99 %"
        " interval of 35 of 36 begins at 0.81. If one layer in 300 fails, all 16 settings allow it in nine runs of ten."
    ),
)
