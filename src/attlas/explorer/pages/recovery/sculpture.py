"""A body being sculpted around two heads, phase by phase, as pictures of a plane through both.

The plane is spanned by the difference of the true heads, along which the body stays long, and by the way in which the first
proxy is wrong, across which it narrows. The truth serves the picture only: learning does without.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas import layers, recovery, tokens
from attlas.explorer.controls import State
from attlas.explorer.memoised import memoised
from attlas.recovery.body import Body
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import ROUNDS, rounds, search
from attlas.recovery.variable_projection import variable_projection

Array = NDArray[np.float64]

EXAMPLES = 4000
FIRST = (4, 16, 64)  # slabs of the first pictures, before all that the first round has
KEPT = 0.8  # share of the slabs that make the picture of a body: those that the true heads fit best
PHASES = len(FIRST) + ROUNDS + 3
_LINES = 60
_OUTSIDE = 10.0  # a body, and the lines of its slabs, end so many half-widths of the picture from the middle


class Frame(NamedTuple):
    """The picture of one phase, in coordinates of the plane.

    Attributes
    ----------
    title : str
    slabs, rank : int
        How many slabs there are, and how many are independent.
    lines : array (lines, 2, 2)
        Both ends of the middle lines of slabs, those of the best rows first.
    outline : array (corners, 2)
        Corners of the body's section with the plane, in order.
    slack : float
        Half the thickness of its slabs, in units of one over their weights.
    proxy : array (2,)
    flat : array (2,), optional
        The flattest direction.
    heads : array (2, 2), optional
        The estimate, and who made it: the key of a learner.
    """

    title: str
    slabs: int
    rank: int
    lines: Array
    outline: Array
    slack: float
    proxy: Array
    flat: Array | None = None
    heads: Array | None = None
    learner: str = "sculpt"
    gap: float | None = None
    residual: float | None = None
    error: float | None = None


class Sculpture(NamedTuple):
    """Every phase, the true heads (2, 2), and the half-widths of the plane that all pictures show."""

    frames: tuple[Frame, ...]
    true: Array
    reach: tuple[float, float]


@memoised(64, "d", "scale", "seed")
def sculpture(state: State) -> Sculpture:
    """Sculpt a body around two heads of a small layer, and find them."""
    d, seed = int(state["d"]), int(state["seed"])
    Theta, W = recovery.planted_layer(heads=2, d=d, seed=seed, scale=state["scale"])
    X = tokens.boolean(EXAMPLES, 2, d, seed=seed + 1000)
    data = Examples.of(X, layers.multi_head_attention(X, Theta, W))
    frames: list[Frame] = []
    for number, (_, body, proxy) in enumerate(rounds(data), 1):
        if not frames:
            plane = Plane.through(Theta, proxy)
            frames += [plane.frame(f"The {count} best slabs", body, proxy, count) for count in FIRST]
        frames.append(plane.frame(f"All slabs, round {number} of {ROUNDS}", body, proxy))
    span, gap = body.span(2)
    last = frames[-1]._replace(flat=plane.along(span[0]), gap=gap)
    carved = search(data, proxy, span, 2, seed)
    fit = variable_projection(data, carved.Theta)
    error = float(np.max(recovery.parameter_error(fit, recovery.Layer(Theta, W))))
    frames += [
        last._replace(title="The flattest direction"),
        last._replace(
            title="Heads along the flattest direction", heads=plane.place(carved.Theta), residual=carved.residual
        ),
        last._replace(
            title="After polishing", heads=plane.place(fit.Theta), learner="varpro", residual=fit.residual, error=error
        ),
    ]
    return Sculpture(tuple(frames), plane.place(Theta), plane.reach)


class Plane:
    """Two orthonormal directions in the space of Theta, through the middle of the true heads."""

    def __init__(self, heads: Array, axes: Array, reach: tuple[float, float]) -> None:
        self.heads, self.middle, self.axes, self.reach = heads, heads.mean(0), axes, reach

    @classmethod
    def through(cls, Theta: Array, proxy: Array) -> "Plane":
        """Return the plane of both heads and the proxy; the proportions of its picture are the same for all."""
        heads = Theta.reshape(2, -1)
        along = heads[1] - heads[0]
        length = float(np.linalg.norm(along))
        along = along / length
        off = proxy.ravel() - heads.mean(0)
        across = off - (off @ along) * along
        height = float(np.linalg.norm(across))
        width = max(0.9 * length, 1.8 * abs(float(off @ along)), 2 * height)
        return cls(heads, np.stack([along, across / height]), (width, width / 2))

    def place(self, Theta: Array) -> Array:
        """Return the coordinates (m, 2) of the projections of heads (m, d, d)."""
        return np.asarray((Theta.reshape(len(Theta), -1) - self.middle) @ self.axes.T)

    def along(self, direction: Array) -> Array:
        """Return the coordinates (2,) of the projection of a direction (d, d)."""
        return np.asarray(self.axes @ direction.ravel())

    def frame(self, title: str, body: Body, proxy: Array, most: int | None = None) -> Frame:
        """Return the picture of a body, of its best slabs alone if `most` says how many.

        A slab is as thick as its reading is unsure, slack/weight to both sides. The slack is the smallest with which both
        true heads are in all the slabs that are `KEPT`; the others were read off rows on which the heads do not agree.
        """
        G = body.slabs.reshape(len(body.slabs), -1) * body.weights[:, None]
        levels = body.levels * body.weights
        missed = np.abs(G @ self.heads.T - levels[:, None]).max(1)
        slack = float(np.quantile(missed, KEPT, method="higher"))  # that of a slab: no rounding between two
        order = [s for s in np.argsort(body.scores, kind="stable") if missed[s] <= slack][:most]
        normals, offsets = G[order] @ self.axes.T, levels[order] - G[order] @ self.middle
        rank = body.rank if most is None else int(np.linalg.matrix_rank(G[order]))
        count = len(body.slabs) if most is None else most
        far = _OUTSIDE * max(self.reach)
        lines, outline = _lines(normals, offsets, far), _outline(normals, offsets, slack, far)
        return Frame(title, count, rank, lines, outline, slack, self.place(proxy[None])[0])


def _lines(normals: Array, offsets: Array, far: float) -> Array:
    """Return both ends of the lines <normal, x> = offset, up to 60 of those that come near, as (lines, 2, 2)."""
    sizes = np.linalg.norm(normals, axis=1)
    near = np.flatnonzero(np.abs(offsets) < far * sizes)[:_LINES]
    unit = normals[near] / sizes[near, None]
    feet, ways = unit * (offsets[near] / sizes[near])[:, None], unit[:, ::-1] * np.array([-far, far])
    return np.stack([feet - ways, feet + ways], axis=1)


def _outline(normals: Array, offsets: Array, slack: float, far: float) -> Array:
    """Return the corners of {x: |<normal, x> - offset| <= slack for all, |x| <= far}, which holds the middle, in order."""
    from scipy.spatial import HalfspaceIntersection

    room = slack * (1 + 1e-6)  # the middle of the heads is within, also where both are at the same side of a slab
    box = np.concatenate([np.eye(2), -np.eye(2)])
    sides = [np.c_[normals, -offsets - room], np.c_[-normals, offsets - room], np.c_[box, np.full(4, -far)]]
    corners = HalfspaceIntersection(np.concatenate(sides), np.zeros(2)).intersections
    middle = corners.mean(0)
    return np.asarray(corners[np.argsort(np.arctan2(*(corners - middle).T[::-1]))])
