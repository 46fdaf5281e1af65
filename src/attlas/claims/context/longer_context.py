"""context.longer-context: training on longer contexts can hurt on new tasks, unless there is a ridge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import context
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.context.kit import SIZES, bayes, best_ridge, fit_cost, floors, leaked, own, points, predicted
from attlas.claims.estimate import finite_size
from attlas.claims.figure import THEORY, drawn, finished, panels, ticks
from attlas.claims.learners import learner
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = (3.0, 10.0, 40.0)  # examples of a context over d, in training
SHORT, LONG = 1, 2
PLAIN, TUNED, LATER = "no ridge", "best ridge", "no ridge, longer contexts at test time only"
KEYS = {"plain": PLAIN, "tuned": TUNED, "later": LATER}
CHANGE = 0.03  # logarithm of the error: a rise or a fall
CLOSE = {"plain": 0.08, "tuned": 0.02, "later": 0.02}  # of the theory's logarithm of the ratio


class Point(Settings):
    """Tasks over d, sequences over d^2, noise, and size."""

    kappa: PositiveFloat = 0.5
    tau: PositiveFloat = 0.5
    noise: PositiveFloat = 0.1
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Train on contexts of three lengths, without ridge and with the best one; test also on contexts longer than trained.

    All lengths have the same tasks, queries and noise of labels.
    """
    number = own(seed, "task", str(point.d))
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    theory: dict[str, list[float]] = {key: [] for key in KEYS}
    idg, ended = [], []
    for alpha in ALPHAS:
        task = context.sample(point.d, alpha, point.kappa, point.tau, point.noise, number)
        best = best_ridge(task.alpha, task.kappa, task.tau, point.noise)
        plain, tuned = (context.fit(task, ridge, throw=False) for ridge in (0.0, best.ridge))
        ended += [plain.converged, tuned.converged]
        found["plain"].append(plain.errors().icl)
        found["tuned"].append(tuned.errors().icl)
        theory["plain"].append(predicted(task.alpha, task.kappa, task.tau, 0.0, point.noise).icl)
        theory["tuned"].append(best.icl)
        idg += [plain.errors().idg, tuned.errors().idg]
        if alpha == ALPHAS[SHORT]:
            for test in ALPHAS:
                found["later"].append(plain.errors(test_alpha=test).icl)
                theory["later"].append(
                    predicted(task.alpha, task.kappa, task.tau, 0.0, point.noise, test_alpha=test).icl
                )
    return {
        **{key: np.array(values) for key, values in found.items()},
        **{f"theory_{key}": np.array(values) for key, values in theory.items()},
        "idg": np.array(idg),
        "bayes": bayes(ALPHAS[0], point.noise),
        "converged": all(ended),
    }


def change(values: Sequence[float]) -> float:
    """Return the logarithm of the error of long contexts over that of short ones."""
    return float(np.log(values[LONG] / values[SHORT]))


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """As d grows errors rise with the length without ridge, fall with the best one, fall if only the test is longer."""
    tests = floors(
        (float(np.min([m.result[key] for key in KEYS])) / m.result["bayes"] for m in measurements),
        (float(np.min(m.result["idg"])) / m.point.noise for m in measurements),
    )
    if (refuted := leaked(tests)) is not None:
        return refuted
    theory = max(measurements, key=lambda m: m.point.d).result
    for key, name in KEYS.items():
        sign = 1 if key == "plain" else -1
        expected = change(theory[f"theory_{key}"])
        limit = finite_size([(m.point.d, change(m.result[key])) for m in measurements], sizes=SIZES)
        other = finite_size([(m.point.d, sign * change(m.result[key])) for m in measurements], sizes=SIZES)
        kind = "rise" if sign > 0 else "fall"
        tests += [
            Test(f"{kind}, logarithm, {name}", other, above(CHANGE), sign * expected),
            Test(
                f"change over the theory's, logarithm, {name}",
                limit,
                between(expected - CLOSE[key], expected + CLOSE[key]),
                expected,
            ),
        ]
    told = ", ".join(
        f"{np.exp(t.estimate.value):.2f} times ({t.name.split('logarithm, ')[1]})"
        for t in tests
        if "over the theory" in t.name
    )
    return decide(tests, f"from {ALPHAS[SHORT]:g} d to {ALPHAS[LONG]:g} d examples the error changes by {told}")


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Logarithms of errors on new tasks against the length of contexts."""
    rows = [
        (name, {"d": m.point.d}, alpha, float(np.log(value)), float(np.log(theory)))
        for key, name in KEYS.items()
        for m in measurements
        for alpha, value, theory in zip(ALPHAS, m.result[key], m.result[f"theory_{key}"], strict=True)
    ]
    return gather(rows, "examples of a context over d", "logarithm of the error on new tasks")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw errors against the length of contexts, the largest d full and smaller ones faint, with the theory."""
    figure, (axis,) = panels(1, width=6.4)
    point = measurements[0].point
    largest = max(m.point.d for m in measurements)
    alphas = np.geomspace(2, 80, 50)
    start = ALPHAS[SHORT]
    curves = {
        PLAIN: [predicted(float(a), point.kappa, point.tau, 0.0, point.noise).icl for a in alphas],
        TUNED: [best_ridge(float(a), point.kappa, point.tau, point.noise).icl for a in alphas],
        LATER: [predicted(start, point.kappa, point.tau, 0.0, point.noise, test_alpha=float(a)).icl for a in alphas],
    }
    for name, curve in curves.items():
        colour = learner(name).colour
        axis.plot(alphas, np.log(curve), **(THEORY | {"color": colour}))
    for one in series(measurements):
        main = one.settings["d"] == largest
        drawn(axis, points(one), None if main else "", linestyle="none", alpha=1.0 if main else 0.3)
    levels = (0.8, 1.0, 1.2, 1.5)
    axis.set_yticks(np.log(levels), [f"{level:g}" for level in levels])
    axis.set(xlabel=r"examples of a context over $d$, $\alpha$", ylabel="error on new tasks", xscale="log")
    ticks(axis, (2, *ALPHAS, 80))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect six fits."""
    return fit_cost(point.d, point.tau, 6)


def finding(numbers: Numbers) -> str:
    """Say what a longer context does."""
    lead = "change over the theory's, logarithm, "
    plain, wide = (np.exp(numbers[f"{lead}{PLAIN}"]) - 1, numbers[f"{lead}{PLAIN} ±"])
    tuned, later = ((1 - np.exp(numbers[f"{lead}{name}"]), numbers[f"{lead}{name} ±"]) for name in (TUNED, LATER))
    return (
        f"Without ridge, four times longer contexts in training raise the error on new tasks by {plain:.0%}"
        f" (± {wide:.0%}); with the best ridge they lower it by {tuned[0]:.0%} (± {tuned[1]:.1%}). Longer contexts at test"
        f" time alone lower it by {later[0]:.0%} (± {later[1]:.1%})"
    )


def _swapped(result: Result, size: float) -> Result:
    """Return errors without ridge that move towards those of a layer with contexts of one length."""
    plain = np.asarray(result["plain"])
    return {"plain": plain * (plain[SHORT] / plain) ** size}


CLAIM = Claim(
    id="context.longer-context",
    version=1,
    statement=(
        "With few tasks ($k = d/2$) and few sequences ($n = d^2/2$), training a ridgeless layer on contexts of 40 d"
        " instead of 10 d examples raises its error on new tasks; with the best ridge the error falls, and so it does"
        " if only the contexts of the test are longer: as d grows each by more than 3 %, and by what the theory of Lu"
        " et al. 2024 says, to 8 % without ridge and to 2 % otherwise."
    ),
    formula=(
        r"\mathrm{icl}(\alpha=40)>\mathrm{icl}(\alpha=10)\ (\lambda=0),\qquad"
        r"\min_\lambda\mathrm{icl}(\alpha=40)<\min_\lambda\mathrm{icl}(\alpha=10)"
    ),
    source="lu2024asymptotic for the theory; derived again, the cure and the test are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (28, 36, 48, 64)], seeds=(80, 50, 28, 12)),
        "full": Sweep([Point(d=d) for d in (32, 44, 60, 84)], seeds=(300, 200, 120, 50)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Error on new tasks against the length of the contexts of training, without ridge and with the best one, and"
        " for a layer trained on 10 d examples against the length of the contexts of the test. Lines are the theory."
        " Points are geometric means over data sets with standard errors; faint ones for smaller d."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation(
            "longer contexts do no harm: {size:g} of the change is taken away",
            (0.2, 1.0),
            1.0,
            change=changed(_swapped),
        ),
        Mutation(
            "the theory's change without ridge is {size:g} larger, logarithm",
            (0.03, 0.15, 0.3),
            0.15,
            change=changed(
                lambda r, size: {"theory_plain": np.asarray(r["theory_plain"]) * np.array([1.0, 1.0, np.exp(size)])}
            ),
        ),
        Mutation(
            "the ridge hurts: errors of long contexts with it are {size:g} times what they are",
            (1.05, 1.2),
            1.2,
            change=changed(lambda r, size: {"tuned": np.asarray(r["tuned"]) * np.array([1.0, 1.0, size])}),
        ),
        Mutation(
            "the test tasks leak: errors are {size:g} of what they are", (0.1,), 0.1, change=scaled("plain", "tuned")
        ),
    ],
    design=(
        "Pilots with d = 24 showed corrections beyond 1/d; from d = 28 on the limit of the logarithm has a standard"
        " error of 0.014 without ridge, 0.002 with the best one, and a true theory is supported in over 95 % of runs."
        " All lengths share tasks, queries and noise. Contexts end at 40 d because of heavy tails beyond."
    ),
    unseen="contexts far longer than 40 d, where at these sizes single sets of tasks govern the error",
)
