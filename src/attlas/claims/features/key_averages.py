"""features.key-averages: attention beats a network of as many trained numbers on key averages, as much as predicted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, PositiveInt, model_validator

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean
from attlas.claims.features import kit
from attlas.claims.features.kit import AXES, draw_curves, labels, theory_points, words
from attlas.claims.figure import finished, panels
from attlas.claims.finding import ending, factors, named, span
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEST = 600  # test sequences
TARGETS = ("keys 1", "keys 2")
RATIO = 1.2  # of the network's error to attention's
EPS = {"attention": 0.2, "network": 0.15}  # of their errors, over all n from 2 d^2 on
GAP_EPS = 0.25  # of the ratio of both errors
LEARNED = 0.2  # of the variance: the largest last error of attention on both, and of the network on degree one


class Point(Settings):
    """Heads (the network has heads x (d + 1) neurons), tokens and the largest sample."""

    heads: PositiveInt = 200
    d: int = Field(8, ge=2)
    keys: PositiveInt = 8
    n: int = Field(1024, ge=64)

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.n < 4 * self.d**2:
            raise ValueError(f"n must be at least 4 d^2 = {4 * self.d**2}: it is judged from 2 d^2 on; got {self.n}")
        return self


def measure(point: Point, seed: int) -> Result:
    """Return both learning curves, (sizes, targets), from one draw of data."""
    data = kit.with_control(features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, seed), seed)
    sizes = sorted({point.d, *features.sample_sizes(2 * point.d**2, point.n, 1)})  # d for the guard, then past d^2
    models = {
        "attention": features.RandomAttentionFeatures(point.heads, random_state=seed),
        "network": features.RandomMLPFeatures(n_heads=point.heads, random_state=seed),
    }
    curves = {name: data.features(model, sizes) for name, model in models.items()}
    theories = {name: kit.theory(point.d, point.keys, learner=name) for name in models}
    return {
        "sizes": np.array(sizes, dtype=float),
        "permuted": float(min(curve[-1, -1] for curve in curves.values())),
        **{name: curve[:, :-1] for name, curve in curves.items()},
        **{
            f"{name}_theory": kit.predicted_curves(own, TARGETS, tuple(sizes), point.heads)
            for name, own in theories.items()
        },
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge both errors and their paired ratio against the predicted ones, over n from 2 d^2 on, and the ratio at each n."""
    kit.require_finite(measurements, *EPS)
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    tests = kit.guards(measurements, tuple(EPS), "attention", lambda _: TARGETS)
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        for t, target in enumerate(TARGETS):
            label = f"{names[point]} {target}"
            logs = {key: kit.run_logs([r[key][1:, t] for r in mine]) for key in EPS}
            off = {key: logs[key] - np.log(mine[0][f"{key}_theory"][1:, t]) for key in EPS}
            for key, eps in EPS.items():
                tests.append(_near(f"{label}: log error of {key} over prediction", off[key].mean(1), eps))
            gap = (off["network"] - off["attention"]).mean(1)
            tests.append(_near(f"{label}: log ratio of errors over prediction", gap, GAP_EPS))
            ratio = logs["network"] - logs["attention"]
            for k, n in enumerate(mine[0]["sizes"][1:]):
                name = f"{label}, {n:.0f} samples: log of the ratio of errors"
                tests.append(Test(name, mean(ratio[:, k]), above(np.log(RATIO))))
            for key in EPS if target == "keys 1" else ("attention",):
                last = mean([r[key][-1, t] for r in mine])
                tests.append(Test(f"{label}: last error of {key}", last, below(LEARNED)))
    return decide(tests)


def _near(name: str, off: ArrayLike, eps: float) -> Test:
    return Test(name, mean(off), between(-np.log(1 + eps), np.log(1 + eps)), 0.0)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves."""
    learners = {"attention": "heads", "network": "neurons"}
    rows = (
        (name, settings | {"heads": m.point.heads}, n, error, theory)
        for m in measurements
        for name, settings, n, error, theory in theory_points(m, learners, TARGETS)
    )
    return gather(rows, *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw both curves of each power at the largest size."""
    figure, axes = panels(len(TARGETS))
    point = max((m.point for m in measurements), key=lambda p: (p.d, p.n))
    found = series([m for m in measurements if m.point == point])
    for target, axis in zip(TARGETS, axes, strict=True):
        draw_curves(axis, [s for s in found if s.settings["target"] == target], f"{words(target)} (d = {point.d})")
    axes[0].set_ylabel("test error / variance")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return the smallest and the largest lead, and how far it is from the predicted one, in a sentence."""
    leads = named(numbers, end=": log of the ratio of errors")
    off = np.exp(ending(numbers, ": log ratio of errors over prediction"))
    error = max(ending(numbers, ": log ratio of errors over prediction ±"))
    return (
        "On averages over keys attention beats a network with as many trained numbers, as much as theory predicts: the"
        f" network's error is {factors(numbers, leads, '.1f')} times attention's in {len(leads)} comparisons, and"
        f" {span(off)} times what is predicted on average over n (each to ± {error:.0%} or better)"
    )


def cost(point: Point) -> Cost:
    """Expect the products of the features and the factorisations."""
    p, rows = point.heads * (point.d + 1), point.n + TEST
    seconds = 0.05 + 2e-11 * (rows * p * point.n + rows * p * (point.keys + 1) * point.d) + 5e-10 * point.n**3
    return Cost(seconds, int(200_000_000 + 16 * rows * p))


CLAIM = Claim(
    id="features.key-averages",
    version=4,
    statement=(
        "On averages of key functions random-feature attention beats a random-feature MLP of equal parameter count (Fu"
        " et al. 2023) by as much as the theory of the test error predicts without a fit: from $n = 2d^2$ on, at"
        " degrees one and two, attention's test error is predicted to 20 %, the MLP's to 15 % and their ratio to 25 %,"
        " in the geometric mean over n, and at each n the MLP's is over 1.2 times attention's."
    ),
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle\beta,x_i\rangle^s:\qquad\frac{\operatorname{error}_{\text{RFMLP}}(n)}"
        r"{\operatorname{error}_{\text{RFA}}(n)}=\left[\frac{\operatorname{error}_{\text{RFMLP}}(n)}"
        r"{\operatorname{error}_{\text{RFA}}(n)}\right]_{\text{theory}}>1\quad\text{at }p=M(d+1)"
    ),
    source="fu2023random, section 3 and its experiments; the theory is ours (docs/features.md)",
    settings=Point,
    tiers={
        "quick": Sweep([Point(n=512)], seeds=44),
        "full": Sweep([Point(heads=300, d=12, n=1152), Point(heads=600, d=16, keys=16, n=2048)], seeds=(24, 16)),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Test error over variance against samples, for attention and for a network with as many trained numbers, on averages"
        " over keys of degrees one and two (a constant predictor scores 1). Points are means over draws with standard"
        " errors, lines the theory."
    ),
    finding=finding,
    series=series,
    mutations=(
        Mutation("theory predicts {size:g} of attention's error", (0.95, 0.7, 0.4), 0.7, scaled("attention_theory")),
        Mutation("theory predicts {size:g} of the network's error", (0.95, 0.8, 0.4), 0.8, scaled("network_theory")),
        Mutation(
            "theory predicts {size:g} times both errors",
            (1.05, 1.5, 3.0),
            1.5,
            scaled("attention_theory", "network_theory"),
        ),
        Mutation(
            "attention's error is {size:g} times as large",
            (1.1, 1.5, 10.0),
            1.5,
            changed(lambda r, size: {"attention": np.minimum(1.0, size * r["attention"])}),
        ),
        Mutation(
            "the network errs by {size:g} of the variance on everything",
            (0.1, 0.5, 1.0),
            0.1,
            changed(lambda r, size: {"network": np.full_like(r["network"], size)}),
        ),
        Mutation("attention is the network", (1.0,), 1.0, changed(lambda r, _: {"attention": r["network"]})),
        *kit.leaks("attention", "network"),
    ),
    unseen="an error of either learner that is off by a tenth at all n, or by more at one n and less at another",
    design=(
        "A pilot (runs 1000 and 1001, 24 seeds each) knows attention's log errors to 0.024 to 0.044 (standard errors), the"
        " network's to 0.005 to 0.030 and their ratio to 0.025 to 0.045; the deviations are 0 to 7 %, and one of the two"
        " runs was undecided about the network. 44 seeds support the claim in all resampled runs if theory is true."
    ),
)
