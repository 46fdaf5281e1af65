"""features.invariance: attention does not see the order of the keys, an MLP on the same tokens does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas import tokens
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import THEORY, panels
from attlas.claims.learners import learner
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.features import attention_heads, mlp_neurons
from attlas.layers import random_feature_attention, random_feature_mlp, softmax, with_one
from attlas.numerics import mean_interval, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLEARLY = 0.01  # of its size: by more than this an MLP has clearly changed


class Point(Settings):
    """A model and its sizes."""

    model: Literal["RFA", "BRFA", "RFMLP"]
    activation: Literal["relu", "exp", "softmax"] = "relu"
    d: PositiveInt = 16
    keys: int = Field(16, ge=2)  # one key has no order
    heads: PositiveInt = 200
    examples: PositiveInt = 50


def measure(point: Point, seed: int) -> Result:
    """Compare the features of sequences with those of the same sequences, their keys permuted at random.

    ``change`` is the root-mean-square change over the root-mean-square feature. ``rounding`` is, for attention, the
    largest ratio of a change to what rounding alone may cause: with u the unit roundoff, D = d + 1 and
    gamma_k = k u / (1 - k u), every score is off by at most gamma_2D |xt_0|^T |W| |xt_i|, a sum of N terms by gamma_N
    times the sum of magnitudes, and two evaluations are compared.
    """
    X = tokens.sphere(point.examples, 1 + point.keys, point.d, stream(seed, "data"))
    order = stream(seed, "permutation").permuted(np.tile(np.arange(point.keys), (point.examples, 1)), axis=1)
    permuted = X.copy()
    permuted[:, 1:] = np.take_along_axis(X[:, 1:], order[..., None], axis=1)
    if point.model == "RFMLP":
        neurons = mlp_neurons(point.heads * (point.d + 1), 1 + point.keys, point.d, stream(seed, "heads"))
        before, after = random_feature_mlp(X, neurons), random_feature_mlp(permuted, neurons)
        return {"change": _relative_change(before, after)}
    heads = attention_heads(point.heads, point.d, stream(seed, "heads"), bias=float(point.model == "BRFA"))
    before, after = (random_feature_attention(x, heads, point.activation) for x in (X, permuted))
    allowed = 2 * rounding_bound(X, heads, point.activation)
    return {"change": _relative_change(before, after), "rounding": float(np.max(np.abs(after - before) / allowed))}


def rounding_bound(X: NDArray[np.float64], heads: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
    """Return a bound on the rounding error of each feature of `random_feature_attention`, of its shape.

    Standard forward analysis (higham2002accuracy, chapter 3), exp and division taken to be right to four units.
    """
    Xt = with_one(X)
    (_, N, D), u = Xt[:, 1:].shape, 0.5 * np.finfo(np.float64).eps
    signed, magnitude = (
        np.einsum("nj,mjk,nik->nmi", q[:, 0], w, q[:, 1:], optimize=True)
        for q, w in ((Xt, heads), (np.abs(Xt), np.abs(heads)))
    )
    error = _gamma(2 * D, u) * magnitude
    if activation == "relu":
        weight = np.maximum(signed, 0)
    elif activation == "exp":
        weight = np.exp(signed)
        error = weight * (np.expm1(error) + 4 * u)
    else:
        weight = N * softmax(signed)
        worst = 2 * error.max(axis=-1, keepdims=True) + 2 * u * np.abs(signed).max(axis=-1, keepdims=True)
        error = weight * (np.expm1(2 * worst) + _gamma(N + 12, u))
    total = (weight + error) * _gamma(N + 3, u) + error
    bound: NDArray[np.float64] = np.einsum("nmi,nik->nmk", total, np.abs(Xt[:, 1:]) / N, optimize=True)
    return bound


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Attention: no change beyond rounding, anywhere. MLP: a mean change whose 99 % interval lies above 1 %."""
    attention = [m.result["rounding"] for m in measurements if m.point.model != "RFMLP"]
    mlp = [m.result["change"] for m in measurements if m.point.model == "RFMLP"]
    if not attention or len(mlp) < 2:
        return Verdict(Outcome.INCONCLUSIVE, "needs attention and at least two seeds of an MLP", 0.0, "")
    worst = float(np.max(attention))
    if not np.isfinite([worst, *mlp]).all():
        return Verdict(Outcome.REFUTED, "a change is not finite", -np.inf, "orders of magnitude")
    mean, low, high = mean_interval(mlp)
    numbers = {"attention_worst_over_rounding": worst, "mlp_change": mean, "mlp_low": low, "mlp_high": high}
    margin = float(min(-np.log10(max(worst, 1e-300)), np.log10(max(low, 1e-300) / CLEARLY)))
    reason = (
        f"attention changes by at most {worst:.2g} of what rounding allows ({len(attention)} runs);"
        f" the MLP changes by {mean:.2f} of its size (99 %: {low:.2f} to {high:.2f})"
    )
    if worst > 1 or high < CLEARLY:
        outcome = Outcome.REFUTED
    else:
        outcome = Outcome.SUPPORTED if low > CLEARLY else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, margin, "orders of magnitude", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the mean change of each model against d."""
    rows = (
        (_label(m.point), {"keys": m.point.keys, "heads": m.point.heads}, m.point.d, m.result["change"], None)
        for m in measurements
    )
    return gather(rows, "d", "relative change of the features")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the relative change of every run, by model."""
    figure, (axis,) = panels(1, width=6.4)
    labels = sorted({_label(m.point) for m in measurements})
    for row, label in enumerate(labels):
        changes = [m.result["change"] for m in measurements if _label(m.point) == label]
        rows = row + 0.12 * np.linspace(-1, 1, len(changes))
        look = learner("neurons" if label == "RFMLP" else "heads")
        axis.plot(changes, rows, look.marker, color=look.colour, markersize=5, alpha=0.7)
    axis.axvline(np.finfo(np.float64).eps, linestyle="--", **THEORY)
    axis.text(np.finfo(np.float64).eps, len(labels) - 0.45, " machine epsilon", va="bottom", fontsize=9)
    axis.set(
        xscale="log",
        xlabel="relative change of the features when keys are permuted",
        ylim=(-0.6, len(labels) - 0.1),
    )
    axis.set_yticks(range(len(labels)), labels)
    return figure


def finding(numbers: Numbers) -> str:
    """Return both changes in a sentence."""
    return (
        "Permuting the keys changes attention by rounding alone (at most"
        f" {numbers['attention_worst_over_rounding']:.2g} of what rounding allows); it changes the features of an MLP on the"
        f" same tokens by {numbers['mlp_change']:.2f} of their size"
    )


def cost(point: Point) -> Cost:
    """Expect the features and, for attention, the two einsums of the rounding bound."""
    D = point.d + 1
    width = (
        point.heads * D * (1 + point.keys) * point.d
        if point.model == "RFMLP"
        else 6 * point.heads * D * (D + point.keys)
    )
    features = point.examples * point.heads * (D + point.keys)
    return Cost(0.01 + 2e-9 * point.examples * width, 50_000_000 + 8 * (4 * features + width))


def _relative_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(after - before) / np.linalg.norm(before))


def _gamma(k: int, u: float) -> float:
    return k * u / (1 - k * u)


def _label(point: Point) -> str:
    return point.model if point.model == "RFMLP" else f"{point.model} {point.activation}"


_MODELS = [
    ("RFA", "relu"),
    ("RFA", "exp"),
    ("RFA", "softmax"),
    ("BRFA", "relu"),
    ("BRFA", "softmax"),
    ("RFMLP", "relu"),
]

CLAIM = Claim(
    id="features.invariance",
    version=1,
    statement=(
        "Random-feature attention, with and without a query-key bias, does not change when its keys are permuted;"
        " a random-feature MLP on the same tokens does."
    ),
    formula=(
        r"\varphi_m(x_0;\,x_{\pi(1)},\dots,x_{\pi(N)})=\varphi_m(x_0;\,x_1,\dots,x_N)"
        r"\quad\text{for every permutation }\pi"
    ),
    source="fu2023random, section 2",
    settings=Point,
    tiers={
        "quick": Sweep([Point(model=m, activation=a) for m, a in _MODELS], seeds=5),
        "full": Sweep(
            [
                Point(model=m, activation=a, d=d, keys=keys, heads=heads)
                for m, a in _MODELS
                for d, keys, heads in [(4, 4, 1000), (16, 16, 1000), (16, 64, 500), (64, 16, 100)]
            ],
            seeds=20,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Relative change of the features when the keys are permuted at random, one point per run, for attention with three"
        " activations, without (RFA) and with bias (BRFA), and for an MLP on the same tokens (RFMLP)."
    ),
    finding=finding,
    series=series,
)
