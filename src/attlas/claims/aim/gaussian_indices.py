"""aim.gaussian-indices: attention indices are jointly Gaussian with variance Q (1 + delta_ab)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from attlas import tokens
from attlas.aim import teacher
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, Undecided, mean, slope
from attlas.claims.figure import COLOURS, MARKERS, THEORY, distinct, drawn, finished, panels
from attlas.claims.finding import ending, off
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, above, below, between, decide
from attlas.layers import attention_indices
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = 0.02  # of the second moments, in units of Q
SLOWEST = -0.25  # distances go as d^(-1/2); one that tends to a constant has an exponent of nearly zero
CHUNK = 2000
DIRECTIONS = 8
DISTANCES = {"diagonal": "h_aa", "off_diagonal": "h_ab", "joint": "random directions"}
WRITTEN = {"h_aa": "diagonal, $h_{aa}$", "h_ab": "off the diagonal, $h_{ab}$", "random directions": "random directions"}


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
    """Second moments are Q and 0 to 2 % of Q, Q is 1 + rho + 1/d to 2 %, every distance falls faster than d^(-1/4).

    Given S, E[z z^T] = (Tr S^2/d) I holds exactly at every d, and E Tr S^2/d = 1 + r/d + 1/d; so no extrapolation is
    needed. Distances fall as d^(-1/2) (skewness) or faster, until samples no longer resolve them.
    """
    smallest = min(float(m.result[distance]) for m in measurements for distance in DISTANCES)
    tests = [Test("smallest distance from the Gaussian", Exact(smallest), above(0))]
    if smallest <= 0:  # of a sample it never is
        return decide(tests)
    for kind in sorted({(m.point.rho, m.point.tokens) for m in measurements}):
        group = [m for m in measurements if (m.point.rho, m.point.tokens) == kind]
        name, pairs = f"rho = {kind[0]:g}, T = {kind[1]}", kind[1] * (kind[1] + 1) // 2
        # Q of a drawn teacher scatters as 1/d
        weight = 1 / np.mean([m.point.d**2 for m in group])
        excess = [weight * m.point.d**2 * (m.result["Q"] / _expected_Q(m.point) - 1) for m in group]
        tests.append(Test(f"{name}: Q over 1 + r/d + 1/d, less 1", mean(excess), between(-EPS, EPS), expected=0.0))
        for i, j in zip(*np.triu_indices(pairs), strict=True):
            moment = mean([m.result["moments"][i, j] / m.result["Q"] for m in group])
            region = about(1, EPS) if i == j else between(-EPS, EPS)
            tests.append(Test(f"{name}: moment[{i},{j}] over Q", moment, region, expected=float(i == j)))
        tests += [_exponent(name, distance, group) for distance in DISTANCES]
    return decide(tests)


def _exponent(name: str, distance: str, group: Sequence[Measurement[Point]]) -> Test:
    """Test that a distance falls at least as d^SLOWEST, over the sizes at which the samples resolve it.

    A Gaussian sample of n values has itself a distance of about 0.87/sqrt(n): where the mean is not twice that, the size is
    left out, and with fewer than three sizes left nothing is said.
    """
    sizes = {d: [m for m in group if m.point.d == d] for d in {m.point.d for m in group}}
    resolved = [
        m for same in sizes.values() if np.mean([m.result[distance] for m in same]) > 2 * _floor(same[0].point, distance)
        for m in same
    ]  # fmt: skip
    if len({m.point.d for m in resolved}) < 3:
        raise Undecided("needs three values of d at which the samples resolve the distance from the Gaussian")
    found = slope([np.log(m.point.d) for m in resolved], [np.log(m.result[distance]) for m in resolved])
    return Test(f"{name}: exponent of the {distance} distance", found, below(SLOWEST))


def _floor(point: Point, distance: str) -> float:
    """Return the mean Kolmogorov-Smirnov distance of a Gaussian sample as large as the one that was taken."""
    T = point.tokens
    values = {"diagonal": T, "off_diagonal": T * (T - 1) // 2, "joint": 1}[distance] * point.samples
    return float(0.8687 / np.sqrt(values))


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
        drawn(left, distance, WRITTEN[distance.name], color=COLOURS[i], fmt=MARKERS[i])
    floor = _floor(first[0].point, "joint")
    left.axhline(floor, linestyle=":", **THEORY)
    left.text(sizes[0], floor, "resolution of the samples", va="bottom", fontsize=8)
    left.set_title(f"rho = {first[0].point.rho:g}, T = {first[0].point.tokens}", fontsize=10)
    left.set(xscale="log", yscale="log", xlabel="token dimension d", ylabel="distance from the Gaussian")
    left.set_xticks(sizes, [str(d) for d in sizes])
    left.minorticks_off()
    for i, moment in enumerate(_moments(measurements)):
        rho, T = moment.settings["rho"], moment.settings["tokens"]
        style = distinct(i)
        drawn(right, points(moment), f"rho = {rho:g}, T = {T}", **style)
        line = np.array([0.0, max(moment.x)])
        right.plot(line, 1 + rho + line, **THEORY)  # exact where rho d is an integer
    right.set(xlabel="1/d", ylabel=r"mean of $h_{ab}$² / ($1 + \delta_{ab}$)", xlim=(0, None))
    right.plot([], [], label="1 + rho + 1/d", **THEORY)
    return finished(figure)


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
    moments = [abs(value - (i == j)) for i, j, value in _moments_of(numbers)]
    known = max(ending(numbers, "] over Q ±"))
    slowest = max(ending(numbers, "distance"))
    half = max(
        numbers[f"{name} ±"] for name, value in numbers.items() if value == slowest and name.endswith("distance")
    )
    return (
        f"Attention indices become Gaussian as d grows: their second moments agree with theory to {max(moments):.1%}"
        f" ({off(known, '.1%')}), and their distance from a Gaussian falls as d to the power {slowest:.2f}"
        f" {off(half)} or faster"
    )


def _moments_of(numbers: Numbers) -> list[tuple[int, int, float]]:
    """Return (i, j, second moment over Q) for all pairs of indices."""
    found = []
    for name, value in numbers.items():
        if name.endswith("] over Q"):
            i, j = name.partition("moment[")[2].partition("]")[0].split(",")
            found.append((int(i), int(j), value))
    if not found:
        raise LookupError("moment")
    return found


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
    version=2,
    statement=(
        "For Gaussian tokens the attention indices $h_{ab}$ become jointly Gaussian as d grows, uncorrelated, with"
        r" variance $Q\,(1 + \delta_{ab})$, $Q = 1 + \rho$: second moments to 2 %, distances from the Gaussian falling"
        " faster than $d^{-1/4}$."
    ),
    formula=(
        r"h_{ab}=\frac{x_a^\top S\,x_b-\delta_{ab}\operatorname{Tr}S}{\sqrt d}\;\to\;"
        r"N\left(0,\;Q\,(1+\delta_{ab})\right),\qquad Q=1+\rho"
    ),
    source="boncoraglio2025bayes, the model",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (16, 32, 64, 128, 256)], seeds=(24, 16, 8, 8, 8)),
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
    mutations=[
        Mutation("second moments times {size:g}", (1.01, 1.04, 1.1), 1.04, change=scaled("moments")),
        Mutation("Q times {size:g}", (1.01, 1.05, 1.1), 1.05, change=scaled("Q")),
        Mutation(
            "indices correlated by {size:g}",
            (0.01, 0.04, 0.1),
            0.04,
            change=changed(lambda result, size: {"moments": result["moments"] + size * result["Q"]}),
        ),
        Mutation(
            "a distance of {size:g} that stays at every d",
            (0.005, 0.02, 0.05),
            0.05,
            change=changed(lambda result, size: {name: float(np.hypot(result[name], size)) for name in DISTANCES}),
        ),
        Mutation("distances times {size:g}", (0.0,), 0.0, change=scaled(*DISTANCES)),
    ],
    unseen="A distance from the Gaussian that stays, if it is smaller than those of the sizes tried.",
    design=(
        "In a pilot second moments over Q were known to 0.1 % and Q itself to 0.4 %, and exponents to 0.03: a true claim is"
        " supported with probability 0.99."
    ),
)
