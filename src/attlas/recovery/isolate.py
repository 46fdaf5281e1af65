"""Saturate and isolate: many heads from queries, every measurement the logit of a single head.

With two tokens [b + u; b] the last one answers f = b V_sum + D(u), D(u) = sum_h sigma(g_h u) u V_h, g_h = Theta_h^T b. For a
long u every head is a step across its hyperplane g_h u = 0: D is linear in each cell between them, and close to one
hyperplane exactly one head is between 0 and 1. So:

1. Along half a turn in a random plane every head has one step. Bisection finds them all; their number is that of the heads.
2. In the cells D is linear: the jumps between neighbouring cells are u V_h.
3. From a point on one head's step, small moves in every direction give its logits, that is g_h.
4. Three tokens [b + u; b + u; b] tell (g, V) from (-g, -V), which two cannot.
5. Other final tokens b + eps beta give g_h again, and the difference is eps Theta_h^T beta: no heads to match.
   With key biases g_h = Theta_h^T b + u_h, so that one more final token tells u_h.

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

from attlas.numerics import stream
from attlas.recovery.half_turn import Plane, cells_of, steps_of, turn
from attlas.recovery.layer import Layer
from attlas.recovery.oracle import CountingOracle, Lost, Task, Tasks
from attlas.recovery.view import View

Array = NDArray[np.float64]

LONG = 1e8  # of u, while steps are searched
LONGER = 1e11  # for heads so flat that they are not saturated at 1e8
_SATURATED = 36.0  # a logit beyond this leaves the other side at 2e-16
_CLEAR = 2e-3  # sine of the angle to the nearest step, of directions that count as saturated
NOISE = 5e-5  # relative, beyond which steps are not found


def isolate(
    ask: CountingOracle,
    total: Array,
    seed: int,
    noise: float = 0.0,
    lengths: tuple[float, ...] = (LONG, LONGER),
    attempts: int = 5,
    bias: bool = False,
) -> Iterator[tuple[Layer, float]]:
    """Yield what each attempt that separated the heads found, and the noise it assumed.

    Heads of equal Theta come out as one, silent ones not. Without noise the first is right; noise can mislead an attempt,
    which fresh queries tell. It may yield nothing: bisections and attempts are counted.

    Parameters
    ----------
    ask : CountingOracle
    total : array of shape (d, d_out)
        The answers to single unit vectors, which are the sum of all values; d at least 2.
    seed : int
    noise : float
        Of the answers, relative, if it is known; more, if it is measured, counts.
    lengths : tuple of float
        Of u, tried in turn.
    attempts : int
        Planes and final tokens to try at each: one may be close to the steps of two heads at once.
    bias : bool
        Whether heads may have key biases.
    """
    for long in lengths:
        rng = stream(seed, "isolate", f"{long:g}")
        level = max(noise, _measured_noise(ask, total, long, rng))
        for _ in range(attempts if level <= NOISE else 0):
            try:
                yield _attempt(ask, total, level, long, rng, bias), level
            except Lost:
                continue


def _measured_noise(ask: CountingOracle, total: Array, long: float, rng: np.random.Generator) -> float:
    """Return by how much D(u) differs from 2 D(u/2), relative: nothing but noise, where all heads are saturated."""
    b, *directions = rng.standard_normal((4, len(total)))
    view = View(ask, b / np.linalg.norm(b), total, 0.0, long)
    lengths = [long / np.linalg.norm(u) for u in directions]
    asked = [view(part * size * u) for size, u in zip(lengths, directions, strict=True) for part in (0.5, 1.0)]
    seen = [D for _, D in ask.run(*asked)]
    pairs = list(zip(seen[::2], seen[1::2], strict=True))
    missed = [float(np.linalg.norm(twice - 2 * once)) for once, twice in pairs]
    answers = [float(np.linalg.norm(twice + view.offset)) for _, twice in pairs]  # D is zero where all heads are off
    return max(difference / max(answer, 1e-300) for difference, answer in zip(missed, answers, strict=True))


def _attempt(
    ask: CountingOracle, total: Array, noise: float, long: float, rng: np.random.Generator, bias: bool
) -> Layer:
    b = rng.standard_normal(len(total))
    view = View(ask, b / np.linalg.norm(b), total, noise, long)
    return separate(view, view, view, rng, bias)


def separate(search: View, saturated: View, close: View, rng: np.random.Generator, bias: bool = False) -> Layer:
    """Return the heads that are seen with one final token: steps, values and matrices may each be asked in its own view.

    Raises
    ------
    Lost
        If this final token, or the plane that is drawn, does not separate them.
    """
    ask, total, noise, d = search.ask, search.total, search.noise, len(search.total)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0].T  # rows; the first two span the plane
    plane = Plane(search, basis)
    steps = steps_of(plane)
    if not steps:
        if np.linalg.norm(total) == 0:
            raise Lost("the answers are zero")
        return Layer(np.zeros((1, d, d)), total[None])  # linear: one head that looks at all alike
    cells = cells_of(plane, steps)
    g = np.empty((len(steps), d))
    V = np.diff(cells, axis=0)
    for h, (found, sign) in enumerate(
        ask.run(*(_seen(search, basis, angle, cells[h], V[h]) for h, (angle, _) in enumerate(steps)))
    ):
        g[h] = found * sign
    V = _values(saturated, g, total, rng)
    Theta, u = _matrices(close, g, V, rng, bias)
    uniform = total - V.sum(0)
    if np.linalg.norm(uniform) > max(1e-7, 1e4 * noise) * np.linalg.norm(V):
        Theta, V = np.concatenate([Theta, np.zeros((1, d, d))]), np.concatenate([V, uniform[None]])
        u = np.concatenate([u, np.zeros((1, d))])
    return Layer(Theta, V, u if bias else None)


def _seen(view: View, basis: Array, angle: float, before: Array, jump: Array) -> Task:
    """Return g of the head that steps at this angle, up to its sign, and the sign that three tokens tell.

    `before` is the map of all others, with the jump J on the far side: D = u before + s u J, s between 0 and 1.
    """
    along, across = turn(basis, angle), turn(basis, angle + np.pi / 2)
    for length in (1e-3 * view.long, 1e-4 * view.long, 1e-5 * view.long):
        start = yield from view.logit(length * along, before, jump)
        if start is not None:
            break
    else:
        raise Lost("a step was not found again")
    g = start[1] / length * along
    strongest = (0.0, across)
    others = [across, *basis[2:]]
    slopes = yield Tasks([view.slope(length * along, w, before, jump, start[1]) for w in others])
    for w, slope in zip(others, slopes, strict=True):
        g = g + slope * w
        if abs(slope) > abs(strongest[0]):
            strongest = (slope, w)
    if strongest[0] == 0:
        raise Lost("a step without a slope")
    # the difference of two points close by: a head with Theta = 0, whose share two copies change, drops out of it
    ends = (length * along + (1.5 / strongest[0]) * strongest[1], length * along)
    points = yield Tasks([view(u, copies=2) for u in ends])
    seen = points[0][1] - points[1][1]

    def expected(u: Array, sign: int) -> Array:
        """Three tokens give the live head the share 2 e^z/(2 e^z + 1); with the other sign it is off before its step."""
        rest = before if sign > 0 else before + jump
        return np.asarray(u @ rest + sign * 2 / (2 + np.exp(min(-sign * float(g @ u), 700.0))) * (u @ jump))

    missed = [
        float(np.linalg.norm(seen - expected(points[0][0], sign) + expected(points[1][0], sign))) for sign in (1, -1)
    ]
    return g, 1.0 if missed[0] < missed[1] else -1.0


def _values(view: View, g: Array, total: Array, rng: np.random.Generator) -> Array:
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
        raise Lost("too few directions are clear of all steps")
    rows = (np.sign(drawn @ g.T)[:, :, None] / 2 * drawn[:, None, :]).reshape(len(drawn), -1)
    chosen = qr(rows.T, mode="economic", pivoting=True)[2][: heads * d]
    length = 2 * _SATURATED / float(np.abs(drawn[chosen] @ g.T).min())
    asked = view.ask.run(*(view(length * drawn[i]) for i in chosen))
    design = np.array([(np.sign(u @ g.T)[:, None] / 2 * u).ravel() for u, _ in asked])
    answers = np.array([D - 0.5 * (u @ total) for u, D in asked])
    if np.linalg.cond(design) > 1e6:
        raise Lost("two heads step together from here")
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


def _matrices(view: View, g: Array, V: Array, rng: np.random.Generator, bias: bool) -> tuple[Array, Array]:
    """Return Theta and u of all heads, from g at b and at d - 1 final tokens close to it; at d of them with key biases."""
    heads, d = g.shape
    b = view.b
    tokens = np.linalg.qr(np.concatenate([b[:, None], rng.standard_normal((d, d - 1))], axis=1))[0].T
    tokens[0] = b

    def followed(h: int, along: Array, length: float, moves: Array) -> Task:
        seen = yield from _at(view, g, V, h, length * along, moves)

        def change(token: Array) -> Task:
            eps = min(0.3, 2 / (length * float(np.linalg.norm(g[h]))))
            for _ in range(12):
                try:
                    close = view.moved(eps * token)
                    found = yield from _at(close, g, V, h, length * along, moves)
                    return (found - seen) / eps
                except Lost:
                    eps /= 3
            raise Lost("a head could not be followed to another final token")

        changes = yield Tasks([change(token) for token in (tokens if bias else tokens[1:])])
        if not bias:
            return tokens.T @ np.array([seen, *changes]), np.zeros(d)
        # tokens are orthogonal, the first as long as b
        Theta = (tokens / np.sum(tokens**2, axis=1, keepdims=True)).T @ np.array(changes)
        return Theta, seen - b @ Theta

    tasks = []
    for h in range(heads):
        along, length = _away_from_others(g, V, h, rng)
        moves = np.linalg.qr(np.concatenate([along[:, None], rng.standard_normal((d, d - 1))], axis=1))[0].T[1:]
        tasks.append(followed(h, along, length, moves))
    Theta, u = zip(*view.ask.run(*tasks), strict=True)
    return np.array(Theta), np.array(u)


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


def _at(view: View, g: Array, V: Array, h: int, base: Array, moves: Array) -> Task:
    """Return g of head h at the final token of a view, from the logits at `base` and one move in each direction off it."""
    uniform = view.total - V.sum(0)
    others = np.delete(np.arange(len(g)), h)

    def logit(u: Array) -> Task:
        on = others[g[others] @ u > 0]
        before = V[on].sum(0) + 0.5 * uniform
        found = yield from view.logit(u, before, V[h])
        if found is None:
            raise Lost("saturated")
        return found

    size = 2 / float(np.linalg.norm(g[h]))
    asked = yield Tasks([logit(base), *(logit(base + size * w) for w in moves)])
    return np.linalg.solve(np.array([u for u, _ in asked]), np.array([z for _, z in asked]))
