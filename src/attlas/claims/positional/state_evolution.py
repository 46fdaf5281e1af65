"""positional.state-evolution: both minima against the theory, and a setting in which theory calls itself inexact."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import PositiveFloat, PositiveInt

from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Sweep
from attlas.claims.estimate import Exact, Undecided, finite_size, mean, share
from attlas.claims.figure import MARKERS, THEORY, drawn, finished, panels
from attlas.claims.finding import interval, named, within
from attlas.claims.mutation import Mutation, changed
from attlas.claims.positional.kit import (
    BRANCHES,
    COLOUR,
    KEPT,
    LIMIT,
    SIZES,
    Student,
    draw_task,
    leaks,
    minima,
    spread,
    theory,
)
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = {"loss": 0.02, "test": 0.04, "order": 0.02, "q": 0.05}  # of means over settings, extrapolated
EACH = {"loss": 0.03, "test": 0.05, "order": 0.03, "q": 0.06}  # of each setting, at its largest size
LEAST = 0.4  # of the theory: a loss or a test error below this is a leak
WAYS = {"positional": "by position", "semantic": "by meaning"}
WORDS = {"loss": "loss", "test": "test error", "order": "position or meaning", "q": "norm"}
JUMPS = 0.1  # share of the response carried by jumps above which the theory is not to be used
OFF = 1.05  # meaning over theory there, at least
KEPT_SHARE = "fits that stay in their minimum"


class Point(Student):
    """A model, samples and a size."""

    alpha: PositiveFloat
    d: PositiveInt

    @property
    def label(self) -> str:
        """The settings in words."""
        return f"{super().label}, alpha = {self.alpha:g}"


def measure(point: Point, seed: int) -> Result:
    """Fit both minima; return loss, test error, position or meaning, and norm over theory, and what theory says of itself.

    The positional loss is divided by the spread of the teacher's attention in the data, whose mean is 1.
    """
    model = point.model
    task = draw_task(point, point.alpha, seed)
    result: Result = {"converged": True}
    for branch, found in minima(task).items():
        expected = theory(model, point.alpha, branch)
        order = (found.m, expected.m) if branch == "positional" else (found.theta, expected.theta)
        scale = spread(task) if branch == "positional" else 1.0
        pairs = {"loss": (found.loss / scale, expected.loss), "test": (found.test, expected.test),
                 "order": tuple(map(abs, order)), "q": (found.q, expected.q)}  # fmt: skip
        result |= {f"{branch}_{key}": own / said for key, (own, said) in pairs.items()}
        result |= {f"{branch}_said_{key}": said for key, (_, said) in pairs.items()}
        result |= {f"{branch}_kept": found.mechanism == branch, f"{branch}_jumps": expected.jump_share}
        result["converged"] &= found.converged and expected.converged
    return result


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every number over theory tends to 1 where no jumps are; where they carry a tenth, meaning is 5 % off at least.

    Means over settings are extrapolated; each setting is also compared at its largest size, where effects of the size are
    far below its tolerance: two dozen extrapolations would meet a chance misfit of the law 1/d in one run of five.
    """
    exact, jumping = ([m for m in measurements if (m.result["semantic_jumps"] > JUMPS) is off] for off in (False, True))
    if not exact or not jumping:
        raise Undecided("needs settings in which theory is exact, and one in which it says that it is not")
    tests = []
    for branch in BRANCHES:
        own = [m for m in exact if m.result[f"{branch}_kept"]]
        for key, eps in EPS.items():
            limit = finite_size([(m.point.d, m.result[f"{branch}_{key}"]) for m in own], sizes=SIZES)
            tests.append(Test(f"{branch} {WORDS[key]}{LIMIT}", limit, about(1, eps), 1.0))
        for name in dict.fromkeys(m.point.label for m in own):
            d = max(m.point.d for m in own if m.point.label == name)
            last = [m.result for m in own if m.point.label == name and m.point.d == d]
            tests += [Test(f"{branch} {WORDS[key]}, {name}, d = {d}", mean([r[f"{branch}_{key}"] for r in last]),
                           about(1, eps), 1.0) for key, eps in EACH.items()]  # fmt: skip
        stay = share([m.result[f"{branch}_kept"] for m in exact])
        tests.append(Test(f"{KEPT_SHARE}, {branch}", stay, above(KEPT)))
    rows = [(m.point.d, m.result["semantic_order"]) for m in jumping]
    tests.append(Test(f"meaning where jumps break the theory{LIMIT}", finite_size(rows, sizes=SIZES), above(OFF)))
    smallest = min(m.result[f"{branch}_{key}"] for m in measurements for branch in BRANCHES for key in ("loss", "test"))
    tests.append(Test("smallest loss or error over theory", Exact(smallest), above(LEAST)))
    return decide(
        tests,
        "losses, errors, norms and overlaps of both minima over theory, extrapolated to d = infinity",
        {"share of jumps where they break the theory": max(m.result["semantic_jumps"] for m in jumping)},
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Losses, errors and overlaps over theory against 1/d; losses and errors themselves against samples."""
    return _over_theory(measurements) + _against_samples(measurements, "loss") + _against_samples(measurements, "test")


def _against_samples(measurements: Sequence[Measurement[Point]], key: str) -> list[Series]:
    """Return losses or test errors against alpha, of models with unit tokens: what the explorer lays over its curves."""
    rows = [
        (
            WAYS[branch],
            {"mixture": m.point.mixture, "encoding": m.point.encoding, "d": m.point.d},
            m.point.alpha,
            m.result[f"{branch}_{key}"] * m.result[f"{branch}_said_{key}"],
            m.result[f"{branch}_said_{key}"],
        )
        for branch in BRANCHES
        for m in measurements
        if m.result[f"{branch}_kept"] and m.point.token_scale == 1
    ]
    return gather(rows, "alpha", WORDS[key])


def _over_theory(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (f"{branch} {WORDS[key]}", {"at": m.point.label}, 1 / m.point.d, m.result[f"{branch}_{key}"], 1.0)
        for branch in BRANCHES
        for key in EPS
        for m in measurements
        if m.result[f"{branch}_kept"]
    ]
    return gather(rows, "1/d", "simulation / theory")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw losses and overlaps over theory against 1/d, a panel each."""
    figure, axes = panels(2, width=5)
    models = list(dict.fromkeys(m.point.label for m in measurements))
    for axis, key in zip(axes, ("loss", "order"), strict=True):
        for mine in _over_theory(measurements):
            branch, _, what = mine.name.partition(" ")
            if what != WORDS[key]:
                continue
            i = models.index(mine.settings["at"])
            drawn(axis, mine, "", color=COLOUR[branch], fmt=MARKERS[i], linestyle="none")
        axis.axhline(1, **THEORY)
        axis.set(xlabel="1/d", ylabel=f"{WORDS[key]}, simulation / theory", xlim=(0, None))
    for i, name in enumerate(models):
        axes[1].plot([], [], MARKERS[i], color="#555555", label=name)
    for branch, colour in COLOUR.items():
        axes[0].plot([], [], "o", color=colour, label=f"{branch} minimum")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect two fits of some twenty steps with their test errors, and the theory."""
    n = point.alpha * point.d
    return Cost(0.008 + 5e-8 * n * point.d, int(150_000_000 + 64 * n * point.d))


def finding(numbers: Numbers) -> str:
    """Say how near simulation comes to theory, and where it does not."""
    near = [name for name in named(numbers, end=LIMIT) if "theory" not in name]
    if not near:
        raise LookupError(LIMIT)
    broken = interval(numbers, f"meaning where jumps break the theory{LIMIT}")
    return (
        f"Losses, errors, norms and overlaps of both minima come to {within(numbers, near)} times the theory as d grows;"
        f" where the theory warns of jumps, meaning is {broken} times what it says"
    )


AMONG = "meaning where jumps break the theory"  # the test among jumps
_EXACT = ((0.3, 4.0, 4.0), (0.1, 5.0, 3.0), (0.5, 2.5, 5.0))  # mixture, encoding, alpha
_JUMPS = {"mixture": 0.3, "encoding": 1.0, "token_scale": 0.5, "decay": 0.01, "alpha": 0.8}  # as published, few samples


def _times(key: str) -> Callable[[Any, float], Any]:
    return changed(lambda result, size: {f"{b}_{key}": result[f"{b}_{key}"] / size for b in BRANCHES})


def _tilted(measurements: Sequence[Measurement[Point]], size: float) -> list[Measurement[Point]]:
    """The theory is too high in the first setting and too low in the second: their mean is right."""
    first, second = list(dict.fromkeys(m.point.label for m in measurements))[:2]
    factor = {first: 1 / size, second: size}
    return [
        replace(m, result=m.result | {f"{b}_{key}": m.result[f"{b}_{key}"] * factor[m.point.label]
                                      for b in BRANCHES for key in ("order", "q", "test")})
        if m.point.label in factor else m
        for m in measurements
    ]  # fmt: skip


def _leaves(measurements: Sequence[Measurement[Point]], _: float) -> list[Measurement[Point]]:
    """Positional fits end elsewhere in four data sets of five."""
    return [
        replace(m, result=m.result | {"positional_kept": m.result["positional_kept"] and i % 5 == 0})
        for i, m in enumerate(measurements)
    ]


CLAIM = Claim(
    id="positional.state-evolution",
    version=4,
    statement=(
        "Both minima are what the theory says as d grows, on average over three settings without jumps: losses and"
        " overlaps with position and meaning to 2 %, test errors to 4 %, norms to 5 %. So they are in each setting at d"
        " = 280: losses and overlaps to 3 %, test errors to 5 %, norms to 6 %. In the published setting with few"
        r" samples ($\alpha = 0.8$), where the theory reports that jumps carry a fifth of the response, meaning is more"
        " than 5 % above it."
    ),
    formula=r"\frac{\text{simulation}}{\text{theory}}\to1\quad(d\to\infty),\qquad\text{jump share}=0",
    source="cui2024phase, the state evolution; our derivation with the global proximal map",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(mixture=o, encoding=c, alpha=a, d=d) for o, c, a in _EXACT for d in (80, 120, 180, 280)]
            + [Point(**_JUMPS, d=d) for d in (150, 250, 400, 700)],
            seeds=(40, 30, 30, 70) * 3 + (60, 36, 30, 36),
        ),
        "full": Sweep(
            [Point(mixture=o, encoding=c, alpha=a, d=d) for o, c, a in _EXACT for d in (100, 180, 320, 512)]
            + [Point(**_JUMPS, d=d) for d in (250, 500, 1000, 2000)],
            seeds=(60, 50, 50, 60) * 3 + (50, 40, 30, 20),
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Loss (left) and overlap with position or meaning (right) of both minima over the theory, against 1/d; the lines"
        " are exact agreement. In the setting with sigma = 0.5 the theory itself reports jumps. Points are means over data"
        " sets with standard errors."
    ),
    finding=finding,
    differs=[
        Difference(
            "Few samples",
            "A closed-form characterisation of the minima is published for any number of samples per dimension.",
            lambda numbers: (
                "At alpha = 0.8 in the published setting jumps of the proximal map carry"
                f" {numbers['share of jumps where they break the theory']:.0%} of the response, replica symmetry is"
                " broken, and"
                f" meaning is {numbers[f'{AMONG}{LIMIT}']:.2f} ± {numbers[f'{AMONG}{LIMIT} ±']:.2f} times what the"
                " equations say."
            ),
        )
    ],
    series=series,
    mutations=[
        Mutation("losses of the theory times {size:g}", (1.01, 1.05, 1.15), 1.05, change=_times("loss")),
        Mutation("position and meaning of the theory times {size:g}", (1.01, 1.05, 1.2), 1.05, change=_times("order")),
        Mutation("norms of the theory times {size:g}", (0.97, 0.9, 0.8), 0.9, change=_times("q")),
        Mutation("test errors of the theory times {size:g}", (1.02, 1.1), 1.1, change=_times("test")),
        Mutation("position, meaning, norms and test errors times {size:g} in one setting, divided by it in another",
                 (1.02, 1.1), 1.1, change=_tilted),
        Mutation("branches swapped", (1.0,), 1.0, change=changed(
            lambda result, _: {f"{a}_{key}": result[f"{b}_{key}"] * result[f"{b}_said_{key}"] / result[f"{a}_said_{key}"]
                               for a, b in (BRANCHES, BRANCHES[::-1]) for key in EPS})),
        Mutation("positional fits leave their minimum, a share {size:g} stays", (0.2,), 0.2, change=_leaves),
        Mutation("the theory holds among jumps too (off by {size:g})", (1.0,), 1.0, change=changed(
            lambda result, size: {"semantic_order": 1 + (result["semantic_order"] - 1) * 0.02 * size}
            if result["semantic_jumps"] > JUMPS else {})),
        Mutation("the teacher leaks: test errors times {size:g}", (0.98, 0.9, 0.0), 0.9, change=changed(
            lambda result, size: {f"{b}_test": size * result[f"{b}_test"] for b in BRANCHES})),
        Mutation("the teacher leaks in the first seed of each place: test errors times {size:g}", (0.01,), 0.01,
                 change=leaks("positional_test", "semantic_test")),
    ],
    unseen="Errors of the theory below its tolerances; settings in which jumps carry a few per cent.",
    design=(
        "In a pilot limits had standard errors of 0.1 to 0.6 %, each setting 0.1 to 0.7 % at d = 280, where effects of the"
        " size were up to 2 % (the norm by position); fits stayed in 96 % (position) and 100 % of data sets. A true theory"
        " was supported in 95 % of resampled pilot runs; afterwards the seeds of the published setting, nearest to failing,"
        " were raised by half."
    ),
)  # fmt: skip
