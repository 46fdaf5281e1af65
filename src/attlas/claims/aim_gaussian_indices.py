"""aim.gaussian-indices: attention indices are jointly Gaussian with variance Q (1 + delta_ab)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import tokens
from attlas.aim import teacher
from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels
from attlas.layers import attention_indices
from attlas.numerics import fit_line, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99  # of the whole family of tests
CHUNK = 2000
DISTANCES = {"diagonal": "h_aa", "off_diagonal": "h_ab", "joint": "random direction"}


class Point(Settings):
    """Sizes of the model."""

    d: PositiveInt
    rho: PositiveFloat = 0.5
    tokens: int = Field(2, ge=2)
    samples: int = Field(40_000, ge=100)


def measure(point: Point, seed: int) -> Result:
    """Draw a teacher and many sequences; return moments of the indices and their distances from the Gaussian.

    With z_ab = h_ab / sqrt(1 + delta_ab), a <= b: ``moments`` is the matrix E[z z^T] over pairs, which should tend to
    Q I with Q = 1 + rho. The distances are Kolmogorov-Smirnov, to N(0, Tr S^2/d), of the diagonal indices, of the
    off-diagonal ones and of one random direction in the space of all.
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
    direction = stream(seed, "direction", str(point.d)).standard_normal(len(scale))
    direction /= np.linalg.norm(direction)
    diagonal = scale > 1
    return {
        "moments": z.T @ z / point.samples,
        "diagonal": _distance(z[:, diagonal], Q),
        "off_diagonal": _distance(z[:, ~diagonal], Q),
        "joint": _distance(z @ direction, Q),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Moments, extrapolated to d = infinity, are Q and 0; every distance falls with d, and to nothing.

    Second moments are fitted linearly in 1/d, distances in d^(-1/2), the order of the skewness of h_aa. A distance
    falls to nothing if its limit may be what a Gaussian sample of that size would show, 0.87 / sqrt(samples). The level
    is shared among all tests (Bonferroni), so that a true claim is refuted by chance at most once in a hundred runs.
    """
    sizes = {m.point.d for m in measurements}
    groups = [
        [m for m in measurements if (m.point.rho, m.point.tokens) == kind]
        for kind in sorted({(m.point.rho, m.point.tokens) for m in measurements})
    ]
    if len(sizes) < 3 or len(measurements) < 2 * len(sizes) * len(groups):
        return Verdict(Outcome.INCONCLUSIVE, "needs three values of d and two seeds at each", 0.0, "")
    pairs = [g[0].point.tokens * (g[0].point.tokens + 1) // 2 for g in groups]
    level = 1 - (1 - LEVEL) / sum(k * (k + 1) // 2 + 2 * len(DISTANCES) for k in pairs)
    numbers: dict[str, float] = {}
    tests: list[tuple[str, float, bool]] = []  # name, distance from turning in standard errors, sharp enough to say
    for group, k in zip(groups, pairs, strict=True):
        name = f"rho={group[0].point.rho:g} T={group[0].point.tokens}"
        tests += _moment_tests(group, k, level, name, numbers)
        tests += _distance_tests(group, level, name, numbers)
    worst = min(tests, key=lambda test: test[1])
    blurred = [name for name, _, sharp in tests if not sharp]
    moments = max(abs(value) for name, value in numbers.items() if name.endswith("off by"))
    limits = max(value for name, value in numbers.items() if name.endswith("limit"))
    reason = (
        f"second moments extrapolate to within {moments:.3f} of Q and 0, distances from the Gaussian to {limits:.3f};"
        f" the closest test is {worst[0]}"
    )
    if worst[1] < 0:
        return Verdict(Outcome.REFUTED, f"{worst[0]} fails; {reason}", worst[1], "standard errors", numbers)
    if blurred:
        reason = f"too noisy to decide {', '.join(blurred)}; {reason}"
        return Verdict(Outcome.INCONCLUSIVE, reason, worst[1], "standard errors", numbers)
    return Verdict(Outcome.SUPPORTED, reason, worst[1], "standard errors", numbers)


def _moment_tests(
    group: list[Measurement[Point]], k: int, level: float, name: str, numbers: dict[str, float]
) -> list[tuple[str, float, bool]]:
    """Test every second moment against its limit."""
    tests, Q = [], 1 + group[0].point.rho
    x, weights = [1 / m.point.d for m in group], [m.point.d**2 for m in group]  # Q of a drawn teacher scatters as 1/d
    for i, j in zip(*np.triu_indices(k), strict=True):
        line = fit_line(x, [m.result["moments"][i, j] for m in group], weights)
        low, high = line.intercept_interval(level)
        half, off = (high - low) / 2, line.intercept - (Q if i == j else 0.0)
        label = f"{name} moment[{i},{j}]"
        numbers |= {f"{label} off by": off, f"{label} half-width": half}
        tests.append((label, (half - abs(off)) / line.intercept_error, half < 0.2 * Q))
    return tests


def _distance_tests(
    group: list[Measurement[Point]], level: float, name: str, numbers: dict[str, float]
) -> list[tuple[str, float, bool]]:
    """Test that every distance falls, and that its limit is that of a Gaussian sample."""
    tests, x = [], [m.point.d**-0.5 for m in group]
    floor = 0.8687 / np.sqrt(min(m.point.samples for m in group))  # mean of Kolmogorov's law
    for distance in DISTANCES:
        y = [m.result[distance] for m in group]
        line = fit_line(x, y)
        low, high = line.intercept_interval(level)
        slope_low, slope_high = line.slope_interval(level)
        label = f"{name} {distance}"
        numbers |= {f"{label} limit": line.intercept, f"{label} limit low": low, f"{label} slope": line.slope}
        tests.append((f"limit of {label}", (floor - low) / line.intercept_error, (high - low) / 2 < max(y) / 2))
        tests.append((f"fall of {label}", slope_high / line.slope_error, slope_low > 0))
    return tests


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the distances against d, and the second moments against 1/d."""
    figure, (left, right) = panels(2)
    sizes = sorted({m.point.d for m in measurements})
    for i, (name, label) in enumerate(DISTANCES.items()):
        values = [[m.result[name] for m in measurements if m.point.d == d] for d in sizes]
        means, errors = [float(np.mean(v)) for v in values], [_standard_error(v) for v in values]
        left.errorbar(sizes, means, errors, fmt=MARKERS[i], color=COLOURS[i], capsize=2, label=label)
    floor = 0.87 / np.sqrt(min(m.point.samples for m in measurements))
    left.axhline(floor, linestyle=":", **THEORY)
    left.text(sizes[0], floor, "resolution of the samples", va="bottom", fontsize=8)
    left.set(xscale="log", yscale="log", xlabel="token dimension d", ylabel="distance from the Gaussian (KS)")
    left.legend(frameon=False, fontsize=9)
    for i, (rho, T) in enumerate(sorted({(m.point.rho, m.point.tokens) for m in measurements})):
        group = [m for m in measurements if (m.point.rho, m.point.tokens) == (rho, T)]
        x = np.array([1 / m.point.d for m in group])
        mean = np.array([np.diag(m.result["moments"]).mean() for m in group])
        label = f"rho = {rho:g}, T = {T}"
        right.plot(x, mean, MARKERS[i], color=COLOURS[i], markersize=4, alpha=0.6, label=label)
        line = np.linspace(0, x.max(), 2)
        right.plot(line, 1 + rho + line, **THEORY)
    right.set(xlabel="1/d", ylabel="mean of h_ab² / (1 + δ_ab)", xlim=(0, None))
    right.plot([], [], label="1 + rho + 1/d", **THEORY)
    right.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect drawing the tokens and one product with S per chunk."""
    work = point.samples * point.tokens * point.d
    return Cost(0.02 + 1.6e-8 * work + 2.5e-11 * work * point.d, 60_000_000 + 8 * (CHUNK * point.tokens * 3 * point.d))


def _distance(values: NDArray[np.float64], variance: float) -> float:
    """Return the Kolmogorov-Smirnov distance of the values from N(0, variance)."""
    from scipy.special import ndtr

    cdf = ndtr(np.sort(values, axis=None) / np.sqrt(variance))
    steps = np.arange(values.size + 1) / values.size
    return float(max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max()))


def _standard_error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


CLAIM = Claim(
    id="aim.gaussian-indices",
    version=1,
    statement=(
        "For Gaussian tokens the attention indices h_ab become jointly Gaussian as d grows, uncorrelated, with variance"
        " Q (1 + delta_ab), Q = 1 + rho."
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
)
