"""features.sharp-spectrum: the eigenvalues of the infinite-head kernel, on query harmonics times averages of key harmonics.

The sum over the eigenfunctions of a sector, Z_ab(X, X') = sum_f f(X) f(X'), depends on inner products of tokens alone.
Different sectors are orthogonal over pairs of sequences that are drawn apart, so the least-squares coefficients of the
kernel on the sectors are its eigenvalues, and what is left over is what the other sectors hold.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import mean
from attlas.claims.features import kit
from attlas.claims.figure import COLOURS, MARKERS, THEORY, finished, panels
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, about, decide
from attlas.features import attention_kernel
from attlas.numerics import stream
from attlas.tokens import sphere

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SECTORS = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (3, 0), (0, 3), (2, 2))
OF_KEYS = tuple((a, b) for a, b in SECTORS if b)
EPS, REST, TRACE = 0.03, 0.05, 0.01  # of an eigenvalue, of what the other sectors hold, of the trace
REMAINDER, DIAGONAL = "variance outside of the sectors over predicted", "trace over predicted"


class Point(Settings):
    """Tokens, scoring function, and how many sequences are compared with each other."""

    d: int = Field(8, ge=3)
    keys: int = Field(8, ge=1)
    scoring: str = "relu"
    n: int = Field(300, ge=50)


def measure(point: Point, seed: int) -> Result:
    """Return the eigenvalues that pairs of sequences show, and the theory's; the rest and the trace over the theory's."""
    return compare(point, seed)


def compare(point: Point, seed: int, length: float = 1.0) -> Result:
    """Compare the kernel of tokens of a length that should be one with the theory."""
    X = sphere(point.n, point.keys + 1, point.d, stream(seed, "sequences", str(point)))
    K = attention_kernel(length * X, activation=point.scoring)
    pairs = np.triu_indices(point.n, 1)
    seen = K[pairs]
    Z = np.stack([z[pairs] for z in sector_sums(X)], axis=1)
    found, *_ = np.linalg.lstsq(Z, seen, rcond=None)
    theory = expected(point)
    left = float(np.mean((seen - Z @ found) ** 2))
    return {
        "eigenvalues": found,
        "theory": theory["eigenvalues"],
        "rest": left / theory["rest"],
        "trace": float(np.mean(np.diagonal(K))) / theory["trace"],
    }


def sector_sums(X: Array) -> list[Array]:
    """Return Z_ab of all pairs of sequences, N_a N_b P_a(<x_0, x_0'>) (1/N) sum_ij P_b(<x_i, x_j'>), for every sector."""
    n, tokens, d = X.shape
    u = _legendre(X[:, 0] @ X[:, 0].T, d)
    keys = X[:, 1:].reshape(-1, d)
    count = tokens - 1
    by_keys = [np.zeros((n, n)) for _ in range(4)]
    for rows in np.array_split(np.arange(n), max(1, n // 50)):  # n x n x keys x keys numbers are not held at once
        inner = X[rows, 1:].reshape(-1, d) @ keys.T
        for whole, part in zip(by_keys, _legendre(inner, d), strict=True):
            whole[rows] = part.reshape(len(rows), count, n, count).sum((1, 3)) / count
    by_keys[0][:] = 1.0  # a function of the query alone is there once, not N times
    return [harmonics(a, d) * harmonics(b, d) * u[a] * by_keys[b] for a, b in SECTORS]


def harmonics(degree: int, d: int) -> int:
    """Return the dimension of the harmonics of a degree in d dimensions, counted by polynomials."""
    from math import comb

    return comb(degree + d - 1, d - 1) - (comb(degree + d - 3, d - 1) if degree >= 2 else 0)


def _legendre(t: Array, d: int) -> list[Array]:
    """Return P_0 to P_3 of the sphere in d dimensions, one at t = 1."""
    found = [np.ones_like(t), t]
    for k in (1, 2):
        found.append(((2 * k + d - 2) * t * found[k] - k * found[k - 1]) / (k + d - 2))
    return found


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Judge every eigenvalue, what the other sectors hold, and the trace, each over the theory's."""
    tests, points = [], list(dict.fromkeys(m.point for m in measurements))
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        ratios = np.array([result["eigenvalues"] / result["theory"] for result in mine])
        for place, sector in enumerate(SECTORS):
            name = f"{_label(point)}: eigenvalue {sector} over predicted"
            tests.append(Test(name, mean(ratios[:, place]), about(1.0, EPS), 1.0))
        for name, part, eps in ((REMAINDER, "rest", REST), (DIAGONAL, "trace", TRACE)):
            values = mean([result[part] for result in mine])
            tests.append(Test(f"{_label(point)}: {name}", values, about(1.0, eps), 1.0))
    worst = max(abs(test.estimate.value - 1) for test in tests if "eigenvalue" in test.name)
    told = {"largest deviation of an eigenvalue": worst, "eigenvalues": float(len(points) * len(SECTORS))}
    return decide(tests, "eigenvalues seen in pairs of sequences, over the predicted ones", told)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return eigenvalues, seen and predicted, in the order of the sectors."""
    rows = [
        (_label(m.point), {"d": m.point.d, "keys": m.point.keys, "scoring": m.point.scoring}, float(place), seen, told)
        for m in measurements
        for place, (seen, told) in enumerate(zip(m.result["eigenvalues"], m.result["theory"], strict=True))
    ]
    return gather(rows, "sector", "eigenvalue")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the eigenvalues of the sectors, and their ratios to the predicted ones."""
    figure, (left, right) = panels(2)
    right.axhline(1.0, **THEORY)
    for i, one in enumerate(series(measurements)):
        x, seen, error, told = (np.asarray(part) for part in (one.x, one.mean, one.standard_error, one.theory))
        style: dict[str, Any] = {
            "color": COLOURS[i % len(COLOURS)],
            "fmt": MARKERS[i % len(MARKERS)],
            "capsize": 2,
            "markersize": 5,
        }
        left.plot(x, told, **(THEORY | {"color": style["color"]}))
        left.errorbar(x, seen, yerr=error, linestyle="none", label=one.name.replace("relu", "ReLU"), **style)
        right.errorbar(x + 0.12 * (i - 1), seen / told, yerr=error / told, linestyle="none", **style)
    for axis in (left, right):
        axis.set_xticks(range(len(SECTORS)), [f"{a}, {b}" for a, b in SECTORS], fontsize=8)
        axis.set_xlabel("degrees of the sector: query, key")
    left.set(ylabel="eigenvalue", yscale="log")
    right.set(ylabel="seen / predicted")
    return finished(figure)


def finding(numbers: Numbers) -> str:
    """Return the largest deviation in a sentence."""
    known = [half for name, half in numbers.items() if "eigenvalue (" in name and name.endswith("over predicted ±")]
    return (
        f"All {numbers['eigenvalues']:.0f} eigenvalues that were looked at, over seven orders of magnitude, are within"
        f" {100 * numbers['largest deviation of an eigenvalue']:.2g} % of the predicted ones (means over draws, each"
        " known to"
        f" ± {100 * max(known):.2g} % or better)"
    )


def cost(point: Point) -> Cost:
    """Expect a kernel and the Legendre polynomials of all pairs of tokens."""
    return Cost(
        0.03 + 2.4e-8 * point.n**2 * point.keys**2, int(200_000_000 + 120 * point.n**2 + 2000 * point.n * point.keys**2)
    )


def _label(point: Point) -> str:
    return f"{point.scoring}, d = {point.d}, N = {point.keys}"


@cache
def expected(point: Point) -> dict[str, Array | float]:
    """Return what the theory says: eigenvalues, the sum of mu lambda^2 of the other sectors, and the trace."""
    own = kit.theory(point.d, point.keys, scoring=point.scoring)
    table = own.spectrum()
    names = [str(sector) for sector in SECTORS]
    others = table.drop_sel(sector=names)
    return {
        "eigenvalues": table.eigenvalue.sel(sector=names).values,
        "rest": float((others.multiplicity * others.eigenvalue**2).sum()),
        "trace": own.trace,
    }


def _wrong(*chosen: tuple[int, int]) -> Any:
    """Return a change that multiplies the predicted eigenvalues of these sectors by the size."""
    where = np.array([sector in chosen for sector in SECTORS])
    return changed(lambda result, size: {"theory": np.where(where, size, 1.0) * result["theory"]})


CLAIM = Claim(
    id="features.sharp-spectrum",
    version=1,
    statement=(
        "The kernel of infinitely many random heads on the sphere is diagonal in harmonics of the query of degree a times"
        " averages over keys of harmonics of degree b, with the eigenvalues of the formula (ours): eleven of them, for two"
        " scoring functions, to 3 %; all other sectors together to 5 %; the trace to 1 %."
    ),
    formula=(
        r"\lambda_{ab}=D_b\sum_k c_k^2\,m_{ka}\,2m_{k+1,b},\qquad m_{ka}=\mathbb{E}\bigl[\bigl(\tfrac{1+t}{2}\bigr)^k"
        r"P_a(t)\bigr],\qquad D_0=1,\;D_b=\tfrac1N"
    ),
    source="ours, docs/features.md; the model is fu2023random's",
    settings=Point,
    tiers={
        "quick": Sweep([Point(), Point(scoring="sigmoid"), Point(d=5, keys=16)], seeds=12),
        "full": Sweep(
            [
                Point(n=1000),
                Point(scoring="exp", n=1000),
                Point(scoring="erf", n=1000),
                Point(d=16, keys=16, n=1000),
                Point(d=5, keys=32, n=600),
            ],
            seeds=12,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: eigenvalues of the infinite-head kernel by sector, seen in pairs of sequences (points) and predicted (lines)."
        " Right: their ratio. Means over draws with standard errors, most of them smaller than the points."
    ),
    finding=finding,
    series=series,
    mutations=[
        Mutation("all eigenvalues are {size:g} of what they are", (1.01, 1.03, 1.05, 1.2), 1.05, _wrong(*SECTORS)),
        Mutation("eigenvalue (1, 1) is {size:g} of what it is", (1.01, 1.05, 1.2), 1.05, _wrong((1, 1))),
        Mutation("averages over keys count {size:g} times", (1.05, 2.0, 8.0), 1.05, _wrong(*OF_KEYS)),
        Mutation("the other sectors hold {size:g} of what they do", (0.95, 0.9, 0.5), 0.9, scaled("rest")),
        Mutation("the trace is {size:g} of what it is", (1.005, 1.02, 1.1), 1.02, scaled("trace")),
        Mutation(
            "tokens have length {size:g}",
            (1.01, 1.05, 1.2),
            1.05,
            measure=compare,
        ),
    ],
    unseen=(
        "Single eigenvalues of degrees above three; a bias, whose blocks are checked by arithmetic in the tests; tokens that"
        " are not on the sphere."
    ),
    design=(
        "Eight draws of 300 sequences, made before the claim was written, scatter by less than 1.5 % for the smallest of the"
        " eleven eigenvalues and by 1e-4 for the largest, by 1.6 % for the rest and 0.3 % for the trace: 12 draws put every"
        " interval well inside 3, 5 and 1 %, and refute eigenvalues that are 5 % off."
    ),
)
