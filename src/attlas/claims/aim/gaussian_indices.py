"""aim.gaussian-indices: attention indices are jointly Gaussian with variance Q (1 + delta_ab)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from attlas import tokens
from attlas.aim import teacher
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.layers import attention_indices
from attlas.numerics import fit_line, mean_interval, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99  # of the whole family of tests
SLOWEST = -0.25  # distances go as d^(-1/2); one that tends to a constant has an exponent of nearly zero
CHUNK = 2000
DIRECTIONS = 8
DISTANCES = {"diagonal": "h_aa", "off_diagonal": "h_ab", "joint": "random directions"}


class Point(Settings):
    """Sizes of the model."""

    d: PositiveInt
    rho: PositiveFloat = 0.5
    tokens: int = Field(2, ge=2)
    samples: int = Field(40_000, ge=100)

    @model_validator(mode="after")
    def _has_width(self) -> "Point":
        if round(self.rho * self.d) < 1:
            raise ValueError(f"rho = {self.rho:g} at d = {self.d} leaves a teacher of no width")
        return self


def measure(point: Point, seed: int) -> Result:
    """Draw a teacher and many sequences; return moments of the indices and their distances from the Gaussian.

    With z_ab = h_ab / sqrt(1 + delta_ab), a <= b: ``moments`` is the matrix E[z z^T] over pairs, which should be Q I
    with Q = Tr S^2/d, close to 1 + rho. The distances are Kolmogorov-Smirnov, to N(0, Q), of the diagonal indices, of
    the off-diagonal ones and, in the mean, of random directions in the space of all.
    """
    T, pairs = point.tokens, np.triu_indices(point.tokens)
    scale = np.sqrt(1 + (pairs[0] == pairs[1]))
    S = teacher(point.d, point.rho, stream(seed, "teacher", str(point.d)))
    data = stream(seed, "data", str(point.d))
    z = np.empty((point.samples, len(scale)))
    for start in range(0, point.samples, CHUNK):
        rows = slice(start, min(start + CHUNK, point.samples))
        X = tokens.gaussian(rows.stop - rows.start, T, point.d, data)
        z[rows] = attention_indices(X, S)[:, pairs[0], pairs[1]] / scale
    Q = float(np.sum(S * S)) / point.d
    directions = stream(seed, "directions", str(point.d)).standard_normal((len(scale), DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    diagonal = scale > 1
    return {
        "Q": Q,
        "moments": z.T @ z / point.samples,
        "diagonal": _distance(z[:, diagonal], Q),
        "off_diagonal": _distance(z[:, ~diagonal], Q),
        "joint": float(np.mean([_distance(z @ w, Q) for w in directions.T])),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Second moments are Q and 0, Q is 1 + rho, and every distance from the Gaussian falls at least as d^(-1/4).

    Given S, E[z z^T] = (Tr S^2/d) I holds exactly at every d, and E Tr S^2/d = 1 + r/d + 1/d; so no extrapolation is
    needed. Distances fall as d^(-1/2) (skewness) or faster, until samples no longer resolve them. The level is shared
    among all tests (Bonferroni), so that a true claim is refuted by chance at most once in a hundred runs.
    """
    sizes = {m.point.d for m in measurements}
    groups = [
        [m for m in measurements if (m.point.rho, m.point.tokens) == kind]
        for kind in sorted({(m.point.rho, m.point.tokens) for m in measurements})
    ]
    if len(sizes) < 3 or len(measurements) < 2 * len(sizes) * len(groups):
        return Verdict(Outcome.INCONCLUSIVE, "needs three values of d and two seeds at each", 0.0, "")
    pairs = [g[0].point.tokens * (g[0].point.tokens + 1) // 2 for g in groups]
    level = 1 - (1 - LEVEL) / sum(k * (k + 1) // 2 + 1 + len(DISTANCES) for k in pairs)
    tests: list[_Test] = []
    for group, k in zip(groups, pairs, strict=True):
        name = f"rho={group[0].point.rho:g} T={group[0].point.tokens}"
        # Q of a drawn teacher scatters as 1/d: weighted by d, every size has its say
        weight = 1 / np.mean([m.point.d for m in group])
        excess = [weight * m.point.d * (m.result["Q"] - _expected_Q(m.point)) for m in group]
        tests.append(_mean_test(f"{name} Q - (1 + r/d + 1/d)", excess, level))
        for i, j in zip(*np.triu_indices(k), strict=True):
            moment = [m.result["moments"][i, j] / m.result["Q"] - (i == j) for m in group]
            tests.append(_mean_test(f"{name} moment[{i},{j}]", moment, level))
        tests += [_exponent_test(name, distance, group, level) for distance in DISTANCES]
    return _verdict(tests)


@dataclass(frozen=True)
class _Test:
    """One test: its number with half the width of its interval, how far it is from failing, if it is sharp enough."""

    name: str
    value: float
    half: float
    margin: float
    sharp: bool


def _mean_test(name: str, values: Sequence[float], level: float) -> _Test:
    """Test that a mean is zero, sharply enough to see a tenth."""
    mean, low, high = mean_interval(values, level)
    half = (high - low) / 2
    error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return _Test(name, mean, half, (half - abs(mean)) / error, half < 0.1)


def _exponent_test(name: str, distance: str, group: Sequence[Measurement[Point]], level: float) -> _Test:
    """Test that a distance falls at least as d^SLOWEST, over the sizes at which the samples resolve it.

    A Gaussian sample of n values has itself a distance of about 0.87/sqrt(n): where the mean is not twice that, the size is
    left out, and with fewer than three sizes left nothing is said.
    """
    label = f"{name} exponent of the {distance} distance"
    sizes = {d: [m for m in group if m.point.d == d] for d in {m.point.d for m in group}}
    resolved = [
        m for same in sizes.values() if np.mean([m.result[distance] for m in same]) > 2 * _floor(same[0].point, distance)
        for m in same
    ]  # fmt: skip
    if len({m.point.d for m in resolved}) < 3:
        return _Test(label, 0.0, np.inf, 0.0, sharp=False)
    line = fit_line([np.log(m.point.d) for m in resolved], [np.log(m.result[distance]) for m in resolved])
    low, high = line.slope_interval(level)
    return _Test(label, line.slope, (high - low) / 2, (SLOWEST - low) / line.slope_error, high < SLOWEST)


def _floor(point: Point, distance: str) -> float:
    """Return the mean Kolmogorov-Smirnov distance of a Gaussian sample as large as the one that was taken."""
    T = point.tokens
    values = {"diagonal": T, "off_diagonal": T * (T - 1) // 2, "joint": 1}[distance] * point.samples
    return float(0.8687 / np.sqrt(values))


def _verdict(tests: list[_Test]) -> Verdict:
    worst = min(tests, key=lambda test: test.margin)
    blurred = [test.name for test in tests if not test.sharp]
    moments = max(abs(test.value) for test in tests if "moment[" in test.name)
    slowest = max(test.value for test in tests if "exponent" in test.name)
    numbers: dict[str, float] = {}
    for test in tests:
        numbers |= {test.name: test.value, f"{test.name} ±": test.half}
    reason = (
        f"second moments over Q are within {moments:.4f} of 1 and 0, and the slowest distance from the Gaussian goes as"
        f" d^{slowest:.2f}; of {len(tests)} tests, nearest to failing is {worst.name} = {worst.value:.2g} ± {worst.half:.2g}"
    )
    if worst.margin < 0:
        return Verdict(Outcome.REFUTED, f"{worst.name} fails; {reason}", worst.margin, "standard errors", numbers)
    if blurred:
        reason = f"too noisy to decide {', '.join(blurred)}; {reason}"
        return Verdict(Outcome.INCONCLUSIVE, reason, worst.margin, "standard errors", numbers)
    return Verdict(Outcome.SUPPORTED, reason, worst.margin, "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Distances from the Gaussian against d, and mean second moments against 1/d."""
    return _distances(measurements) + _moments(measurements)


def _distances(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (label, {"rho": m.point.rho, "tokens": m.point.tokens}, m.point.d, m.result[name], None)
        for name, label in DISTANCES.items()
        for m in measurements
    ]
    return gather(rows, "d", "distance from the Gaussian")


def _moments(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = []
    for m in measurements:
        settings, value = {"rho": m.point.rho, "tokens": m.point.tokens}, float(np.diag(m.result["moments"]).mean())
        rows.append(("mean of h_ab² / (1 + δ_ab)", settings, 1 / m.point.d, value, _expected_Q(m.point)))
    return gather(rows, "1/d", "second moment")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the distances against d, and the second moments against 1/d."""
    figure, (left, right) = panels(2)
    kinds = sorted({(m.point.rho, m.point.tokens) for m in measurements})
    first = [m for m in measurements if (m.point.rho, m.point.tokens) == kinds[len(kinds) // 2]]
    sizes = sorted({m.point.d for m in first})
    for i, distance in enumerate(_distances(first)):
        drawn(left, distance, color=COLOURS[i], fmt=MARKERS[i])
    floor = _floor(first[0].point, "joint")
    left.axhline(floor, linestyle=":", **THEORY)
    left.text(sizes[0], floor, "resolution of the samples", va="bottom", fontsize=8)
    left.set_title(f"rho = {first[0].point.rho:g}, T = {first[0].point.tokens}", fontsize=10)
    left.set(xscale="log", yscale="log", xlabel="token dimension d", ylabel="distance from the Gaussian (KS)")
    left.set_xticks(sizes, [str(d) for d in sizes])
    left.minorticks_off()
    left.legend(frameon=False, fontsize=9)
    for i, moment in enumerate(_moments(measurements)):
        rho, T = moment.settings["rho"], moment.settings["tokens"]
        style = {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[i % len(MARKERS)]}
        drawn(right, points(moment), f"rho = {rho:g}, T = {T}", **style)
        line = np.array([0.0, max(moment.x)])
        right.plot(line, 1 + rho + line, **THEORY)  # exact where rho d is an integer
    right.set(xlabel="1/d", ylabel="mean of h_ab² / (1 + δ_ab)", xlim=(0, None))
    right.plot([], [], label="1 + rho + 1/d", **THEORY)
    right.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect drawing the tokens and one product with S per chunk."""
    work = point.samples * point.tokens * point.d
    pairs = point.tokens * (point.tokens + 1) // 2
    memory = 60_000_000 + 8 * (CHUNK * point.tokens * 3 * point.d + 4 * point.samples * pairs)
    return Cost(
        0.02 + 6e-7 * point.samples + 1.6e-8 * work + 2.5e-11 * work * point.d,
        memory,
    )


def finding(numbers: Numbers) -> str:
    """Say how Gaussian the indices are, and how fast they become so."""
    moments = [abs(value) for name, value in numbers.items() if "moment[" in name and not name.endswith("±")]
    exponents = [value for name, value in numbers.items() if name.endswith("distance")]
    if not moments or not exponents:
        raise LookupError("moment, exponent")
    return (
        f"Attention indices become Gaussian as d grows: their second moments agree with theory to {max(moments):.1%}, and"
        f" their distance from a Gaussian falls as d^{max(exponents):.2f} or faster"
    )


def _expected_Q(point: Point) -> float:
    """Return E Tr S^2/d = 1 + r/d + 1/d for a Wishart teacher of width r."""
    return 1 + (round(point.rho * point.d) + 1) / point.d


def _distance(values: NDArray[np.float64], variance: float) -> float:
    """Return the Kolmogorov-Smirnov distance of the values from N(0, variance)."""
    from scipy.special import ndtr

    cdf = ndtr(np.sort(values, axis=None) / np.sqrt(variance))
    steps = np.arange(values.size + 1) / values.size
    return float(max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max()))


CLAIM = Claim(
    id="aim.gaussian-indices",
    version=1,
    statement=(
        "For Gaussian tokens the attention indices h_ab become jointly Gaussian as d grows, uncorrelated, with variance"
        " Q (1 + delta_ab), Q = 1 + rho."
    ),
    formula=(
        r"h_{ab}=\frac{x_a^\top S\,x_b-\delta_{ab}\operatorname{Tr}S}{\sqrt d}\;\to\;"
        r"N\left(0,\;Q\,(1+\delta_{ab})\right),\qquad Q=1+\rho"
    ),
    source="boncoraglio2025bayes, the model",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (16, 32, 64, 128, 256)], seeds=8),
        "full": Sweep(
            [
                Point(d=d, rho=rho, tokens=T, samples=200_000)
                for d in (16, 32, 64, 128, 256, 512)
                for rho, T in ((0.1, 2), (0.5, 2), (0.5, 4), (2.0, 2))
            ],
            seeds=12,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: distance of the attention indices from a Gaussian (Kolmogorov-Smirnov) against d, for diagonal and"
        " off-diagonal indices and for random directions among all of them. Right: mean of their squares, scaled to the"
        " same variance, against 1/d; the line is the exact mean. Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
)
