"""Saturate and isolate: many heads from queries, every measurement the logit of a single head.

With two tokens [b + u; b] the last one answers f = b V_sum + D(u), D(u) = sum_h sigma(g_h u) u V_h, g_h = Theta_h^T b. For a
long u every head is a step across its hyperplane g_h u = 0: D is linear in each cell between them, and close to one
hyperplane exactly one head is between 0 and 1. So:

1. Along half a turn in a random plane every head has one step. Bisection finds them all; their number is that of the heads.
2. In the cells D is linear: the jumps between neighbouring cells are u V_h.
3. From a point on one head's step, small moves in every direction give its logits, that is g_h.
4. Three tokens [b + u; b + u; b] tell (g, V) from (-g, -V), which two cannot.
5. Other final tokens b + eps beta give g_h again, and the difference is eps Theta_h^T beta: no heads to match.

Length of u and distance from other steps are chosen so that the other heads are saturated to rounding. Noise in the answers
is measured first, D(2u) against 2 D(u), and widens the angles and tolerances; what is found is then off by about a thousand
times the noise, close enough for a fit of ordinary queries to start from.

References
----------
Ours; kim2026queries for the count of queries it is held against.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attlas.errors import AttlasError
from attlas.numerics import stream
from attlas.recovery.layer import Layer
from attlas.recovery.oracle import Counted

Array = NDArray[np.float64]

LONG = 1e8  # of u, while steps are searched
LONGER = 1e11  # for heads so flat that they are not saturated at 1e8
_NARROW = 3e-5  # radians: an interval in which a head is neither off nor on holds that one step
_SATURATED = 36.0  # a logit beyond this leaves the other side at 2e-16
_CLEAR = 2e-3  # sine of the angle to the nearest step, of directions that count as saturated
_STEPS = 40  # bisections of an interval with one step
_SPLITS = 300  # intervals looked into in one half turn, before the answers are taken not to be those of heads
_ROUNDING = 1e-12  # noise below this is none
NOISE = 5e-5  # relative, beyond which steps are not found


class _Lost(AttlasError):
    """This plane or these final tokens do not separate the heads; others may."""


def isolate(
    ask: Counted, d: int, seed: int, noise: float = 0.0, lengths: tuple[float, ...] = (LONG, LONGER), attempts: int = 5
) -> Iterator[tuple[Layer, float]]:
    """Yield what each attempt that separated the heads found, and the noise it assumed.

    Heads of equal Theta come out as one, silent ones not.

    Without noise the first is right; noise can mislead an attempt, which fresh queries tell.

    Parameters
    ----------
    ask : Counted
    d : int
        At least 2.
    seed : int
    noise : float
        Of the answers, relative, if it is known; more, if it is measured, counts.
    lengths : tuple of float
        Of u, tried in turn.
    attempts : int
        Planes and final tokens to try at each: one may be close to the steps of two heads at once.
    """
    total = np.array([ask(row[None]) for row in np.eye(d)])
    for long in lengths:
        rng = stream(seed, "isolate", f"{long:g}")
        level = max(noise, _measured_noise(ask, total, long, rng))
        for _ in range(attempts if level <= NOISE else 0):
            try:
                yield _attempt(ask, d, total, level, long, rng), level
            except _Lost:
                continue


def _measured_noise(ask: Counted, total: Array, long: float, rng: np.random.Generator) -> float:
    """Return by how much D(u) differs from 2 D(u/2), relative: nothing but noise, where all heads are saturated."""
    b, *directions = rng.standard_normal((4, len(total)))
    view = _View(ask, b / np.linalg.norm(b), total, 0.0, long)
    lengths = [long / np.linalg.norm(u) for u in directions]
    pairs = [(view(size * u / 2)[1], view(size * u)[1]) for size, u in zip(lengths, directions, strict=True)]
    missed = [float(np.linalg.norm(twice - 2 * once)) for once, twice in pairs]
    answers = [float(np.linalg.norm(twice + view.offset)) for _, twice in pairs]  # D is zero where all heads are off
    return max(difference / max(answer, 1e-300) for difference, answer in zip(missed, answers, strict=True))


def _attempt(ask: Counted, d: int, total: Array, noise: float, long: float, rng: np.random.Generator) -> Layer:
    b = rng.standard_normal(d)
    b /= np.linalg.norm(b)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0].T  # rows; the first two span the plane
    view = _View(ask, b, total, noise, long)
    plane = _Plane(view, basis)
    steps = _steps(plane)
    if not steps:
        if np.linalg.norm(total) == 0:
            raise _Lost("the answers are zero")
        return Layer(np.zeros((1, d, d)), total[None])  # linear: one head that looks at all alike
    cells = _cells(plane, steps)
    g = np.empty((len(steps), d))
    V = np.diff(cells, axis=0)
    for h, (angle, _) in enumerate(steps):
        g[h], sign = _seen(view, basis, angle, cells[h], V[h])
        g[h] *= sign
        V[h] *= sign
    V = _values(view, g, total, rng)
    Theta = _matrices(view, g, V, rng)
    uniform = total - V.sum(0)
    if np.linalg.norm(uniform) > max(1e-7, 1e4 * noise) * np.linalg.norm(V):
        Theta, V = np.concatenate([Theta, np.zeros((1, d, d))]), np.concatenate([V, uniform[None]])
    return Layer(Theta, V)


class _View:
    """What is seen with the final token b: D(u) for two tokens [b + u; b], and for three; with what relative noise."""

    def __init__(self, ask: Counted, b: Array, total: Array, noise: float, long: float) -> None:
        self.ask, self.b, self.offset = ask, b, b @ total
        self.total, self.noise, self.long = total, noise, long

    def __call__(self, u: Array, copies: int = 1) -> tuple[Array, Array]:
        """Return the u that arithmetic made of it, and D(u)."""
        first = self.b + u
        return first - self.b, self.ask(np.array([*[first] * copies, self.b])) - self.offset


def _turn(basis: Array, angle: float) -> Array:
    return np.asarray(np.cos(angle) * basis[0] + np.sin(angle) * basis[1])


class _Plane:
    """D along a turn in the plane of the first two rows of a basis."""

    def __init__(self, view: _View, basis: Array) -> None:
        self.view, self.basis = view, basis
        self.scale = float(np.linalg.norm(view.total)) or 1.0

    def ask(self, angle: float) -> tuple[Array, Array]:
        """Return where in the plane u was, and D(u), both over the length of u."""
        long = self.view.long
        u, D = self.view(long * _turn(self.basis, angle))
        return self.basis[:2] @ u / long, D / long

    def map(self, angles: tuple[float, float]) -> tuple[Array, float]:
        """Return the linear map (2, d_out) of the cell of two angles, and how far it may be off."""
        rows, answers = zip(*(self.ask(angle) for angle in angles), strict=True)
        error = max(1e-7, 10 * self.view.noise / abs(angles[1] - angles[0])) * self.scale
        return np.linalg.solve(np.array(rows), np.array(answers)), error

    def cell(self, angle: float) -> tuple[Array, float]:
        """Return the map of the cell at an angle: from two close queries or, if there is noise, the farthest that agree."""
        if self.view.noise > _ROUNDING:
            for apart in (0.1, 0.03, 0.01, 0.003):
                M, error = self.map((angle, angle + apart))
                if self.misses(M, angle + 0.6 * apart) < error:
                    return M, error
        return self.map((angle, angle + max(1e-6, float(np.sqrt(self.view.noise)))))

    def misses(self, M: Array, angle: float) -> float:
        """Return by how much a map misses D at an angle."""
        place, D = self.ask(angle)
        return float(np.linalg.norm(place @ M - D))


def _steps(plane: _Plane) -> list[tuple[float, Array]]:
    """Return the angles in [0, pi) at which D jumps, with the maps (2, d_out) of the cells before each."""
    found: list[tuple[float, Array]] = []
    splits = 0

    def split(low: float, before: tuple[Array, float], high: float, after: tuple[Array, float]) -> None:
        """Find the steps between two cells: as long as every middle belongs to one of the two there is one step."""
        nonlocal splits
        if np.linalg.norm(before[0] - after[0]) < 3 * (before[1] + after[1]):
            return
        splits += 1
        if splits > _SPLITS:
            raise _Lost("no end of steps: these answers are not those of saturated heads")
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            if plane.misses(before[0], middle) < before[1]:
                low = middle
            elif plane.misses(after[0], middle) < after[1]:
                high = middle
            elif high - low < _NARROW:
                low = high = middle
                break
            else:
                between = plane.cell(middle)
                split(low, before, middle, between)
                split(middle, between, high, after)
                return
        found.append((0.5 * (low + high), before[0]))

    first = plane.cell(0.0)
    split(0.0, first, np.pi, (plane.basis[:2] @ plane.view.total - first[0], first[1]))
    return sorted(found, key=lambda step: step[0])


def _cells(plane: _Plane, steps: list[tuple[float, Array]]) -> Array:
    """Return the linear maps (heads + 1, d, d_out) of D in the cells around the half turn, in the unit vectors.

    Directions out of the plane are seen by leaning out of it a little, less than would leave the cell; noise asks for more.
    """
    view, basis = plane.view, plane.basis
    noisy = view.noise > _ROUNDING
    angles = np.array([step[0] for step in steps])
    edges = np.concatenate([[angles[-1] - np.pi], angles])
    maps = np.empty((len(steps) + 1, *view.total.shape))
    for cell in range(len(steps)):
        middle, width = 0.5 * (edges[cell] + edges[cell + 1]), edges[cell + 1] - edges[cell]
        M = np.empty_like(view.total)  # in the basis
        M[:2] = plane.map((middle - 0.4 * width, middle + 0.4 * width))[0] if noisy else steps[cell][1]
        for j in range(2, len(basis)):
            lean = (0.1 if noisy else 0.01) * width
            u, D = view(view.long * (_turn(basis, middle) + lean * basis[j]))
            place = basis @ u
            M[j] = (D - place[:2] @ M[:2]) / place[j]
        maps[cell] = basis.T @ M
    maps[-1] = view.total - maps[0]
    return maps


def _seen(view: _View, basis: Array, angle: float, before: Array, jump: Array) -> tuple[Array, float]:
    """Return g of the head that steps at this angle, up to its sign, and the sign that three tokens tell.

    `before` is the map of all others, with the jump J on the far side: D = u before + s u J, s between 0 and 1.
    """
    along, across = _turn(basis, angle), _turn(basis, angle + np.pi / 2)
    for length in (1e-3 * view.long, 1e-4 * view.long, 1e-5 * view.long):
        start = _share(view, length * along, before, jump)
        if start is not None:
            break
    else:
        raise _Lost("a step was not found again")
    g = start[1] / length * along
    strongest = (0.0, across)
    for w in [across, *basis[2:]]:
        slope = _slope(view, length * along, w, before, jump, start[1])
        g = g + slope * w
        if abs(slope) > abs(strongest[0]):
            strongest = (slope, w)
    if strongest[0] == 0:
        raise _Lost("a step without a slope")
    # the difference of two points close by: a head with Theta = 0, whose share two copies change, drops out of it
    points = [view(u, copies=2) for u in (length * along + (1.5 / strongest[0]) * strongest[1], length * along)]
    seen = points[0][1] - points[1][1]

    def expected(u: Array, sign: int) -> Array:
        """Three tokens give the live head the share 2 e^z/(2 e^z + 1); with the other sign it is off before its step."""
        rest = before if sign > 0 else before + jump
        return np.asarray(u @ rest + sign * 2 / (2 + np.exp(-sign * float(g @ u))) * (u @ jump))

    missed = [
        float(np.linalg.norm(seen - expected(points[0][0], sign) + expected(points[1][0], sign))) for sign in (1, -1)
    ]
    return g, 1.0 if missed[0] < missed[1] else -1.0


def _share(view: _View, u: Array, before: Array, jump: Array) -> tuple[Array, float] | None:
    """Return u as asked and the logit of the live head there; None where it is saturated."""
    u, D = view(u)
    value = u @ jump
    size = float(value @ value)
    share = float((D - u @ before) @ value) / size if size > 0 else np.nan
    least = max(1e-5, min(100 * view.noise, 0.01))
    if not least < share < 1 - least:
        return None
    return u, float(np.log(share / (1 - share)))


def _slope(view: _View, base: Array, w: Array, before: Array, jump: Array, start: float) -> float:
    """Return the change of the logit per length along w, from a move that changes it by about one."""
    move, best = 1.0, 0.0
    for _ in range(12):
        found = _share(view, base + move * w, before, jump)
        if found is None:
            move /= 8
            continue
        best = (found[1] - start) / move
        if abs(found[1] - start) > 0.1 or move > 1e3:
            break
        move *= 8
    return best


def _values(view: _View, g: Array, total: Array, rng: np.random.Generator) -> Array:
    """Return V of all heads from saturated queries: D = u V_sum/2 + sum_h (+-1/2) u V_h, as many as there are unknowns.

    Of many candidates, which cost nothing, those are asked that determine the unknowns best.
    """
    from scipy.linalg import qr

    heads, d = g.shape
    units = g / np.linalg.norm(g, axis=1, keepdims=True)
    cosines = np.abs(units @ units.T)[np.triu_indices(heads, 1)]
    nearest = float(np.sqrt(max(1 - cosines.max(initial=0.0) ** 2, 0.0)))  # sine of the smallest angle of two steps
    drawn = np.concatenate([rng.standard_normal((40 * heads * d, d)), *_between(units, rng)])
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn = drawn[np.abs(drawn @ units.T).min(1) > min(_CLEAR, 0.02 * nearest)]
    if len(drawn) < heads * d:
        raise _Lost("too few directions are clear of all steps")
    rows = (np.sign(drawn @ g.T)[:, :, None] / 2 * drawn[:, None, :]).reshape(len(drawn), -1)
    chosen = qr(rows.T, mode="economic", pivoting=True)[2][: heads * d]
    length = 2 * _SATURATED / float(np.abs(drawn[chosen] @ g.T).min())
    asked = [view(length * drawn[i]) for i in chosen]
    design = np.array([(np.sign(u @ g.T)[:, None] / 2 * u).ravel() for u, _ in asked])
    answers = np.array([D - 0.5 * (u @ total) for u, D in asked])
    if np.linalg.cond(design) > 1e6:
        raise _Lost("two heads step together from here")
    return np.asarray(np.linalg.solve(design, answers).reshape(heads, d, -1))


def _between(units: Array, rng: np.random.Generator) -> list[Array]:
    """Return directions between the steps of heads whose steps are close, where chance hardly leads."""
    found = []
    for i in range(len(units)):
        for j in range(i):
            cosine = float(units[i] @ units[j])
            if abs(cosine) > 0.9:
                middle = units[i] + np.sign(cosine) * units[j]
                middle /= np.linalg.norm(middle)
                drawn = rng.standard_normal((4 * units.shape[1], units.shape[1]))
                found.append(drawn - np.outer(drawn @ middle, middle))
    return found


def _matrices(view: _View, g: Array, V: Array, rng: np.random.Generator) -> Array:
    """Return Theta of all heads, from g at b and at d - 1 final tokens close to it."""
    heads, d = g.shape
    b = view.b
    tokens = np.linalg.qr(np.concatenate([b[:, None], rng.standard_normal((d, d - 1))], axis=1))[0].T
    tokens[0] = b
    Theta = np.empty((heads, d, d))
    for h in range(heads):
        along, length = _away_from_others(g, V, h, rng)
        moves = np.linalg.qr(np.concatenate([along[:, None], rng.standard_normal((d, d - 1))], axis=1))[0].T[1:]
        seen = _at(view, g, V, h, length * along, moves)
        rows = [seen]
        for token in tokens[1:]:
            eps = min(0.3, 2 / (length * float(np.linalg.norm(g[h]))))
            for _ in range(12):
                try:
                    close = _View(view.ask, b + eps * token, view.total, view.noise, view.long)
                    rows.append((_at(close, g, V, h, length * along, moves) - seen) / eps)
                    break
                except _Lost:
                    eps /= 3
            else:
                raise _Lost("a head could not be followed to another final token")
        Theta[h] = tokens.T @ np.array(rows)
    return Theta


def _away_from_others(g: Array, V: Array, h: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Return a direction on the step of head h, far from all other steps and with a value of h, and how long u must be."""
    d = g.shape[1]
    unit = g[h] / np.linalg.norm(g[h])
    drawn = rng.standard_normal((4000, d))
    drawn -= np.outer(drawn @ unit, unit)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    signal = np.linalg.norm(drawn @ V[h], axis=1)
    others = np.delete(g, h, axis=0)
    if not len(others):
        return drawn[int(np.argmax(signal))], 1.0
    margin = np.abs(drawn @ others.T).min(1)
    best = int(np.argmax(margin * np.minimum(1.0, 3 * signal / signal.max())))
    # what the moves off it may take back of the others' logits
    reach = 2 * float(np.linalg.norm(others, axis=1).max()) / float(np.linalg.norm(g[h]))
    return drawn[best], float((1.2 * _SATURATED + reach) / margin[best])


def _at(view: _View, g: Array, V: Array, h: int, base: Array, moves: Array) -> Array:
    """Return g of head h at the final token of a view, from the logits at `base` and one move in each direction off it."""
    uniform = view.total - V.sum(0)
    others = np.delete(np.arange(len(g)), h)

    def logit(u: Array) -> tuple[Array, float]:
        on = others[g[others] @ u > 0]
        before = V[on].sum(0) + 0.5 * uniform
        found = _share(view, u, before, V[h])
        if found is None:
            raise _Lost("saturated")
        return found

    size = 2 / float(np.linalg.norm(g[h]))
    asked = [logit(base), *(logit(base + size * w) for w in moves)]
    return np.linalg.solve(np.array([u for u, _ in asked]), np.array([z for _, z in asked]))
