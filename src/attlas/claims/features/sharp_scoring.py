"""features.sharp-scoring: sigmoid scores learn averages and correlations from fewer samples than relu, queries from more."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean, resampled
from attlas.claims.features import kit
from attlas.claims.features.kit import AXES
from attlas.claims.figure import COLOURS, MARKERS, drawn, finished, panels, ticks
from attlas.claims.finding import ending, named, off
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Region, Test, Verdict, above, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TEST = 400  # test sequences
SCORINGS = ("relu", "sigmoid")
RIDGES = (1e-6, 1e-4, 1e-2, 0.1, 1.0)  # absolute; the theory chooses among them
TARGETS = ("correlation 1", "weighted 1", "keys 2", "query 2")
FEWER = {"keys 2": True, "correlation 1": True, "weighted 1": True, "query 2": False}  # whether sigmoid needs fewer
NOISES = {"": 0.0, "_noisy": 0.1}  # variance of label noise over that of the target
LABELS = {"": "", "_noisy": ", noisy"}
FIRST = 3  # n >= 3 d^2: where errors are compared
LEVEL = 0.1  # of the variance: where samples are compared
COST, SIZE, TILT = 1.15, 1.2, 1.15  # factors: in samples, in ratios of errors, in errors
CLEAR = 0.2  # log ratios whose sign is judged: larger than this in theory


class Point(Settings):
    """Tokens and the largest sample. Heads are infinitely many."""

    d: int = Field(8, ge=3)
    keys: PositiveInt = 8
    n: int = Field(1000, ge=64)

    @property
    def sizes(self) -> list[int]:
        """The samples of the learning curves; the first is for the guard against leaks."""
        return sorted({self.d, *features.sample_sizes(max(self.n // 10, self.d + 1), self.n, 3)})


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets) of both scorings on the same data, without and with noise; and theory."""
    result: Result = {"sizes": np.array(point.sizes, dtype=float)}
    converged, permuted = True, []
    for scoring in SCORINGS:
        own = kit.theory(point.d, point.keys, scoring=scoring)
        predicted, every = _theory(point, scoring)
        found, control = kit.controlled_errors(own, TARGETS, point.sizes, RIDGES, "infinite", seed, TEST)
        for end, noise in NOISES.items():
            chosen = _noisy(predicted, noise).argmin(0)[None]
            for name, errors in ((scoring, found), (f"{scoring}_theory", predicted)):
                result[name + end] = np.take_along_axis(_noisy(errors, noise), chosen, axis=0)[0]
        permuted.append(control[:, -1].min())
        converged = converged and every
    return result | {"permuted": float(min(permuted)), "converged": converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge ratios of sample costs, and of errors at every n from 3 d^2 on: their signs, and their sizes against theory."""
    points = list(dict.fromkeys(m.point for m in measurements))
    names = kit.labels(points)
    tests = kit.guards(measurements, SCORINGS, "relu", lambda _: TARGETS)
    numbers: dict[str, float] = {}
    costs = []
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        for scoring in SCORINGS:
            tests.append(_tilt(f"{names[point]}: {scoring}", mine, scoring, _first(point)))
        for t, target in enumerate(TARGETS):
            for end in NOISES:
                label = f"{names[point]}: {target}{LABELS[end]}"
                tests += _errors_tests(label, mine, t, end, _first(point))
                numbers |= {
                    f"{label}: last error of {scoring}": float(np.mean([r[scoring + end][-1, t] for r in mine]))
                    for scoring in SCORINGS
                }
            label = f"{names[point]}: {target}"
            found = [[kit.cost_of(r["sizes"], r[scoring][:, t], LEVEL) for scoring in SCORINGS] for r in mine]
            costs += found
            if not kit.reached(found):
                continue
            ratio = np.log([sigmoid / relu for relu, sigmoid in found])
            own = [kit.cost_of(mine[0]["sizes"], mine[0][f"{scoring}_theory"][:, t], LEVEL) for scoring in SCORINGS]
            expected = float(np.log(own[1] / own[0]))
            region = _right(target, between(expected - np.log(COST), expected + np.log(COST)))
            tests.append(Test(f"{label}: log ratio of samples, sigmoid over relu", mean(ratio), region, expected))
            numbers |= {
                f"{label}: samples of {s}": float(np.mean(np.array(found)[:, k])) for k, s in enumerate(SCORINGS)
            }
    return kit.censored(tests, costs) or decide(tests, "", numbers)


def _errors_tests(label: str, mine: Sequence[Result], t: int, end: str, first: int) -> list[Test]:
    """Return the tests of the ratio of errors of one target: its sign wherever it is clear, and its size, over n."""
    rows = {"errors": np.stack([[r[s + end][first:, t] for s in SCORINGS] for r in mine])}
    theory = _log_ratio(np.array([mine[0][f"{s}_theory{end}"][first:, t] for s in SCORINGS]))
    clear = np.abs(theory) > CLEAR
    off = resampled(lambda own: float(np.mean(_log_ratio(own["errors"].mean(0)) - theory)), rows)
    tests = [Test(f"{label}: log ratio of errors minus theory", off, _within(SIZE), 0.0)]
    if clear.any():
        sign = np.sign(theory[clear])
        lead = resampled(lambda own: float(np.min(sign * _log_ratio(own["errors"].mean(0))[clear])), rows)
        name = f"{label}: smallest log ratio, with the predicted sign"
        tests.append(Test(name, lead, above(0.0), float(np.abs(theory[clear]).min())))
    return tests


def _tilt(label: str, mine: Sequence[Result], scoring: str, first: int) -> Test:
    """Return the test of the errors of one scoring themselves, over targets and sizes."""
    theory = np.log(mine[0][f"{scoring}_theory"][first:])
    rows = {"errors": np.stack([r[scoring][first:] for r in mine])}
    off = resampled(lambda own: float(np.mean(np.log(np.maximum(own["errors"].mean(0), 1e-300)) - theory)), rows)
    return Test(f"{label}: mean log error over theory", off, _within(TILT), 0.0)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves of both scorings, with and without label noise, beside the theory."""
    rows = []
    for m in measurements:
        fixed = {"d": m.point.d, "keys": m.point.keys}
        for scoring in SCORINGS:
            for end, noise in NOISES.items():
                for t, target in enumerate(TARGETS):
                    curves = (m.result[f"{scoring}{part}{end}"][1:, t] for part in ("", "_theory"))
                    places = zip(m.result["sizes"][1:], *curves, strict=True)
                    rows += [
                        (scoring, {"target": target, **fixed, "noise": noise}, float(n), float(error), float(predicted))
                        for n, error, predicted in places
                    ]
    return gather(rows, *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the learning curves of each target."""
    figure, axes = panels(len(TARGETS), width=3.2)
    point = measurements[0].point
    found = series([m for m in measurements if m.point == point])
    for axis, target in zip(axes, TARGETS, strict=True):
        for one in (s for s in found if s.settings["target"] == target):
            noisy = one.settings["noise"] > 0
            look = SCORINGS.index(one.name) + 2 * noisy
            label = one.name.replace("relu", "ReLU") + (f", noise {one.settings['noise']:g}" if noisy else "")
            drawn(axis, one, label, color=COLOURS[look], fmt=MARKERS[look], markersize=4, linewidth=0)
        axis.set(xlabel="samples n", xscale="log", yscale="log", title=kit.words(target))
        ticks(axis, [n for n in (100, 200, 500, 1000, 2000) if point.sizes[1] <= n <= point.n])
    axes[0].set_ylabel(f"test error / variance, d = {point.d}")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return the ratios of sample costs, with their intervals, and what noise does."""
    ratios = []
    for target in TARGETS:
        name = named(numbers, end=f"{target}: log ratio of samples, sigmoid over relu")[0]
        value, error = np.exp(numbers[name]), numbers[f"{name} ±"]
        ratios.append(f"{value:.2f} {off(value * error)}")
    noisy = named(numbers, end=f"{TARGETS[0]}, noisy: log ratio of errors minus theory")[0]
    over, error = np.exp(numbers[noisy]), numbers[f"{noisy} ±"]
    relu, sigmoid = (ending(numbers, f"{TARGETS[0]}, noisy: last error of {scoring}")[0] for scoring in SCORINGS)
    return (
        f"To reach a tenth of the variance, sigmoid scores need {ratios[0]} times as many samples as ReLU for a correlation,"
        f" {ratios[1]} for a weighted one, {ratios[2]} for squares of keys and {ratios[3]} for squares of the query, as"
        " predicted. Label noise reverses the order, as predicted: with noise of a tenth of the variance the error on the"
        f" correlation ends at about {sigmoid:.2f} with sigmoid scores and about {relu:.2f} with ReLU; their ratio, averaged"
        f" over n, is {over:.2f} {off(over * error)} times the predicted one"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels, the sigmoid's as a series, and five factorisations of each."""
    rows = point.n * (point.n / 2 + TEST)
    seconds = 0.3 + 1.2e-8 * rows * point.keys**2 + 2 * 5 * 2e-11 * point.n**3
    return Cost(seconds, int(250_000_000 + 60 * point.n * (point.n + TEST)))


@cache
def _theory(point: Point, scoring: str) -> tuple[Array, bool]:
    """Return the predicted errors (penalties, sizes, targets and noise), and whether all of them converged."""
    own = kit.theory(point.d, point.keys, scoring=scoring)
    return kit.prediction(own, TARGETS, point.sizes, RIDGES, "infinite")


def _noisy(errors: Array, noise: float) -> Array:
    """Return the errors (penalties, sizes, targets) that labels with noise have: the target's part and the noise's."""
    return errors[..., :-1] + noise * errors[..., -1:]


def _first(point: Point) -> int:
    return int(np.searchsorted(point.sizes, FIRST * point.d**2))


def _log_ratio(errors: Array) -> Array:
    """Return the log of sigmoid's errors over relu's."""
    relu, sigmoid = np.maximum(errors, 1e-300)  # errors of a leak are zero
    return np.asarray(np.log(sigmoid / relu))


def _right(target: str, region: Region) -> Region:
    """Return the part of a region of log ratios that has the predicted sign."""
    if FEWER[target]:
        return between(region.low, min(region.high, 0.0))
    return between(max(region.low, 0.0), region.high)


def _within(factor: float) -> Region:
    return between(-float(np.log(factor)), float(np.log(factor)))


def _every(scoring: str, part: str = "") -> list[str]:
    return [f"{scoring}{part}{end}" for end in NOISES]


def _swapped(result: Result, _: float) -> Result:
    """Return a result whose theory takes each scoring for the other."""
    return {
        f"{one}_theory{end}": result[f"{other}_theory{end}"]
        for one, other in (SCORINGS, SCORINGS[::-1])
        for end in NOISES
    }


def _as_tanh(measurements: Sequence[Measurement[Point]], _: float) -> list[Measurement[Point]]:
    """Return measurements whose theory takes sigmoid scores for those of tanh."""
    changes = {}
    for point in {m.point for m in measurements}:
        predicted = _theory(point, "tanh")[0]
        changes[point] = {f"sigmoid_theory{end}": _noisy(predicted, noise).min(0) for end, noise in NOISES.items()}
    return [replace(m, result=m.result | changes[m.point]) for m in measurements]


def _delayed(result: Result, size: float) -> Result:
    return {name: kit.delayed(result["sizes"], result[name], size) for name in _every("sigmoid")}


CLAIM = Claim(
    id="features.sharp-scoring",
    version=1,
    statement=(
        "Without label noise sigmoid scores learn squares of keys and correlations between query and keys from fewer"
        " samples than ReLU scores, and squares of the query from more, by the factors that the spectrum predicts"
        " (ours). With infinitely many heads, d = 8 and n up to 1000 (d = 12 and 3000 at the full tier), the ratio of"
        " samples down to a tenth of the variance is the predicted one to 15 %; from $n = 3d^2$ on, the ratio of errors"
        " agrees to 20 %, and the mean of all errors to 15 %. Label noise of a tenth of the variance puts ReLU ahead at"
        " the largest n, on the plain correlation and on squares of keys too; these ratios are also the predicted ones."
        " Wherever the predicted log ratio of errors exceeds 0.2, the measured one has its sign."
    ),
    formula=(
        r"\lambda_{ab}=D_b\sum_k c_k^2\,m_{ka}\,2m_{k+1,b},\qquad "
        r"c_k=\operatorname{E}\bigl[\operatorname{act}(z)\,\mathrm{He}_k(z)\bigr]/\sqrt{k!}"
    ),
    source="ours, of the model of fu2023random; after bordelon2020spectrum and simon2023eigenlearning",
    settings=Point,
    tiers={
        "quick": Sweep([Point()], seeds=10),
        "full": Sweep([Point(), Point(keys=16), Point(d=12, n=3000)], seeds=(24, 10, 8)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Test error over variance against samples, for ReLU and sigmoid scores on the same data, without label noise and"
        " with noise of a tenth of the variance (a constant predictor scores 1). Infinitely many heads, at the penalty that"
        " theory holds best; points are means over draws with standard errors, lines the theory."
    ),
    finding=finding,
    series=series,
    mutations=(
        Mutation(
            "sigmoid's predicted errors are {size:g} times what they are",
            (1.1, 1.3, 2.0),
            1.3,
            scaled(*_every("sigmoid", "_theory")),
        ),
        Mutation(
            "sigmoid's predicted errors are {size:g} of what they are",
            (0.9, 0.75, 0.5),
            0.75,
            scaled(*_every("sigmoid", "_theory")),
        ),
        Mutation("a theory that takes each scoring for the other", (1.0,), 1.0, changed(_swapped)),
        Mutation("a theory that takes sigmoid for tanh", (1.0,), 1.0, _as_tanh),
        Mutation("sigmoid needs {size:g} times as many samples", (1.05, 1.3, 1.6), 1.3, changed(_delayed)),
        *kit.leaks(
            *(name for scoring in SCORINGS for name in _every(scoring)), sizes=(0.1, 0.4, 0.8, 1.0), refuted_at=0.4
        ),
    ),
    unseen=(
        "a theory of both scorings that is off by the same 10 %; finitely many heads; noise other than none and a tenth of"
        " the variance"
    ),
    design=(
        "A pilot (run 1000, 10 seeds) has log ratios of samples within 0.02 of the predicted ones (standard errors 0.01 to"
        " 0.02) and mean log ratios of errors within 0.05 (0.01 to 0.03); the test nearest to undecided is 6.6 standard"
        " errors inside. All of 200 resampled runs support the claim."
    ),
)
