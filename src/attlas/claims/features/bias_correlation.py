"""features.bias-correlation: a query-key bias changes the samples that a correlation takes as theory predicts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean, slope
from attlas.claims.features import kit
from attlas.claims.features.kit import AXES, draw_curves, theory_points
from attlas.claims.figure import THEORY, drawn, finished, panels, ticks
from attlas.claims.finding import ending, factor, interval, named
from attlas.claims.learners import learner
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TEST = 600  # test sequences
LEVELS = {0.5: "half", 0.2: "a fifth", 0.1: "a tenth"}  # of the variance
LEARNERS = {"plain": "without bias", "biased": "with bias"}
EPS, GAIN_EPS = 0.15, 0.2  # of the cost without bias, over all d, and of its ratio to that with bias
EXPONENT = 0.35  # of an exponent at these d, times the degree
SMALL = 8  # the d at which the cost at a tenth is judged: the loss fades as d grows
FACTOR = 1.2  # gained at a half and the largest d, lost at a tenth and d = 8, at least
HALVING, TENTH = "samples that halve the error", "samples to a tenth of the variance"


class Point(Settings):
    """Degree of the correlation, bias strength, tokens and the largest sample. Heads are infinitely many."""

    power: PositiveInt = 1
    bias: PositiveFloat = 1.0
    d: int = Field(ge=5)
    keys: PositiveInt = 16
    n: int = Field(640, ge=32)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, 1) without and with bias, on the same data, and what theory predicts.

    ``costs`` are the predicted sample costs (without and with bias, levels).
    """
    names = _targets(point)
    data = kit.with_control(features.TargetData(names, point.d, point.keys, point.n, TEST, seed), seed)
    sizes = features.sample_sizes(8, point.n, 3)
    plain, biased = (data.attention(sizes, bias) for bias in (0.0, point.bias))
    theories = [kit.theory(point.d, point.keys, bias) for bias in (0.0, point.bias)]
    curves = [kit.predicted_curves(own, names, tuple(sizes)) for own in theories]
    return {
        "plain": plain[:, :1],
        "biased": biased[:, :1],
        "permuted": float(min(plain[-1, 1], biased[-1, 1])),
        "sizes": np.array(sizes, dtype=float),
        "plain_theory": curves[0],
        "biased_theory": curves[1],
        "costs": np.array([kit.predicted_costs(own, names, tuple(LEVELS))[:, 0] for own in theories]),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge costs, exponents and gains against the predicted ones at three levels; degrees above one reach a half only."""
    kit.require_finite(measurements, *LEARNERS)
    tests = kit.guards(measurements, tuple(LEARNERS), "plain", _targets)
    numbers: dict[str, float] = {}
    everything = []
    for group in sorted({(m.point.power, m.point.bias, m.point.keys) for m in measurements}):
        mine = [m for m in measurements if (m.point.power, m.point.bias, m.point.keys) == group]
        last = _levels(group[0])[-1]
        worst = [max(m.result[key][-1, 0] for key in LEARNERS) / last for m in mine]
        tests.append(Test(f"{_label(group)}: last error over {LEVELS[last]} of the variance", mean(worst), below(1.0)))
        for level in _levels(group[0]):
            costs, predicted = (_costs(mine, level, which) for which in ("measured", "predicted"))
            everything += [*costs.values()]
            if np.isfinite([*costs.values()]).all():
                label = f"{_label(group)}, {LEVELS[level]}"
                tests += _against_theory(label, mine, costs, predicted) + _signs(label, level, mine, costs)
                numbers |= _reported(label, mine, costs, predicted)
    found = kit.censored(tests, np.exp(np.concatenate(everything)))
    return found or decide(tests, "", numbers)


def _against_theory(
    label: str, mine: Sequence[Measurement[Point]], costs: dict[str, Array], predicted: dict[str, Array]
) -> list[Test]:
    """Return the tests of the cost without bias and of what the bias gains: size and exponent of each.

    The data are shared, so the ratio of both costs scatters less than the cost with bias, and says the same.
    """
    d = np.log([m.point.d for m in mine])
    plain = costs["plain"] - predicted["plain"]
    gain = plain - costs["biased"] + predicted["biased"]
    tests = []
    for name, eps, power, off in (
        ("cost without bias", EPS, "exponent without bias", plain),
        ("gain", GAIN_EPS, "drop of the exponent", gain),
    ):
        region = between(-np.log(1 + eps), np.log(1 + eps))
        tests.append(Test(f"{label}: log {name} over prediction", mean(off), region, 0.0))
        if np.ptp(d) > 0:
            widest = EXPONENT * mine[0].point.power
            tests.append(Test(f"{label}: {power} - prediction", slope(d, off), between(-widest, widest), 0.0))
    return tests


def _signs(label: str, level: float, mine: Sequence[Measurement[Point]], costs: dict[str, Array]) -> list[Test]:
    """Return the tests of what the bias does: samples saved at a half, lost at a tenth."""
    d, gain = np.array([m.point.d for m in mine]), costs["plain"] - costs["biased"]
    if level == 0.5:
        return [Test(f"{label}: log gain at the largest d", mean(gain[d == d.max()]), above(np.log(FACTOR)))]
    if level == 0.1 and SMALL in d:
        return [Test(f"{label}: log loss at d = {SMALL}", mean(-gain[d == SMALL]), above(np.log(FACTOR)))]
    return []


def _reported(
    label: str, mine: Sequence[Measurement[Point]], costs: dict[str, Array], predicted: dict[str, Array]
) -> dict[str, float]:
    d = np.array([m.point.d for m in mine])
    numbers = {}  # type: ignore[var-annotated]
    for key, name in LEARNERS.items() if np.ptp(d) > 0 else ():
        numbers |= slope(np.log(d), costs[key]).numbers(f"{label}: exponent {name}")
        numbers[f"{label}: predicted exponent {name}"] = slope(np.log(d), predicted[key]).value
    off = mean(costs["biased"] - predicted["biased"])
    numbers |= off.numbers(f"{label}: log cost with bias over prediction")
    for which, own in (("gain", costs), ("predicted gain", predicted)):
        gain = own["plain"] - own["biased"]
        numbers |= {
            f"{label}: {which} at d = {size}": float(np.exp(gain[d == size].mean())) for size in (d.min(), d.max())
        }
    return numbers


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves, and the sample costs against d, all with their predictions."""
    learners = {"plain": "kernel", "biased": "biased"}
    curves = [row for m in measurements for row in theory_points(m, learners, _targets(m.point))]
    found = gather(curves, *AXES)
    for level, y_name in ((0.5, HALVING), (0.1, TENTH)):
        rows = [
            (name, {"target": f"correlation {m.point.power}", "keys": m.point.keys, "bias": bias}, m.point.d, cost, own)
            for m in measurements
            for row, (key, name, bias) in enumerate((("plain", "kernel", 0.0), ("biased", "biased", m.point.bias)))
            if (cost := kit.cost_of(m.result["sizes"], m.result[key][:, 0], level)) > 0
            for own in (float(m.result["costs"][row, list(LEVELS).index(level)]),)
        ]
        found += gather(rows, "d", y_name)
    return found


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the samples to a half and to a tenth against d, and the curves at the largest d, theory as lines."""
    figure, axes = panels(3, width=4)
    first = measurements[0].point
    found = series([m for m in measurements if (m.point.power, m.point.bias) == (first.power, first.bias)])
    for axis, y_name in zip(axes, (HALVING, TENTH), strict=False):
        costs = [s for s in found if s.y_name == y_name]
        for one in costs:
            drawn(axis, one, fmt=learner(one.name).marker, linestyle="none")
        axis.set(xlabel="token dimension d", ylabel=y_name, xscale="log", yscale="log")
        ticks(axis, [d for one in costs for d in one.x])
    curves = [s for s in found if s.x_name == "n"]
    largest = max(s.settings["d"] for s in curves)
    draw_curves(axes[2], [s for s in curves if s.settings["d"] == largest])
    axes[2].axhline(0.5, linestyle=":", **THEORY)
    axes[2].set(ylabel=f"test error / variance, d = {largest}")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return both exponents beside the predicted ones, and where the bias loses, in a sentence."""
    words = []
    for name in LEARNERS.values():
        found = interval(numbers, named(numbers, end=f"half: exponent {name}")[0])
        words.append(f"{found} {name} ({ending(numbers, f'half: predicted exponent {name}')[0]:.2f})")
    saved = named(numbers, end="half: log gain over prediction")[0]
    loss = named(numbers, end=f"a tenth: log loss at d = {SMALL}")[0]
    return (
        "A bias in the query-key matrix saves and costs what theory predicts: the samples that halve the error of a"
        f" correlation grow as d to the power {words[0]} and {words[1]}, predicted exponents in brackets, and the factor"
        f" saved is {np.exp(numbers[saved]):.2f} of the predicted one (± {numbers[f'{saved} ±']:.0%}). At small errors the"
        f" bias does not pay: down to a tenth of the variance it takes {factor(numbers, loss, '.1f')} times as many samples"
        f" at d = {SMALL}"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels and their factorisations."""
    return kit.kernels_cost(point.n, point.keys, TEST)


def _targets(point: Point) -> tuple[str, ...]:
    return (f"correlation {point.power}",)


def _levels(power: int) -> list[float]:
    return list(LEVELS) if power == 1 else [0.5]


def _label(group: Sequence[Any]) -> str:
    return "degree {} bias {:g} keys {}".format(*group)


def _costs(mine: Sequence[Measurement[Point]], level: float, which: str) -> dict[str, Array]:
    """Return the log sample costs, one of each run, without and with bias: measured or predicted."""
    found = {key: np.zeros(len(mine)) for key in LEARNERS}
    for row, key in enumerate(LEARNERS):
        if which == "predicted":
            found[key] = np.log([m.result["costs"][row, list(LEVELS).index(level)] for m in mine])
            continue
        for d in {m.point.d for m in mine}:
            own = [k for k, m in enumerate(mine) if m.point.d == d]
            curves = np.array([mine[k].result[key][:, 0] for k in own])
            found[key][own] = kit.run_costs(mine[own[0]].result["sizes"], curves, level)
    return found


def _steeper(*keys: str) -> Callable[[Sequence[Measurement[Point]], float], list[Measurement[Point]]]:
    """Return a change to costs that grow with an exponent larger by a size, and are right at d = 8."""

    def change(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
        return [
            replace(
                m,
                result=m.result
                | {key: kit.delayed(m.result["sizes"], m.result[key], (m.point.d / SMALL) ** size) for key in keys},
            )
            for m in measurements
        ]

    return change


def _predictions(result: Result, size: float) -> Result:
    """Return the predicted costs times a factor."""
    return {"costs": size * result["costs"]}


def _without_effect(result: Result, _: float) -> Result:
    return {"biased": result["plain"]}


CLAIM = Claim(
    id="features.bias-correlation",
    version=5,
    statement=(
        "A query-key bias along a correlation (Fu et al. 2023) changes the samples it takes as the theory of the test error"
        " predicts without a fit: down to a half, a fifth and a tenth of the variance (degree two: a half), the cost without"
        " bias is predicted to 15 % and its ratio to that with bias to 20 %, over all d; the exponents in d of both, per"
        " degree, to 0.35 of those predicted at these d. At a half the bias saves samples (over 1.2 times, at the largest"
        " d), at a tenth and d = 8 it costs them (over 1.2 times)."
    ),
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle x_0,x_i\rangle^r,\quad\operatorname{E}[s_{mi}]=b\,\langle x_0,x_i\rangle:"
        r"\qquad n_{\varepsilon}(d,b)=n_{\varepsilon}^{\text{theory}}(d,b),\quad\varepsilon=\tfrac12,\tfrac15,\tfrac1{10}"
    ),
    source="fu2023random, section 3.3; the theory is ours (docs/features.md)",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, keys=3, n=n) for d, n in ((6, 370), (8, 590), (14, 1120))], seeds=(20, 8, 7)),
        "full": Sweep(
            [Point(d=d, keys=8, n=n) for d, n in ((6, 400), (8, 640), (12, 1100), (16, 1400))]
            + [Point(power=2, d=d, keys=8, n=n) for d, n in ((5, 800), (6, 1400), (7, 2300))],
            seeds=(20, 12, 10, 8, 14, 10, 8),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Samples that bring the test error to half (left) and to a tenth (middle) of the variance, against d, without and"
        " with a query-key bias, and learning curves at the largest d (right; a constant predictor scores 1; the dotted"
        " line is one half). Points are means over draws with standard errors, lines the theory."
    ),
    finding=finding,
    series=series,
    mutations=(
        Mutation("theory predicts {size:g} of the samples", (0.95, 0.8, 0.5), 0.8, changed(_predictions)),
        Mutation("theory predicts {size:g} times the samples", (1.05, 1.25, 2.0), 1.25, changed(_predictions)),
        Mutation("the exponent with bias is larger by {size:g}", (0.2, 0.6, 1.0), 0.6, _steeper("biased")),
        Mutation("both exponents are larger by {size:g}", (0.2, 0.6, 1.0), 0.6, _steeper("plain", "biased")),
        Mutation(
            "a bias that costs {size:g} times as many samples",
            (1.05, 1.4, 2.0),
            1.4,
            changed(lambda r, size: {"biased": kit.delayed(r["sizes"], r["biased"], size)}),
        ),
        Mutation("a bias without effect", (1.0,), 1.0, changed(_without_effect)),
        Mutation(
            "a learner that predicts the mean",
            (1.0,),
            1.0,
            changed(lambda r, size: {key: np.full_like(r[key], size) for key in LEARNERS}),
        ),
        *kit.leaks("plain", "biased"),
    ),
    unseen=(
        "an exponent off by 0.2, or a gain off by a tenth; the theory with bias is itself off by about 6 % at a fifth of"
        " the variance; and what happens beyond the largest d"
    ),
    design=(
        "A pilot (runs 1000 and 1001, 32 seeds each) scatters by 0.06 to 0.10 in the log cost of a run without bias and by"
        " 0.08 to 0.13 in the log gain; exponents have errors of 0.03 to 0.07. The gain at a fifth is 3 to 8 % above the"
        " prediction, which asks for 20 %. Costs are those of the mean curve over seeds, which is what theory predicts:"
        " costs of single runs are lower by 3 % on average. With two more seeds at d = 8, where the loss at a tenth was"
        " nearest to undecided, and one at d = 14, more than 90 % of resampled runs support the claim if theory is true."
    ),
)
