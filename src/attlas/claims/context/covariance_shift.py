"""context.covariance-shift: where covariances differ from prompt to prompt one layer fails, and depth does not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveInt

from attlas import context
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.context.kit import SIZES, Array, own
from attlas.claims.estimate import Exact, finite_size, mean
from attlas.claims.figure import COLOURS, MARKERS, THEORY, finished, panels
from attlas.claims.finding import interval
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, below, decide
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOW, HIGH = 0.5, 4.0  # of the strength m = |mu|^2
GRID = np.linspace(LOW, HIGH, 2001)
DIMENSION, COUNT = 8, 100
LAYERS = (1, 2, 3, 8)
DEEP = LAYERS.index(8)
WITHIN = 0.08  # of the excess, contexts being long
STEP = 0.03  # of the trained step
REDUCED = 0.05  # what eight layers leave of the excess of one


class Point(Settings):
    """Examples of a prompt."""

    length: PositiveInt

    @property
    def d(self) -> int:
        """What is extrapolated: the length."""
        return self.length


def measure(point: Point, seed: int) -> Result:
    """Train one step for all prompts at each depth, on drawn prompts; return it and the excess on fresh prompts."""
    number = own(seed, "prompts", str(point.length))
    train, test = (_prompts(point.length, number, which) for which in ("training", "test"))
    steps, found, theory, wanted = [], [], [], []
    for layers in LAYERS:
        eta = _trained(layers, train)
        exact = context.trained_step(layers, GRID)
        steps.append(eta)
        wanted.append(exact.value)
        found.append(float(_excess(eta, layers, *test).mean()))
        theory.append(float(context.step_excess(exact.value, layers, test[0]).mean()))
    return {
        "excess": np.array(found),
        "theory": np.array(theory),
        "steps": np.array(steps),
        "theory_steps": np.array(wanted),
    }


def _prompts(length: int, seed: int, which: str) -> tuple[Array, Array, Array, Array]:
    """Draw prompts x = f mu + N(0, I), y = f; return strengths, means, covariances of x, and covariances of x with y."""
    rng = stream(seed, "strengths", which)
    m = rng.uniform(LOW, HIGH, COUNT)
    mu = rng.standard_normal((COUNT, DIMENSION))
    mu *= np.sqrt(m)[:, None] / np.linalg.norm(mu, axis=1, keepdims=True)
    data = stream(seed, "prompts", which)
    f = data.standard_normal((COUNT, length))
    X = f[:, :, None] * mu[:, None] + data.standard_normal((COUNT, length, DIMENSION))
    return m, mu, X.transpose(0, 2, 1) @ X / length, np.einsum("nld,nl->nd", X, f) / length


def _excess(eta: float, layers: int, m: Array, mu: Array, S: Array, h: Array) -> Array:
    """Return the error beyond Bayes of steps eta on every prompt, exact in the query."""
    w = np.zeros_like(h)
    for _ in range(layers):
        w = w + eta * (h - np.einsum("nij,nj->ni", S, w))
    off = w - mu / (1 + m)[:, None]
    return np.asarray(np.sum(off**2, axis=1) + np.sum(mu * off, axis=1) ** 2)


def _trained(layers: int, prompts: tuple[Array, Array, Array, Array]) -> float:
    from scipy.optimize import minimize_scalar

    bounds = (0.5 / (1 + HIGH), 1.5 / (1 + LOW))
    found = minimize_scalar(lambda eta: float(_excess(eta, layers, *prompts).mean()), bounds=bounds, method="bounded")
    return float(found.x)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """For long prompts: what one and two layers leave, the trained steps, and what eight layers leave of one's excess."""
    least = min(float(np.min(m.result["excess"])) for m in measurements)
    tests = [Test("smallest excess over Bayes", Exact(least), above(0))]
    if least <= 0:
        return decide(tests, "an error is below Bayes")
    for i, layers in enumerate(LAYERS):
        if i == DEEP:  # of eight layers what prompts of these lengths leave open is larger than the excess
            continue
        steps = [(m.point.d, float(m.result["steps"][i] / m.result["theory_steps"][i])) for m in measurements]
        tests.append(
            Test(f"trained step over the theory's, T={layers}", finite_size(steps, sizes=SIZES), about(1, STEP), 1.0)
        )
        if layers <= 2:
            rows = [(m.point.d, float(m.result["excess"][i] / m.result["theory"][i])) for m in measurements]
            tests.append(
                Test(f"excess over the theory's, T={layers}", finite_size(rows, sizes=SIZES), about(1, WITHIN), 1.0)
            )
    longest = max(m.point.length for m in measurements)
    last = [m.result for m in measurements if m.point.length == longest]
    tests += [
        Test("excess of one layer", mean([r["excess"][0] for r in last]), above(0.03), 0.0485),
        Test(
            "share of it that eight layers leave",
            mean([r["excess"][DEEP] / r["excess"][0] for r in last]),
            below(REDUCED),
        ),
    ]
    numbers = {"step in the limit of many layers": 2 / (2 + LOW + HIGH)}
    return decide(tests, f"one layer leaves {tests[-2].estimate.value:.3f} beyond Bayes", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Excess over Bayes, and trained steps, against depth."""
    excess = [
        (
            "excess over Bayes",
            {"length": m.point.length},
            layers,
            float(m.result["excess"][i]),
            float(m.result["theory"][i]),
        )
        for m in measurements
        for i, layers in enumerate(LAYERS)
    ]
    steps = [
        (
            "trained step",
            {"length": m.point.length},
            layers,
            float(m.result["steps"][i]),
            float(m.result["theory_steps"][i]),
        )
        for m in measurements
        for i, layers in enumerate(LAYERS)
    ]
    return gather(excess, "layers", "excess over Bayes") + gather(steps, "layers", "trained step")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the excess against depth for every length of prompts, and the trained steps, with the theory of long prompts."""
    figure, (left, right) = panels(2)
    layers = np.arange(1, LAYERS[-1] + 1)
    exact = [context.trained_step(int(t), GRID) for t in layers]
    left.plot(layers, [one.excess for one in exact], **THEORY, label="endless prompts")
    right.plot(layers, [one.value for one in exact], **THEORY, label="endless prompts")
    right.axhline(exact[0].limit, linestyle=":", **THEORY, label=r"$2/(2+m_{\min}+m_{\max})$")
    for axis, name in ((left, "excess over Bayes"), (right, "trained step")):
        mine = [s for s in series(measurements) if s.name == name]
        for i, one in enumerate(sorted(mine, key=lambda s: s.settings["length"])):
            look = {"color": COLOURS[i], "fmt": MARKERS[i], "linestyle": "none"}
            axis.errorbar(one.x, one.mean, yerr=one.standard_error, color=look["color"], fmt=look["fmt"], capsize=2,
                          markersize=5, label=f"{one.settings['length']} examples")  # fmt: skip
        axis.set(xlabel=r"layers $T$")
    left.set(yscale="log", ylabel="excess over Bayes")
    right.set(ylabel=r"trained step $\eta$")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect the drawing of the prompts, and many cheap steps."""
    return Cost(0.01 + 2 * COUNT * point.length * 1e-7, int(80_000_000 + 40 * COUNT * point.length * DIMENSION))


LEFT = "share of it that eight layers leave"


def finding(numbers: Numbers) -> str:
    """Say what one layer leaves and what depth makes of it."""
    one, wide = (numbers[f"excess of one layer{end}"] for end in ("", " ±"))
    return (
        f"Where covariances change from prompt to prompt one layer stays {one:.3f} ± {wide:.3f} above Bayes, with one step"
        f" for all of them; eight layers leave {interval(numbers, LEFT, '.1%')} of that"
    )


CLAIM = Claim(
    id="context.covariance-shift",
    version=4,
    statement=(
        "If the covariance of the tokens changes from prompt to prompt, layers of linear attention with one trained"
        r" step leave $\frac{m}{1 + m}\,(1 - \eta\,(1 + m))^{2T}$ beyond Bayes: as prompts get longer, to 8 % for one"
        " and two layers, with the predicted step to 3 %, up to three layers. One layer stays more than 0.03 above"
        " Bayes; eight layers leave less than 5 % of that."
    ),
    formula=(
        r"x=f\mu+\mathcal N(0,I),\ y=f,\ m=\lVert\mu\rVert^2:\quad"
        r"\mathrm{excess}=\frac{m}{1+m}\left(1-\eta(1+m)\right)^{2T},\qquad\eta\to\frac{2}{2+m_{\min}+m_{\max}}"
    ),
    source="barnfield2026multi for the situation, as its abstract tells it; the formulas are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(length=L) for L in (400, 800, 1600, 3200)], seeds=(90, 60, 45, 40)),
        "full": Sweep([Point(length=L) for L in (500, 1000, 2000, 4000, 8000)], seeds=(300, 200, 150, 100, 60)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "What layers leave beyond Bayes, and the step that training finds for them, against their number, where the"
        " strength of a prompt is uniform between 0.5 and 4. Lines are the theory of endless prompts. Points are means"
        " over sets of prompts with standard errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("the predicted excess is {size:g} times what it is", (1.05, 1.2), 1.2, change=scaled("theory")),
        Mutation("the predicted step is {size:g} times what it is", (1.01, 1.06), 1.06, change=scaled("theory_steps")),
        Mutation(
            "depth does not help: {size:g} of the excess of one layer stays",
            (0.03, 0.2),
            0.2,
            change=changed(lambda r, size: {"excess": np.append(np.asarray(r["excess"])[:-1], size * r["excess"][0])}),
        ),
        Mutation("the test prompts leak: excesses are {size:g} of what they are", (0.0,), 0.0, change=scaled("excess")),
    ],
    design=(
        "In a pilot extrapolated steps had standard errors of at most 0.4 %, the excess of one layer 0.5 % and of two"
        " 1 %. Steps of eight layers are not tested: at these lengths training makes them a third smaller, against"
        " what the length leaves open. Version 1 began at 250 examples, where terms beyond 1/length showed in one run of"
        " five; this one begins at 400, on data of its own."
    ),
    unseen=(
        "the excess of three layers itself, layers with steps of their own, and an excess of deep networks below what the"
        " length of prompts allows"
    ),
)
