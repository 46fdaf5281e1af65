"""trained.double-descent: with noise and little decay the error peaks where data are just fitted; the best decay helps.

A run whose convex problem was not solved is no measurement: it leaves the claim undecided.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import HOLLOW, errors, points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, mean
from attlas.claims.figure import COLOURS, THEORY, drawn, finished, panels
from attlas.claims.finding import off
from attlas.claims.lettering import name_ends
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series
from attlas.claims.trained.kit import TOLERANCE, Array, size_of
from attlas.claims.verdict import Test, Verdict, about, above, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACES = (0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.2)  # samples, over those of the interpolation threshold
TOP, BEFORE = 4, 0  # of these: where the peak is, and what it is held against
PLACE, HEIGHT, CURE = 0.1, 0.25, 0.3  # at the largest d: finite sizes are in them
RISE = 0.1  # logarithm: a peak is 10 % above what lies before it, and after
STEP = 0.02  # of alpha: to have the slope of the theory


class Point(Settings):
    """Size, noise, width, and a small decay; one token. Seven numbers of samples about the interpolation threshold."""

    d: PositiveInt
    noise: PositiveFloat = 4.0
    rho: PositiveFloat = 0.5
    decay: PositiveFloat = 0.03


def measure(point: Point, seed: int) -> Result:
    """Solve at seven numbers of samples of one task, the first n of them, and with the best decay at the peak.

    Errors are divided by the drawn teacher's ||S||^2 over its mean.
    """
    channel = aim.Linear(1, point.noise)
    theory = _theory(point.noise, point.rho, point.decay)
    task = aim.sample(channel, point.d, float(theory["alphas"][-1]), point.rho, seed)
    size = size_of(task, point.rho)
    start, found, converged = None, [], [bool(theory["converged"])]
    for alpha in theory["alphas"]:
        n = max(1, round(alpha * point.d**2))
        fit = aim.minimise(
            task.X[:n], task.y[:n], channel, point.decay, start=start, tol=TOLERANCE, max_steps=20_000, throw=False
        )
        start = fit.value
        found.append(fit.mse(task.S) / size)
        converged.append(fit.converged)
    n = max(1, round(theory["alphas"][TOP] * point.d**2))
    chosen = aim.minimise(task.X[:n], task.y[:n], channel, float(theory["best_decay"]), tol=TOLERANCE, throw=False)
    return theory | {
        "small": np.array(found),
        "best": chosen.mse(task.S) / size,
        "converged": all(converged) and chosen.converged,
    }


@lru_cache(maxsize=64)
def _curve(noise: float, rho: float, decay: float, stretch: float = 1.0) -> tuple[Array, Array, Array, bool]:
    """Return the seven alphas, the error there if all lay at `stretch` times their place, its slope in logarithms."""
    channel = aim.Linear(1, noise)
    edge, _ = aim.interpolation_threshold(channel, rho)
    alphas = edge * np.array(PLACES)
    shifted = np.concatenate([alphas * (1 + step) / stretch for step in (-STEP, 0.0, STEP)])
    curve = aim.trained_curve(channel, shifted, rho, decay)
    low, here, high = curve["mse"].values[0].reshape(3, -1)
    slope = np.log(high / low) / np.log((1 + STEP) / (1 - STEP))
    return alphas, here, slope, bool(curve["converged"].values.all())


def _theory(noise: float, rho: float, decay: float) -> Result:
    alphas, errors_, slopes, converged = _curve(noise, rho, decay)
    best, bayes, fine = _best_at(noise, rho, float(alphas[TOP]))
    return {
        "alphas": alphas,
        "theory": errors_,
        "slopes": slopes,
        "best_decay": best[0],
        "theory_best": best[1],
        "bayes": bayes,
        "converged": converged and fine,
    }


@lru_cache(maxsize=64)
def _best_at(noise: float, rho: float, alpha: float) -> tuple[tuple[float, float], float, bool]:
    found = aim.best_decay(aim.Linear(1, noise), alpha, rho, throw=False)
    return (found.decay, found.mse), found.bayes, found.converged


def fitted(result: Result) -> tuple[float, float]:
    """Return place and height of the peak of one run, over the theory's: log error = log theory(alpha/place) + log height.

    To first order in log place, by least squares over the seven numbers of samples.
    """
    off = np.log(np.asarray(result["small"]) / np.asarray(result["theory"]))
    design = np.stack([np.ones(len(off)), -np.asarray(result["slopes"])], axis=1)
    height, place = np.linalg.lstsq(design, off, rcond=None)[0]
    return float(np.exp(np.clip(place, -5, 5))), float(np.exp(np.clip(height, -50, 50)))


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """At the largest d the peak is where and as high as predicted; errors rise to it and fall; the best decay removes it."""
    least = min(float(min(np.min(m.result["small"]), m.result["best"])) for m in measurements)
    tests = [Test("smallest error", Exact(least), above(0))]
    if not least > 0:
        return decide(tests, "an error is zero")
    largest = max(m.point.d for m in measurements)
    rows = [m.result for m in measurements if m.point.d == largest]
    fits = [fitted(r) for r in rows]
    first = rows[0]

    def log(result: Result, other: int, key: str = "small") -> float:
        return float(np.log(result[key][TOP] / result[key][other]))

    left = [r["best"] / r["small"][TOP] / (r["theory_best"] / r["theory"][TOP]) for r in rows]
    rise = log(first, BEFORE, "theory")
    tests += [
        Test("place of the peak over the theory's", mean([place for place, _ in fits]), about(1, PLACE), 1.0),
        Test("height of the peak over the theory's", mean([height for _, height in fits]), about(1, HEIGHT), 1.0),
        Test("rise to the peak, logarithm", mean([log(r, BEFORE) for r in rows]), above(RISE), rise),
        Test("fall from the peak, logarithm", mean([log(r, -1) for r in rows]), above(RISE), log(first, -1, "theory")),
        Test("share of the peak that the best decay leaves, over the theory's", mean(left), about(1, CURE), 1.0),
    ]
    edge, limit = aim.interpolation_threshold(aim.Linear(1, measurements[0].point.noise), measurements[0].point.rho)
    numbers = {
        "threshold of interpolation, alpha": edge,
        "peak as decay vanishes": limit,
        "predicted rise to the peak, logarithm": rise,
        "predicted share that the best decay leaves": float(first["theory_best"] / first["theory"][TOP]),
        "best decay over Bayes at the peak, theory": float(first["theory_best"] / first["bayes"]),
    }
    place, height = tests[1].estimate.value, tests[2].estimate.value
    return decide(
        tests, f"the peak is at {place:.2f} times its predicted place and {height:.2f} times as high", numbers
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against alpha, with the small decay, and with the best one at the peak."""
    return _small(measurements) + _best(measurements)


class _Place(Settings):
    """A point of the curve of errors: what `errors` asks for."""

    alpha: float
    d: int
    noise: float
    rho: float
    decay: float | None


def _at(measurements: Sequence[Measurement[Point]], places: Sequence[int], best: bool) -> list[Measurement[_Place]]:
    found = []
    for m in measurements:
        for i in places:
            place = _Place(
                alpha=float(m.result["alphas"][i]),
                d=m.point.d,
                noise=m.point.noise,
                rho=m.point.rho,
                decay=None if best else m.point.decay,
            )
            value = m.result["best"] if best else m.result["small"][i]
            theory = m.result["theory_best"] if best else m.result["theory"][i]
            found.append(Measurement(place, m.seed, {"error": float(value), "theory": float(theory)}))
    return found


def _small(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = _at(measurements, range(len(PLACES)), best=False)
    return errors(rows, "trained", "error", lambda m: m.result["theory"], channel="linear", tokens=1)


def _best(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = _at(measurements, [TOP], best=True)
    found = errors(rows, "trained", "error", lambda m: m.result["theory"], channel="linear", tokens=1)
    return [replace(series, y_name="mse at the best decay") for series in found]


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the errors of the limit, of the small and of the best decay, and Bayes."""
    figure, (axis,) = panels(1, width=6)
    first = measurements[0].point
    channel = aim.Linear(1, first.noise)
    reached = measurements[0].result["alphas"]
    edge, _ = aim.interpolation_threshold(channel, first.rho)
    alphas = np.union1d(np.linspace(float(reached[0]), float(reached[-1]), 61), [edge])  # with the peak itself
    curves = aim.trained_curve(channel, alphas, first.rho, [0.0, first.decay])["mse"].values
    axis.plot(alphas, curves[0], linestyle=":", **THEORY, label="decay to 0")
    axis.plot(alphas, curves[1], color=COLOURS[1], label=f"decay {first.decay:g}")
    few = alphas[::4]  # the best decay takes a third of a second each, and its error is smooth
    axis.plot(few, [aim.best_decay(channel, a, first.rho).mse for a in few], color=COLOURS[0], label="best decay")
    axis.plot(alphas, aim.curve(channel, alphas, first.rho)["mse"].values[0], "--", **THEORY, label="Bayes")
    largest = max(m.point.d for m in measurements)
    for mine, colour in [(s, COLOURS[1]) for s in _small(measurements)] + [
        (s, COLOURS[0]) for s in _best(measurements)
    ]:
        main = mine.settings["d"] == largest
        drawn(axis, points(mine), color=colour, **({"label": ""} if main else HOLLOW))
    axis.set(xlabel="samples over d²", ylabel="error of the query-key matrix", yscale="log")
    name_ends(axis)
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some three hundred steps at each number of samples, more at smaller decays."""
    seconds = 0.12 * (1 + (point.d / 22) ** 2.2) * (0.03 / point.decay) ** 0.4
    return Cost(seconds, int(60_000_000 + 100 * point.d**3))


def finding(numbers: Numbers) -> str:
    """Say where the peak is and how high, and what decay makes of it."""
    place, wide = (numbers[f"place of the peak over the theory's{end}"] for end in ("", " ±"))
    height, tall = (numbers[f"height of the peak over the theory's{end}"] for end in ("", " ±"))
    left = numbers["share of the peak that the best decay leaves, over the theory's"]
    wide_left = numbers["share of the peak that the best decay leaves, over the theory's ±"]
    left, wide_left = (x * numbers["predicted share that the best decay leaves"] for x in (left, wide_left))
    return (
        "More data can hurt: with little decay the error peaks near the interpolation threshold, at"
        f" {place:.2f} ± {wide:.2f} of the predicted number of samples, {height:.2f} ± {tall:.2f} times as high as"
        f" predicted; the best decay leaves {left:.0%} {off(wide_left, '.0%')} of it"
    )


def _moved(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return the theory of a threshold at another place."""
    found = []
    for m in measurements:
        _, theory, slopes, _ = _curve(m.point.noise, m.point.rho, m.point.decay, size)
        found.append(replace(m, result=m.result | {"theory": theory, "slopes": slopes}))
    return found


def _flat(result: Result, size: float) -> Result:
    """Return errors whose peak is cut: a power of the error over that before the peak."""
    small = np.asarray(result["small"])
    return {"small": np.where(small > small[0], small[0] * (small / small[0]) ** (1 - size), small)}


CLAIM = Claim(
    id="trained.double-descent",
    version=4,
    statement=(
        "With noise and a decay far below the best, the error peaks near the interpolation threshold, where and as high as"
        " the theory of Boncoraglio et al. 2025 says: at the largest d its place to 10 %, its height to 25 %; the best decay"
        " leaves the predicted share of it, to 30 %."
    ),
    formula=(
        r"\lambda\to0:\quad A\,\Delta=\sigma^2+E,\qquad\text{the peak where }\theta=0\text{ and }"
        r"A=2\int\rho_R(x)\,x_{+}\,h(x)\,dx"
    ),
    source="boncoraglio2025inductive; derived again",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (24, 44)], seeds=(4, 22)),
        "full": Sweep([Point(d=d, decay=0.01) for d in (40, 60, 90)], seeds=(16, 12, 12)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Error of the query-key matrix against the number of samples over d², on a logarithmic scale: with a small decay,"
        " and at the peak with the best one, hollow marks for smaller d. Lines are the predicted errors of both, of decay"
        " tending to 0 (dotted) and"
        " of the best learner (dashed). Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("the threshold lies at {size:g} of its place", (0.95, 0.8, 0.7, 0.6), 0.7, change=_moved),
        Mutation("the threshold lies at {size:g} times its place", (1.05, 1.25, 1.5, 2.2), 1.25, change=_moved),
        Mutation("the predicted peak is {size:g} times as high", (1.1, 2.0, 10.0), 2.0, change=scaled("theory")),
        Mutation("there is no peak ({size:g} of its logarithm cut)", (0.2, 1.0), 1.0, change=changed(_flat)),
        Mutation("the best decay leaves {size:g} times what it leaves", (1.1, 2.0, 3.0), 2.0, change=scaled("best")),
        Mutation(
            "the teacher leaks: errors are {size:g} of what they are", (0.5, 0.0), 0.5, change=scaled("small", "best")
        ),
    ],
    design=(
        "With less noise or decay single samples with very negative outputs govern the error before the peak at d < 100;"
        " noise 4 and decay 0.03 avoid that. The 45 runs of version 2 at d = 44, with other random numbers, are the pilot:"
        " the peak lies at 0.96 of its place and is 1.12 times as high, by finite size, and scatters by 0.05 and 0.10 from"
        " run to run. Nine seeds support the claim in 45 % of draws from them, 20 in 99 %; 22 in 95 % of draws from all 155"
        " runs that there are now, in which the peak is a little higher, 1.13."
    ),
    unseen="the cusp of the limit without decay: at these sizes single samples with very negative outputs hide it",
)
