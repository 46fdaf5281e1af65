"""trained.factorised: decay on W, S = W W^T, is a trace penalty, decay on the entries of S a Frobenius one.

Both students see the same data. A student whose training has not converged is no measurement: it leaves the claim undecided.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, finite_size
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, filled_and_hollow, finished, panels
from attlas.claims.finding import interval, named, off, span
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.trained.kit import power_of, predicted, scale_of, size_of
from attlas.claims.verdict import Test, Verdict, about, above, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WRITTEN = {"W W^T": "$W$", "entries of S": "the entries of $S$"}
STUDENTS = {"factorised": "W W^T", "entrywise": "entries of S"}
QUANTITIES = {
    "factorised": ("error", "share"),
    "entrywise": ("error", "trace", "share"),
}  # of W W^T the trace says nothing new
WITHIN = {"error": 0.1, "trace": 0.08, "share": 0.08}  # of the theory's, as d grows
SCATTER = {  # powers of ||S||^2, Tr S and the data's mean square, over what they tend to, with which these scatter
    "factorised_error": (0.0, 2.6, -0.5),
    "entrywise_error": (1.3, 0.0, -0.35),
    "entrywise_trace": (-0.5, 1.0, 0.4),
}
CUT = 0.05  # an eigenvalue above it is not zero: descent leaves a tail of small ones
OVER = " over the theory's"
RATIO = "ratio of the two errors"


class Point(Settings):
    """Samples, decay, width of the teacher and size; two tokens, softmax."""

    alpha: PositiveFloat = 0.15
    decay: PositiveFloat = 0.2
    rho: PositiveFloat = 0.5
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Train both students on the same data; return their errors, traces and shares of eigenvalues beside both theories.

    The shares are those of the eigenvalues above 0.05 for W W^T, and of those below zero for the entries. Errors and traces
    are divided by powers of three numbers that tend to 1: what is left scatters less and has the same limit.
    """
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    common = (size_of(task, point.rho), scale_of(task, point.rho), power_of(task, channel, point.rho))
    descended = aim.descend(
        task.X, task.y, channel, point.d, decay=point.decay, seed=seed, tol=1e-6, max_steps=8000, throw=False
    )
    ridge = aim.minimise_entrywise(task.X, task.y, channel, point.decay, tol=1e-6, throw=False)
    theory = predicted(channel, point.alpha, point.rho, point.decay, throw=False)
    eigenvalues = {"factorised": np.linalg.eigvalsh(descended.value), "entrywise": np.linalg.eigvalsh(ridge.value)}
    result: Result = {
        "factorised_share": float(np.mean(eigenvalues["factorised"] > CUT)),
        "entrywise_share": float(np.mean(eigenvalues["entrywise"] < 0)),
        "converged": descended.converged and ridge.converged and theory.converged,
    }
    for name, found in (("factorised", descended.value), ("entrywise", ridge.value)):
        plain = {"error": float(np.sum((found - task.S) ** 2)) / point.d, "trace": float(eigenvalues[name].mean())}
        for what in set(plain) & set(QUANTITIES[name]):
            value = plain[what]
            result[f"{name}_{what}"] = value / float(np.prod(np.power(common, SCATTER[f"{name}_{what}"])))
    return result | _theories(point)


def _theories(point: Point, decay: float = 1.0) -> Result:
    """Return what both theories say, at a multiple of the decay."""
    return dict(_told(point.alpha, point.rho, decay * point.decay))


@lru_cache(maxsize=64)
def _told(alpha: float, rho: float, decay: float) -> tuple[tuple[str, float], ...]:
    channel = aim.Softmax(2)
    first, second = aim.trained(channel, alpha, rho, decay, throw=False), aim.entrywise(channel, alpha, rho, decay)
    x = np.linspace(CUT, float(aim.edges(first.delta, rho)[-1]) - first.theta, 4001)
    return (
        ("theory_factorised_error", first.value),
        ("theory_factorised_share", float(np.trapezoid(first.spectrum(x), x))),
        ("theory_entrywise_error", second.value),
        ("theory_entrywise_trace", second.trace),
        ("theory_entrywise_share", second.negative),
    )


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Errors, trace and shares of eigenvalues of either student over those of its own theory tend to 1."""
    least = min(m.result[f"{name}_error"] for m in measurements for name in STUDENTS)
    tests = [Test("smallest error", Exact(least), above(0))]
    if not least > 0:
        return decide(tests, "an error is zero")
    for alpha, decay in dict.fromkeys((m.point.alpha, m.point.decay) for m in measurements):
        mine = [m for m in measurements if (m.point.alpha, m.point.decay) == (alpha, decay)]
        at = f"alpha={alpha:g} decay={decay:g}"
        for name, student in STUDENTS.items():
            for what in QUANTITIES[name]:
                key = f"{name}_{what}"
                limit = finite_size([(m.point.d, m.result[key] / m.result[f"theory_{key}"]) for m in mine])
                named = f"{at} {_quantity(name, what)} of {student}{OVER}"
                tests.append(Test(named, limit, about(1, WITHIN[what]), 1.0))
        gain = finite_size([(m.point.d, _ratio(m.result, "") / _ratio(m.result, "theory_")) for m in mine])
        tests.append(Test(f"{at} {RATIO}{OVER}", gain, about(1, WITHIN["error"]), 1.0))
    first = measurements[0].result
    reason = (
        f"theory gives W W^T the error {first['theory_factorised_error']:.3f} and the entries of S"
        f" {first['theory_entrywise_error']:.3f}; errors, trace and shares tend to"
        f" {span(test.estimate.value for test in tests[1:])} times what theory says of each"
    )
    return decide(tests, reason, {f"predicted {RATIO}": _ratio(first, "theory_")})


def _ratio(result: Result, prefix: str) -> float:
    return float(result[f"{prefix}entrywise_error"] / result[f"{prefix}factorised_error"])


def _quantity(name: str, what: str) -> str:
    if what != "share":
        return what
    return "share of eigenvalues above 0.05" if name == "factorised" else "share of eigenvalues below zero"


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of both students against 1/d, with their theories; and all quantities over theirs."""
    return _errors(measurements) + _ratios(measurements)


def _errors(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (student, _settings(m.point), 1 / m.point.d, m.result[f"{name}_error"], m.result[f"theory_{name}_error"])
        for name, student in STUDENTS.items()
        for m in measurements
    ]
    return gather(rows, "1/d", "error")


def _ratios(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = []
    for name, student in STUDENTS.items():
        for what in QUANTITIES[name]:
            for m in measurements:
                value = m.result[f"{name}_{what}"] / m.result[f"theory_{name}_{what}"]
                rows.append((f"{_quantity(name, what)} of {student}", _settings(m.point), 1 / m.point.d, value, 1.0))
    return gather(rows, "1/d", "simulation / theory")


def _settings(point: Point) -> dict[str, float]:
    return {"alpha": point.alpha, "decay": point.decay, "rho": point.rho}


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the errors of both students with both theories, and every quantity over its prediction."""
    figure, (left, right) = panels(2)
    settings = [_settings(m.point) for m in measurements]
    first = settings[0]
    for mine in _errors(measurements):
        i, main = list(STUDENTS.values()).index(mine.name), mine.settings == first
        look = {"color": COLOURS[i], "fmt": MARKERS[i], "markerfacecolor": COLOURS[i] if main else "white"}
        drawn(left, points(mine), f"decay on {WRITTEN[mine.name]}" if main else "", **look)
        if mine.theory:
            left.axhline(mine.theory[0], **(THEORY | {"color": COLOURS[i]}))
    left.set(xlabel="1/d", ylabel="error of the query-key matrix", xlim=(0, None), ylim=(0, None))
    ratios = _ratios(measurements)
    names = list(dict.fromkeys(mine.name for mine in ratios))
    for mine in ratios:
        i, main = names.index(mine.name), mine.settings == first
        look = {"color": COLOURS[i], "fmt": MARKERS[i], "markerfacecolor": COLOURS[i] if main else "white"}
        beside = (3e-4 * (i - 2.5)).__add__
        drawn(right, points(mine, beside), mine.name.replace("W W^T", "$WW^T$") if main else "", **look)
    if other := next((one for one in settings if one != first), None):
        filled_and_hollow(left, *(f"alpha = {one['alpha']:g}, decay {one['decay']:g}" for one in (first, other)))
    right.axhline(1, **THEORY)
    right.set(xlabel="1/d", ylabel="simulation / theory", xlim=(0, None))
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect some three hundred steps of descent and thirty of conjugate gradients."""
    seconds = 0.08 + 4e-6 * point.d**3 * point.alpha / 0.4
    return Cost(seconds, int(60_000_000 + 100 * point.alpha * point.d**3))


def finding(numbers: Numbers) -> str:
    """Say what the factors are worth."""
    over = named(numbers, end=f"{RATIO}{OVER}")[0]
    predicted = numbers[f"predicted {RATIO}"]
    gain, half = predicted * numbers[over], off(predicted * numbers[f"{over} ±"])
    return (
        f"What is decayed decides what is learned: with decay on the entries of S the error is {gain:.2f} {half} times that"
        f" with decay on W, {interval(numbers, over)} of what the two theories say"
    )


def _swapped(result: Result, size: float) -> Result:
    """Return the theories moved towards one another, in logarithms; at 1 they are exchanged."""
    first, second = result["theory_factorised_error"], result["theory_entrywise_error"]
    return {
        "theory_factorised_error": first ** (1 - size) * second**size,
        "theory_entrywise_error": second ** (1 - size) * first**size,
    }


def _decayed(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """Return the theories of another decay."""
    return [Measurement(m.point, m.seed, m.result | _theories(m.point, size)) for m in measurements]


CLAIM = Claim(
    id="trained.factorised",
    version=2,
    statement=(
        r"Decay on $W$, $S = W\,W^\top$, acts as a trace penalty (Boncoraglio et al. 2025) and the same decay on the"
        " entries of $S$ as ridge regression (Hastie et al. 2022): on the same data the errors of the two students, and"
        " their ratio, tend to their own theory's to 10 %, the trace of the second and the shares of non-zero or"
        " negative eigenvalues to 8 %."
    ),
    formula=(
        r"\lambda d\operatorname{Tr}S:\ \hat S=(R-\theta)_{+};\qquad\tfrac{\lambda d}{2}\lVert S\rVert^2:\ \hat S="
        r"\frac{R}{1+\omega},\quad E=\frac{A\omega^2Q+\sigma^2}{A(1+\omega)^2-1},\quad\lambda=\frac{\omega}{2}"
        r"\left(A-\frac{1}{1+\omega}\right)"
    ),
    source="boncoraglio2025inductive; hastie2022surprises; this comparison is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (20, 30, 44, 64)], seeds=(84, 46, 26, 13)),
        "full": Sweep(
            [Point(d=d, alpha=a, decay=lam) for a, lam in ((0.15, 0.2), (0.1, 0.1)) for d in (40, 60, 90, 140)],
            seeds=(100, 50, 24, 10) * 2,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error of the query-key matrix against 1/d, with decay on W and with decay on the entries of S, on the same"
        " data; the lines are the two theories. Right: errors, traces and shares of eigenvalues of both over their own"
        " predictions."
        " Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation(
            "the two theories are exchanged ({size:g} of the way)", (0.1, 0.3, 1.0), 0.3, change=changed(_swapped)
        ),
        Mutation("decay counts {size:g} times", (1.1, 1.5, 2.0), 1.5, change=_decayed),
        Mutation(
            "the predicted error of the entries of S is {size:g} times what it is",
            (1.05, 1.2, 1.5),
            1.2,
            change=scaled("theory_entrywise_error"),
        ),
        Mutation(
            "the predicted error of W W^T is {size:g} times what it is",
            (1.05, 1.25, 1.5),
            1.25,
            change=scaled("theory_factorised_error"),
        ),
        Mutation(
            "the teacher leaks: errors are {size:g} of what they are",
            (0.7, 0.1),
            0.7,
            change=scaled("factorised_error", "entrywise_error"),
        ),
    ],
    design=(
        "A pilot gave standard errors of 0.7 to 1.7 % for the limits; the tolerances are about five of them or more, and two"
        " true theories are supported in about 90 % of runs."
    ),
    unseen="a theory wrong by less than its tolerance, and other decays and numbers of samples",
)
