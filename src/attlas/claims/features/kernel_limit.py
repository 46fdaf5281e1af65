"""features.kernel-limit: finitely many heads approach the infinite-head kernel as M^-1/2, without bias."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, PositiveInt

from attlas import features, layers, tokens
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels, ticks
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line, mean_interval, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SHARP = 0.1  # a slope that is known less well than this decides nothing
POINTS = 24


class Point(Settings):
    """Heads, their activation and bias, and the tokens."""

    heads: int = Field(ge=2)
    activation: Literal["relu", "exp"] = "relu"
    bias: float = 0.0
    d: PositiveInt = 16
    keys: PositiveInt = 16


def measure(point: Point, seed: int) -> Result:
    """Compare Phi Phi^T with K on fresh points: the relative Frobenius error, and the mean of (Phi Phi^T - K)/K."""
    X = tokens.sphere(POINTS, point.keys + 1, point.d, stream(seed, "points"))
    heads = features.attention_heads(point.heads, point.d, stream(seed, "heads"), point.bias)
    Phi = layers.random_feature_attention(X, heads, point.activation).reshape(POINTS, -1) / np.sqrt(point.heads)
    K = features.attention_kernel(X, bias=point.bias, activation=point.activation)
    difference = Phi @ Phi.T - K
    return {
        "error": float(np.linalg.norm(difference) / np.linalg.norm(K)),
        "signed": float(np.mean(difference) / np.mean(K)),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The slope of log error on log M contains -1/2, and the mean signed error is zero within its error (99 % together)."""
    groups: dict[str, list[Measurement[Point]]] = {}
    for m in measurements:
        groups.setdefault(_label(m.point.model_dump()), []).append(m)
    if not all(0 < m.result["error"] < np.inf for m in measurements):
        return Verdict(Outcome.REFUTED, "an error is zero or not finite", -np.inf, "standard errors")
    level = 1 - (1 - LEVEL) / (2 * len(groups))
    numbers: dict[str, float] = {}
    margins, blurred = [], False
    for label, mine in groups.items():
        if len({m.point.heads for m in mine}) < 2 or len(mine) < 6:
            return Verdict(Outcome.INCONCLUSIVE, "needs two numbers of heads and six runs", 0.0, "")
        line = fit_line([np.log(m.point.heads) for m in mine], [np.log(m.result["error"]) for m in mine])
        low, high = line.slope_interval(level)
        # errors of different M have different sizes; in units of M^-1/2 they are alike
        signed = [m.result["signed"] * np.sqrt(m.point.heads) for m in mine]
        mean, signed_low, signed_high = mean_interval(signed, level)
        error = float(np.std(signed, ddof=1)) / np.sqrt(len(signed))
        numbers |= {
            f"{label} slope": line.slope,
            f"{label} slope ±": (high - low) / 2,
            f"{label} mean error x sqrt(M)": mean,
            f"{label} mean error ±": (signed_high - signed_low) / 2,
        }
        margins.append(((high - low) / 2 - abs(line.slope + 0.5)) / line.slope_error)
        margins.append(((signed_high - signed_low) / 2 - abs(mean)) / error)
        blurred = blurred or (high - low) / 2 > SHARP
    slopes = [value for key, value in numbers.items() if key.endswith("slope")]
    reason = (
        f"slopes {min(slopes):.3f} to {max(slopes):.3f} in {len(groups)} settings, the widest interval ±"
        f"{max(v for k, v in numbers.items() if k.endswith('slope ±')):.3f}; "
    )
    zero = "the mean error is zero within its error"
    reason += zero if min(margins) >= 0 else "a slope is not -1/2 or a mean error not zero"
    if min(margins) < 0:
        return Verdict(Outcome.REFUTED, reason, float(min(margins)), "standard errors", numbers)
    outcome = Outcome.INCONCLUSIVE if blurred else Outcome.SUPPORTED
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the errors of each setting against the number of heads."""
    rows = (
        ("heads", m.point.model_dump(exclude={"heads"}), m.point.heads, m.result["error"], None) for m in measurements
    )
    return gather(rows, "heads", "relative error of the kernel")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the error against M, beside M^-1/2."""
    figure, (axis,) = panels(1, width=6)
    found = series(measurements)
    for one, colour, marker in zip(found, COLOURS, MARKERS, strict=False):
        drawn(axis, one, _label(one.settings), color=colour, fmt=marker)
    heads = np.array(sorted({x for one in found for x in one.x}))
    middle = np.exp(np.mean([np.log(np.array(one.mean) * np.sqrt(one.x)).mean() for one in found]))
    axis.plot(heads, middle / np.sqrt(heads), **THEORY, label="1/√M")
    axis.set(xlabel="heads M", ylabel=found[0].y_name, xscale="log", yscale="log")
    ticks(axis, heads.tolist())
    axis.legend(frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return the range of slopes in a sentence."""
    slopes = ending(numbers, " slope")
    return (
        "M random heads approach the kernel of infinitely many as M^-1/2: the fitted exponents are"
        f" {min(slopes):.3f} to {max(slopes):.3f}, and the mean error is zero within its error"
    )


def cost(point: Point) -> Cost:
    """Expect the drawing of the heads, and the features."""
    numbers = point.heads * (point.d + 1) ** 2
    return Cost(0.05 + 3e-8 * numbers + 1e-9 * POINTS * numbers, int(150_000_000 + 24 * numbers))


def _label(settings: Mapping[str, Any]) -> str:
    return "{activation} bias {bias:g} d={d} keys={keys}".format(**settings)


CLAIM = Claim(
    id="features.kernel-limit",
    version=1,
    statement="M random heads approach the infinite-head kernel at rate M^-1/2, without bias.",
    formula=(
        r"\frac{1}{M}\sum_{m=1}^{M}\langle\varphi_m(X),\varphi_m(X')\rangle=K(X,X')+O(M^{-1/2}),"
        r"\qquad K=\frac{1}{NN'}\sum_{i,j}\operatorname{E}[\operatorname{act}(s_i)\operatorname{act}(s'_j)]\,t_{ij}"
    ),
    source="fu2023random, the random-feature approximation; rahimi2007random for the rate",
    settings=Point,
    tiers={
        "quick": Sweep(
            [
                Point(heads=M, activation=act, bias=b)
                for M in (250, 1000, 4000)
                for act, b in (("relu", 0.0), ("relu", 1.0), ("exp", 0.0))
            ],
            seeds=40,
        ),
        "full": Sweep(
            [
                Point(heads=M, activation=act, bias=b)
                for M in (250, 1000, 4000, 16000, 64000)
                for act in ("relu", "exp")
                for b in (0.0, 1.0)
            ],
            seeds=16,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Relative error of the Gram matrix of M random heads against the kernel of infinitely many, against M."
        " Means over draws with standard errors; the line falls as M^-1/2."
    ),
    finding=finding,
    series=series,
)
