"""recovery.efficiency: under noise the error of least squares is the one that the Fisher information allows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import tokens
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, finite_size, share, slope
from attlas.claims.figure import THEORY, distinct, drawn, finished, panels
from attlas.claims.finding import off, span
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, between, decide
from attlas.numerics import stream
from attlas.recovery import Layer, fisher
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import best_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Kind = Literal["full", "biases", "low rank"]

EPS = 0.15  # of the squared errors over the bound, in the limit of many examples
EXPONENT = 0.05  # of the error in n and in the noise, about the bound's own
OFTEN = 0.95  # the share of fits that end at the noise
REACHED = 1.1  # residual over noise, below which a fit has ended there: starts that do not are left
STARTS, STEPS = 8, 100
FRESH = 100  # sequences on which outputs are compared
SHARE = "share of fits that end at the noise"
TOLD = {"parameters": "squared error of the parameters", "outputs": "squared error of the outputs"}


class Point(Settings):
    """Examples, their noise relative to the outputs, and the layer: full matrices, with biases, or heads of low rank."""

    n: PositiveInt
    kind: Kind = "full"
    noise: PositiveFloat = 0.05
    d: int = Field(4, ge=3)
    heads: PositiveInt = 2
    k: int = Field(4, ge=2)

    @property
    def rank(self) -> int | None:
        """Of every head, if the learner is told; there are then as many outputs, so that values have no higher rank."""
        return max(self.d // 4, 1) if self.kind == "low rank" else None

    @property
    def outputs(self) -> int:
        """Numbers in an output."""
        return self.rank or self.d


def model(point: Point, seed: int) -> Layer:
    """Draw a layer whose logits have standard deviation 2 on Gaussian tokens; biases are N(0, 1/4)."""
    d, m, rng = point.d, point.heads, stream(seed, "teacher", "efficiency")
    W = rng.standard_normal((m, d, point.outputs)) / np.sqrt(d)
    if point.rank is not None:
        Q, K = rng.standard_normal((2, m, d, point.rank))
        return Layer(2 / (d * np.sqrt(point.rank)) * Q @ K.transpose(0, 2, 1), W)
    Theta = 2 / d * rng.standard_normal((m, d, d))
    if point.kind == "full":
        return Layer(Theta, W)
    return Layer(Theta, W, key_bias=rng.standard_normal((m, d)) / 2, output_bias=rng.standard_normal(point.outputs) / 2)


def measure(point: Point, seed: int) -> Result:
    """Return the squared errors of parameters and outputs over those of the bound, and whether the fit ended at the noise.

    `parameters` is the mean over (Theta, u) and (W, b). `known` is the share of all numbers that are unknown if the rank is
    known: a bound that ignores the rank counts them all.
    """
    truth = model(point, seed)
    X, fresh = (tokens.gaussian(n, point.k, point.d, stream(seed, name, "efficiency")) for name, n in _sets(point))
    clean = truth(X)
    sigma = point.noise * float(np.sqrt(np.mean(clean**2)))
    Y = clean + sigma * stream(seed, "noise", "efficiency").standard_normal(clean.shape)
    fit, reached = _fitted(point, X, Y, sigma, seed)
    bound = fisher(truth, X, sigma, rank=point.rank)
    found = _in_order(fit.layer, truth)
    squares = [float(np.sum(part**2)) for part in _parts(found, truth)]
    allowed = [float(np.sum(part**2)) for part in (_stack(bound), _values(bound))]
    missed = float(np.mean((found(fresh) - truth(fresh)) ** 2))
    return {
        "parameters": float(np.mean(np.divide(squares, allowed))),
        "outputs": missed / bound.output_error(fresh) ** 2,
        "known": bound.unknowns / len(bound.covariance),
        "bound": float(np.sqrt(sum(allowed))),
        "converged": reached,
    }


def _sets(point: Point) -> tuple[tuple[str, int], ...]:
    return ("data", point.n), ("test", FRESH)


def _fitted(point: Point, X: Array, Y: Array, sigma: float, seed: int) -> tuple[Fit, bool]:
    """Fit from random starts, until one ends at the noise."""
    data = Examples.of(X, Y, bias=point.kind == "biases")
    noise = sigma * np.sqrt(Y.size) / float(np.linalg.norm(Y))
    starts = (
        random_start(point.heads, point.d, stream(seed, "start", "efficiency", str(i)), rank=point.rank, bias=data.bias)
        for i in range(STARTS)
    )
    fit = best_of(data, starts, done=REACHED * noise, rank=point.rank, max_steps=STEPS)
    return fit, bool(fit.residual <= REACHED * noise)


def _in_order(found: Layer, truth: Layer) -> Layer:
    """Return the layer with its heads in the order of the truth's."""
    from itertools import permutations

    def apart(order: Iterable[int]) -> float:
        rows = list(order)
        return float(np.sum((found.Theta[rows] - truth.Theta) ** 2) + np.sum((found.W[rows] - truth.W) ** 2))

    rows = list(min(permutations(range(truth.heads)), key=apart))
    u = None if found.key_bias is None else found.key_bias[rows]
    return replace(found, Theta=found.Theta[rows], W=found.W[rows], key_bias=u)


def _parts(found: Layer, truth: Layer) -> tuple[Array, Array]:
    """Return the errors of (Theta, u) and of (W, b)."""
    return found.stacked() - truth.stacked(), _values(found) - _values(truth)


def _stack(bound: Any) -> Array:
    """Return the standard errors of (Theta, u)."""
    return bound.Theta if bound.key_bias is None else np.concatenate([bound.Theta, bound.key_bias[:, None]], axis=1)


def _values(layer: Any) -> Array:
    """Return all numbers of (W, b), of a layer or of its bound."""
    parts = [layer.W.ravel()] + ([] if layer.output_bias is None else [layer.output_bias])
    return np.concatenate(parts)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The limits of the squared errors over the bound, the exponents in n and in the noise, and how many fits ended there.

    Fits that did not end at the noise are counted, and left out of the errors.
    """
    ended = [m for m in measurements if m.result["converged"]]
    tests = [
        Test("smallest squared error over the bound", Exact(_least(measurements)), above(0.0)),
        Test(SHARE, share([m.result["converged"] for m in measurements]), above(OFTEN)),
    ]
    usual = _by(ended, lambda m: _label(m.point))
    curves = {
        name: [m for m in own if m.point.noise == _usual_noise(own)] for name, own in usual.items() if _sizes(own) > 2
    }
    if not curves:
        raise Undecided("needs three numbers of examples at one noise")
    for name, own in curves.items():
        for key, what in TOLD.items():
            limit = finite_size([(m.point.n, m.result[key]) for m in own])
            tests.append(Test(f"{name}: {what} over the bound", limit, about(1, EPS), 1.0))
    for name, groups, of in (
        ("n", curves.values(), lambda m: m.point.n),
        ("the noise", _by(ended, lambda m: (_label(m.point), m.point.n)).values(), lambda m: m.point.noise),
    ):
        tests.append(
            Test(f"exponent in {name}, less the bound's", _exponent(groups, of), between(-EXPONENT, EXPONENT), 0.0)
        )
    reason = f"{len(ended)} of {len(measurements)} fits ended at the noise"
    return decide(tests, reason, {"exponent of the bound in n": _of_bound(curves.values())})


def _least(measurements: Sequence[Measurement[Point]]) -> float:
    return float(min(m.result[key] for m in measurements for key in TOLD))


def _usual_noise(own: Sequence[Measurement[Point]]) -> float:
    """Return the noise at which there are most numbers of examples."""
    return max(
        sorted({m.point.noise for m in own}),
        key=lambda noise: len({m.point.n for m in own if m.point.noise == noise}),
    )


def _sizes(own: Sequence[Measurement[Point]]) -> int:
    return len({m.point.n for m in own if m.point.noise == _usual_noise(own)})


def _exponent(groups: Iterable[Sequence[Measurement[Point]]], of: Callable[[Measurement[Point]], float]) -> Any:
    """Return the slope of log(error over bound) on log x, with a constant of its own for every group."""
    x: list[float] = []
    y: list[float] = []
    for own in groups:
        places = np.log([of(m) for m in own])
        values = np.log([max(m.result["parameters"], 1e-300) for m in own]) / 2
        if np.ptp(places) > 0:
            x.extend(places - places.mean())
            y.extend(values - values.mean())
    if not x:
        raise Undecided("needs several numbers of examples, and several levels of noise at one of them")
    return slope(x, y)


def _of_bound(curves: Iterable[Sequence[Measurement[Point]]]) -> float:
    """Return by which power of n the bound falls."""
    slopes = [slope(np.log([m.point.n for m in own]), np.log([m.result["bound"] for m in own])).value for own in curves]
    return float(np.mean(slopes))


def _by(measurements: Iterable[Measurement[Point]], key: Callable[[Any], Any]) -> dict[Any, list[Measurement[Point]]]:
    groups: dict[Any, list[Measurement[Point]]] = {}
    for m in measurements:
        groups.setdefault(key(m), []).append(m)
    return groups


def _label(point: Point) -> str:
    return f"{point.kind} d={point.d} m={point.heads}"


def finding(numbers: Numbers) -> str:
    """Return what the errors tend to."""
    names = [name for name in numbers if name.endswith(tuple(f"{what} over the bound" for what in TOLD.values()))]
    if not names:
        raise LookupError("no limits")
    wide = off(max(numbers[f"{name} ±"] for name in names))
    power = numbers["exponent of the bound in n"] + numbers["exponent in n, less the bound's"]
    near = off(numbers["exponent in n, less the bound's ±"])
    return (
        f"The squared errors of least squares tend to {span(numbers[name] for name in names)} ({wide}) times the least"
        " that noise"
        f" allows, and the error of the parameters falls as n to the power {power:.2f} {near}"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return both squared errors over the bound against n."""
    found: list[Series] = []
    for key, what in TOLD.items():
        rows = [
            (
                m.point.kind,
                {"d": m.point.d, "m": m.point.heads, "noise": m.point.noise},
                m.point.n,
                m.result[key],
                1.0,
            )
            for m in measurements
            if m.result["converged"]
        ]
        found += gather(rows, "examples n", f"{what} over the bound")
    return found


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw both ratios against n."""
    figure, axes = panels(2)
    for axis, what in zip(axes, TOLD.values(), strict=True):
        mine = [one for one in series(measurements) if one.y_name == f"{what} over the bound"]
        axis.axhspan(1 - EPS, 1 + EPS, color="0.9")
        axis.axhline(1, **THEORY)
        for i, one in enumerate(mine):
            name = "{}, d = {d:g}, m = {m:g}, noise {noise:g}".format(one.name, **one.settings)
            aside = replace(one, theory=None)
            drawn(axis, aside, name, **distinct(i))
        axis.set(xlabel="examples n", ylabel=f"{what} / bound", xscale="log")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect fifteen steps of variable projection."""
    unknowns = point.heads * point.d**2
    return Cost(0.03 + 15 * (1e-3 + 1e-8 * point.n * point.k * unknowns**1.5), 300_000_000)


def _power(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return errors that fall as another power of n."""
    return _times(measurements, lambda m: (m.point.n / 100) ** (2 * size))


def _noise(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return errors that grow as another power of the noise."""
    return _times(measurements, lambda m: (m.point.noise / 0.05) ** (2 * size))


def _ignored(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return errors over a bound that counts a share `size` of the numbers that the rank leaves no freedom."""
    return _times(measurements, lambda m: m.result["known"] ** size)


def _times(
    measurements: Sequence[Measurement[Point]], factor: Callable[[Measurement[Point]], float]
) -> list[Measurement[Point]]:
    return [replace(m, result=m.result | {key: m.result[key] * factor(m) for key in TOLD}) for m in measurements]


def _squared(result: Mapping[str, Any], size: float) -> dict[str, Any]:
    """Return squared errors of errors that are `size` times as large."""
    return {key: result[key] * size**2 for key in TOLD}


def _over(result: Mapping[str, Any], size: float) -> dict[str, Any]:
    """Return squared errors over a bound that is `size` of what it is."""
    return {key: result[key] / size for key in TOLD}


MUTATIONS = (
    Mutation("the bound on squared errors is {size:g} of what it is", (0.95, 0.7, 0.5), 0.7, change=changed(_over)),
    Mutation("the bound on squared errors is {size:g} times what it is", (1.05, 1.35, 2), 1.35, change=changed(_over)),
    Mutation("a learner whose errors are {size:g} times as large", (1.03, 1.2, 1.3), 1.2, change=changed(_squared)),
    Mutation(
        "the truth leaks: errors are {size:g} of what they are", (0.9, 0.85, 0.5, 0.0), 0.85, change=changed(_squared)
    ),
    Mutation("errors fall as n to the power {size:g} - 1/2", (0.03, 0.1, 0.2), 0.1, change=_power),
    Mutation("errors grow as the noise to the power 1 + {size:g}", (0.03, 0.1, 0.2), 0.1, change=_noise),
    Mutation("the rank is ignored in the count of unknowns, to the power {size:g}", (0.2, 1.0), 1.0, change=_ignored),
    Mutation(
        "{size:g} of the fits end elsewhere",
        (0.02, 0.2, 0.5),
        0.2,
        change=lambda measurements, size: [
            replace(m, result=m.result | {"converged": int(i * size) == int((i - 1) * size)})
            for i, m in enumerate(measurements)
        ],
    ),
)

_KINDS: tuple[Kind, ...] = ("full", "biases", "low rank")
_NOISES = (0.005, 0.2)


def _curve(kind: Kind, sizes: Sequence[int], **settings: Any) -> list[Point]:
    return [Point(n=n, kind=kind, d=8 if kind == "low rank" else 5, **settings) for n in sizes]


CLAIM = Claim(
    id="recovery.efficiency",
    version=1,
    statement=(
        "From noisy examples least squares attains the Cramér-Rao bound: as n grows, the squared errors of the parameters"
        " and of the outputs on fresh tokens tend to the values that the Fisher information predicts, to 15 % (7 % of the"
        " errors), with full matrices, with biases and with heads of known rank; the error of the parameters has the bound's"
        " own exponents in n and in the noise, to 0.05, for noise of 0.5 to 20 % of the outputs. The fits start at random,"
        " and more than 95 % of them end at the noise."
    ),
    formula=(
        r"\frac{\operatorname{E}\lVert\hat\theta-\theta\rVert^2}{\sigma^2\operatorname{tr}(J^\top J)^+}\to1,"
        r"\qquad\frac{\operatorname{E}\lVert F_{\hat\theta}-F\rVert^2}"
        r"{\sigma^2\operatorname{tr}J_*(J^\top J)^+J_*^\top}\to1"
    ),
    source="Cramer and Rao's bound; that this learner attains it for attention is ours",
    settings=Point,
    tiers={
        "quick": Sweep(
            [
                *_curve("full", (40, 60, 120, 240)),
                *_curve("biases", (40, 60, 120, 240)),
                *_curve("low rank", (48, 72, 144, 288)),
                *(Point(n=60, d=5, noise=noise) for noise in _NOISES),
            ],
            seeds=[64] * 12 + [30] * 2,
        ),
        "full": Sweep(
            [
                *_curve("full", (40, 80, 160, 320, 640)),
                *_curve("biases", (40, 80, 160, 320, 640)),
                *_curve("low rank", (48, 96, 192, 384, 768)),
                *(Point(n=n, d=5, heads=3) for n in (60, 120, 240, 480)),
                *(Point(n=80, d=5, kind=kind, noise=noise) for kind in _KINDS[:2] for noise in _NOISES),
                *(point for noise in _NOISES for point in _curve("low rank", (96,), noise=noise)),
            ],
            seeds=[80] * 15 + [60] * 4 + [40] * 6,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Squared error of the parameters (left) and of the outputs on fresh tokens (right) over what the Fisher information"
        " predicts, against the number of examples: means over layers with standard errors. The line is the bound, the band"
        " the tolerance of the claim on the limit of many examples."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,  # a fit that does not end at the noise counts against the learner
    mutations=MUTATIONS,
    unseen=(
        "Single parameters far from their own bound, noise that is not Gaussian or larger than a fifth of the outputs, large"
        " layers, layers with nearly equal heads or with logits so large that attention is zero or one, and learners that"
        " hold examples out, as `learn` does with a fifth: their bound is that of the others."
    ),
    design=(
        "In a pilot (run 1000) all 828 fits ended at the noise; their squared errors over the bound scattered by 13 to 24 %"
        " from layer to layer, so that 64 layers at each of four sizes know the six limits to 5 to 8 % (99 %). With a"
        " tolerance of 12 %, a true claim would be supported in 64 of 100 runs, with 15 % in 94; bounds wrong by a factor"
        " 1.35 or 0.7 are refuted, and so are errors that are 15 % smaller."
    ),
)
