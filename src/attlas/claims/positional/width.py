"""positional.width: where learning begins, from a teacher of rank one to one of extensive width.

The threshold is one over the information that outputs carry about the Gram matrix of the indices. That information is drawn
here; a spectral method is run below and above the formula, and above it is compared with its own theory for large d.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from attlas import positional
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, Undecided, finite_size, mean, slope
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, finished, panels, ticks
from attlas.claims.finding import named, within
from attlas.claims.mutation import Mutation, changed
from attlas.claims.positional.kit import LIMIT, SIZES, own_stream
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, below, decide
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

EPS, NEAR = 0.025, 0.08  # of the threshold, and of the overlap above it
DRAWS = 10_000  # of the information, for every seed
FALLS = -0.3  # power of d of the overlap below
INFORMATION, POWER, OVERLAP = "formula times information", "power of d of the overlap", "overlap over theory"


class Point(Settings):
    """Tokens and rank. Size 0 draws the information; else a spectral method runs at `over` times the formula."""

    tokens: int = Field(2, ge=2)
    rank: PositiveInt
    over: NonNegativeFloat = 0.0
    d: NonNegativeInt = 0

    @property
    def label(self) -> str:
        """The settings in words."""
        return f"L = {self.tokens}, r = {self.rank}"

    @property
    def name(self) -> str:
        """Of the random stream: no two places share data."""
        return f"{self.label}, {self.over:g}, {self.d}"


def measure(point: Point, seed: int) -> Result:
    """Draw Tr(E[G|y]/r - I)^2, one over whose mean is the threshold; at a size, the overlap of the spectral method.

    ``theory`` is the overlap at d = infinity, given for two tokens above the threshold.
    """
    L, r = point.tokens, point.rank
    formula = positional.weak_recovery(L, r)
    if not point.d:
        z = stream(seed, "indices", point.label).standard_normal((DRAWS, L, r))
        logits = z @ z.transpose(0, 2, 1)
        weights = np.exp(logits - logits.max(2, keepdims=True))
        C = _gram(logits, weights, r) / r - np.eye(L)
        return {"information": float(np.mean(np.sum(C * C, axis=(1, 2)))), "formula": formula}
    task = positional.sample_teacher(L, point.d, point.over * formula, own_stream(seed, "task", point.name), rank=r)
    found = positional.spectral(task.X, task.attention, r).overlap(task.W)
    said = {"theory": predicted_overlap(r, point.over)} if point.over > 1 else {}
    return {"overlap": found, "formula": formula} | said


@lru_cache(maxsize=64)
def predicted_overlap(rank: int, over: float) -> float:
    """Return the squared overlap of `positional.spectral` with a teacher of two tokens as d grows, above the threshold.

    The theory of spectral methods for one index (Lu and Li 2020, Mondelli and Montanari 2019) with traces over the tokens.
    With A = F (lambda - F)^-1 = C ((lambda - 1) C + lambda k)^-1, the eigenvalue of the teacher solves

        lambda E Tr[(I + C) A] = lambda (1/alpha + E Tr A),

    above the place where the right side is least, and overlap = (1/alpha - E Tr A^2)/(1/alpha + E Tr[C A^2]).
    """
    from scipy.optimize import brentq

    inverse, k = 1 / (over * positional.weak_recovery(2, rank)), max(np.sqrt(over), 1.05)
    c, weights = _spectrum(rank)

    def average(values: Array) -> float:
        return float(weights @ values.sum(1))

    def A(place: float) -> Array:
        return np.asarray(c / ((place - 1) * c + place * k))

    def rise(place: float) -> float:  # slope of the right side
        return inverse - average(A(place) ** 2)

    least = float(np.max(c / (c + k))) * (1 + 1e-6)
    edge = float(brentq(rise, least, 100)) if rise(least) < 0 else least

    def surplus(place: float) -> float:
        return average(c * A(place)) - inverse

    if surplus(edge) <= 0:
        return 0.0
    place = float(brentq(surplus, edge, 100))
    return rise(place) / (inverse + average(c * A(place) ** 2))


def _spectrum(rank: int) -> tuple[Array, Array]:
    """Return eigenvalues of C = E[G|y]/r - I for two tokens, over nodes, and the weights of the nodes.

    In the rotated tokens C + I = ((g^2 + r - 1, g s), (g s, s^2))/r, g standard normal and s^2 chi-squared of r degrees.
    """
    from scipy.special import gammaln

    g, normal = np.polynomial.hermite_e.hermegauss(60)
    x, uniform = np.polynomial.legendre.leggauss(120)
    half = (np.sqrt(rank) + 8) / 2
    s = half * (x + 1)
    chi = uniform * half * np.exp((rank - 1) * np.log(s) - s * s / 2 - (rank / 2 - 1) * np.log(2) - gammaln(rank / 2))
    g, s = (np.ravel(one) for one in np.meshgrid(g, s, indexing="ij"))
    first, second, cross = (g * g + rank - 1) / rank, s * s / rank, g * s / rank
    middle, reach = (first + second) / 2, np.sqrt((first - second) ** 2 / 4 + cross**2)
    weights = np.outer(normal / normal.sum(), chi / chi.sum()).ravel()
    return np.column_stack([middle - reach, middle + reach]) - 1, weights


def _gram(logits: Array, weights: Array, r: int) -> Array:
    """Return E[G|y], where weights that underflow are read off the logits: the same numbers, whatever their size."""
    shown = weights / weights.sum(2, keepdims=True)
    safe = shown.min((1, 2)) > 1e-14
    found = np.empty_like(logits)
    if safe.any():
        found[safe] = positional.read_gram(shown[safe], r)
    if not safe.all():
        found[~safe] = _from_logits(logits[~safe], r)
    return found


def _from_logits(G: Array, r: int) -> Array:
    """Return E[G|y] from G itself: all of it is seen but for |r|^2, whose mean is that of the projection and the rest."""
    L = G.shape[1]
    basis = np.linalg.qr(np.column_stack([np.ones(L), np.eye(L)[:, 1:]]))[0]
    turned = basis.T @ G @ basis
    cross, inner = turned[:, :1, 1:], turned[:, 1:, 1:]
    hidden = cross @ np.linalg.pinv(inner, hermitian=True) @ cross.transpose(0, 2, 1) + max(r - L + 1, 0)
    turned = turned.copy()
    turned[:, :1, :1] = hidden
    return np.asarray(basis @ turned @ basis.T)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """One over the drawn information is the formula; the spectral overlap falls with d below it, and is theory's above."""
    drawn_, run = ([m for m in measurements if bool(m.point.d) is size] for size in (False, True))
    if not drawn_ or len({m.point.over > 1 for m in run}) < 2:
        raise Undecided("needs the information (d = 0) and sizes of the spectral method below and above the threshold")
    tests = []
    for name in dict.fromkeys(m.point.label for m in drawn_):
        own = [m for m in drawn_ if m.point.label == name]
        tests.append(Test(f"{INFORMATION}, {name}", mean([m.result["information"] * m.result["formula"]
                                                          for m in own]), about(1, EPS), 1.0))  # fmt: skip
    for name, over in dict.fromkeys((m.point.label, m.point.over) for m in run):
        own = [m for m in run if (m.point.label, m.point.over) == (name, over)]
        if over < 1:
            power = slope(np.log([m.point.d for m in own]), np.log([m.result["overlap"] for m in own]))
            tests.append(Test(f"{POWER}, {name}, {over:g} of the threshold", power, below(FALLS)))
        else:
            limit = finite_size([(m.point.d, m.result["overlap"] / m.result["theory"]) for m in own], sizes=SIZES)
            tests.append(Test(f"{OVERLAP}, {name}, {over:g} times the threshold{LIMIT}", limit, about(1, NEAR), 1.0))
    most = max(m.result["overlap"] for m in run)
    tests.append(Test("largest overlap", Exact(most), below(1)))
    said = {f"predicted overlap, {m.point.label}, {m.point.over:g} times the threshold": m.result["theory"]
            for m in run if m.point.over > 1}  # fmt: skip
    return decide(tests, "one over the information that outputs carry, and what a spectral method sees", said)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Information over rank, and overlaps of the spectral method against size."""
    rows = [
        ("one over the information, over r", {"tokens": m.point.tokens}, m.point.rank,
         1 / m.result["information"] / m.point.rank, m.result["formula"] / m.point.rank)
        for m in measurements if not m.point.d
    ]  # fmt: skip
    return gather(rows, "rank", "threshold over rank") + _overlaps(measurements)


def _overlaps(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        ("spectral method", {"tokens": m.point.tokens, "rank": m.point.rank, "over": m.point.over}, m.point.d,
         m.result["overlap"], m.result.get("theory"))
        for m in measurements if m.point.d
    ]  # fmt: skip
    return gather(rows, "d", "overlap with the teacher")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the threshold over the rank from rank one to large ranks, and spectral overlaps against d."""
    figure, (left, right) = panels(2)
    shown = [one for one in series(measurements) if one.x_name == "rank"]
    for i, mine in enumerate(shown):
        L, colour = mine.settings["tokens"], COLOURS[i]
        ranks = np.arange(1, round(max(max(one.x) for one in shown)) + 1)
        left.plot(ranks, [positional.weak_recovery(L, int(r)) / r for r in ranks], **(THEORY | {"color": colour}))
        left.axhline(1 / (L * L + L - 2), linestyle=":", **(THEORY | {"color": colour}))
        drawn(left, mine, "", color=colour, fmt=MARKERS[i], linestyle="none")
        left.annotate(f"{L} tokens", (ranks[-1], 1 / (L * L + L - 2)), textcoords="offset points", xytext=(0, -12),
                      ha="right", color=colour, fontsize=9)  # fmt: skip
    left.set(xlabel="rank r", ylabel="threshold / rank", xscale="log", ylim=(0, None))
    ticks(left, {x for one in shown for x in one.x})
    cases = list(dict.fromkeys((m.point.tokens, m.point.rank) for m in measurements if m.point.d))
    for mine in _overlaps(measurements):
        rank, over = mine.settings["rank"], mine.settings["over"]
        i = cases.index((mine.settings["tokens"], rank))
        look = ("-", COLOURS[i]) if over > 1 else (":", "white")
        name = f"L = {mine.settings['tokens']}, r = {rank}, {over:g} of the threshold"
        if mine.theory is not None:
            right.axhline(mine.theory[0], **(THEORY | {"color": COLOURS[i]}))
        drawn(right, mine, name, color=COLOURS[i], fmt=MARKERS[i] + look[0], markerfacecolor=look[1])
    right.set(xlabel="token dimension d", ylabel="overlap with the teacher", xscale="log", yscale="log")
    ticks(right, {m.point.d for m in measurements if m.point.d})
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect one eigendecomposition and one product; or the draws."""
    if not point.d:
        return Cost(1e-6 * DRAWS * (1 + 0.02 * point.rank), 150_000_000)
    n = point.over * positional.weak_recovery(point.tokens, point.rank) * point.d
    return Cost(
        5e-4 + 1e-10 * n * point.tokens * point.d**2 + 1.6e-10 * point.d**3, int(100_000_000 + 40 * n * point.d)
    )


def finding(numbers: Numbers) -> str:
    """Say how near the formula is, and the spectral method its theory."""
    near, powers, seen = (
        within(numbers, named(numbers, start, end), form)
        for start, end, form in ((INFORMATION, "", ".3f"), (POWER, "of the threshold", ".2f"), (OVERLAP, LIMIT, ".2f"))
    )
    return (
        "The threshold of learning runs from 1/(L² + L) at rank one to that of extensive width: the information in the"
        f" outputs is {near} times one over the formula. Below it what a spectral method sees falls like d to the power"
        f" {powers}; above it the overlap is {seen} times its theory"
    )


_RANKS = (1, 2, 4, 8, 32)
_BELOW, _ABOVE = ((2, 0.6), (4, 0.6)), ((1, 4.0), (4, 4.0))

CLAIM = Claim(
    id="positional.width",
    version=4,
    statement=(
        r"The $\alpha$ at which learning begins goes from $1/(L^2 + L)$ at rank one to the extensive-width value"
        " $r/(L^2 + L - 2)$: for two and three tokens and ranks up to 32 it is one over the information in the outputs,"
        " to 2.5 %. At 0.6 times it the overlap of a spectral method with the teacher falls faster than $d^{-0.3}$; at"
        " 4 times it, for two tokens and ranks 1 and 4, it tends to what the theory of that method says, to 8 %."
    ),
    formula=(
        r"\alpha_w=\frac{r^2}{(L^2+L-2)\,r+2\min(r,L-1)}=\frac{1}{\mathbb E\operatorname{Tr}(\mathbb E[G\mid y]/r-I)^2}"
    ),
    source="ours; boncoraglio2025bayes at extensive width",
    settings=Point,
    tiers={
        "quick": Sweep(
            [*(Point(tokens=L, rank=r) for L in (2, 3) for r in _RANKS),
             *(Point(rank=r, over=over, d=d) for r, over in _BELOW for d in (60, 100, 180, 320)),
             *(Point(rank=r, over=over, d=d) for r, over in _ABOVE for d in (80, 140, 240, 400))],
            seeds=(60, 30, 24, 20, 16) * 2 + (120, 100, 80, 70) * 2 + (120, 100, 80, 80) + (60, 50, 40, 30),
        ),
        "full": Sweep(
            [*(Point(tokens=L, rank=r) for L in (2, 3, 4) for r in (*_RANKS, 128)),
             *(Point(tokens=L, rank=r, over=over, d=d) for L in (2, 3) for r, over in _BELOW for d in (80, 160, 320, 640)),
             *(Point(rank=r, over=over, d=d) for r, over in (*_ABOVE, (2, 2.5), (8, 4.0)) for d in (80, 160, 320, 640))],
            seeds=(80, 50, 40, 30, 20, 20) * 3 + (120, 80, 60, 40) * 4 + (120, 80, 60, 40) * 4,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: threshold over the rank against the rank, one over the information drawn (points) and the formula (lines);"
        " dotted lines are the value at extensive width. Right: squared overlap of a spectral method with the teacher"
        " against d, above the threshold (filled) and below (open); horizontal lines are its theory above. Points are means"
        " with standard errors."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("the formula times {size:g}", (1.01, 1.05, 1.2), 1.05,
                 change=changed(lambda result, size: {"formula": result["formula"] * size})),
        Mutation("the threshold is 1/L times the rank, not 1/(L^2 + L)", (1.0,), 1.0,
                 change=lambda measurements, _: [_counted(m) for m in measurements]),
        Mutation("overlaps do not fall below the threshold: {size:g} at every d", (0.2,), 0.2,
                 change=changed(lambda result, size: {"overlap": size + 1e-3 * result["overlap"]}
                                if "overlap" in result and "theory" not in result else {})),
        Mutation("the overlap of the theory times {size:g}", (1.05, 1.15, 2.0), 1.15,
                 change=changed(lambda result, size: {"theory": result["theory"] * size} if "theory" in result else {})),
        Mutation("the spectral method sees {size:g} of what it does", (0.95, 0.85, 0.5, 0.05), 0.85,
                 change=changed(lambda result, size: {"overlap": size * result["overlap"]} if "theory" in result else {})),
        Mutation("the teacher leaks above the threshold: overlaps are {size:g}", (0.99, 1.0), 0.99,
                 change=changed(lambda result, size: {"overlap": size} if "theory" in result else {})),
    ],
    unseen=(
        "Where between 0.6 and 4 times the formula the spectral method begins to see the teacher; thresholds of exact"
        " recovery at rank above one."
    ),
    design=(
        "In a pilot the information had standard errors of 0.2 to 0.4 % and overlaps above the threshold 0.5 % (rank 4) and"
        " 1.3 % (rank 1) at d = infinity; at 2.5 times the threshold sizes below 100 bend away from the law 1/d, hence 4"
        " times. Overlaps below fell like d to -0.47 and -0.51. A true theory was supported in 98 % of resampled pilot runs."
    ),
)  # fmt: skip


def _counted(m: Measurement[Point]) -> Measurement[Point]:
    return Measurement(m.point, m.seed, m.result | {"formula": m.point.rank / m.point.tokens})
