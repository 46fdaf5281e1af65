"""A body being sculpted around two heads, phase by phase, as pictures of a plane through both.

The plane is spanned by the difference of the true heads, along which the body stays long, and by the way in which the first
proxy is wrong, across which it narrows. The truth serves the picture only.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from attlas import layers, recovery, tokens
from attlas.numerics import Event, Progress
from attlas.recovery.body import Body
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import ROUNDS, rounds, search
from attlas.recovery.variable_projection import variable_projection

Array = NDArray[np.float64]
Point = tuple[float, float]

PHASES = ROUNDS + 3
_LINES = 60
_OUTSIDE = 4.0  # lines end so many half-widths from the middle


class Frame(BaseModel):
    """The picture of one phase: slabs as lines, the proxy, the flattest direction and the heads once there are any."""

    title: str
    slabs: int
    rank: int
    lines: list[tuple[float, float, float, float]]  # both ends of each
    proxy: Point
    flat: Point | None = None
    heads: list[Point] | None = None
    gap: float | None = None
    residual: float | None = None
    error: float | None = None


class Sculpture(BaseModel):
    """Every phase of a sculpture, in coordinates of the plane; half-widths of it that a picture should show."""

    frames: list[Frame] = Field(min_length=1)
    true: list[Point]
    reach: Point
    title: str = ""


def sculpt(progress: Progress, d: int, scale: float, n: int, seed: int) -> dict[str, Any]:
    """Sculpt a body around two heads of a small layer, and find them; return a `Sculpture` as JSON."""
    Theta, W = recovery.planted_layer(heads=2, d=d, seed=seed, scale=scale)
    X = tokens.boolean(n, 2, d, seed=seed + 1000)
    data = Examples.of(X, layers.multi_head_attention(X, Theta, W))
    frames: list[Frame] = []

    def report(text: str) -> None:
        progress(Event(len(frames), PHASES, text))

    report(f"Phase 1: the sum of the values, from {n} examples")
    for _, body, proxy in rounds(data):
        if not frames:
            plane = Plane.through(Theta, proxy)
        frames.append(plane.frame(f"Carving, round {len(frames) + 1}", body, proxy))
        report(f"Phases 2 to 4: carved, round {len(frames)} of {ROUNDS}")
    span, gap = body.span(2)
    frames.append(plane.frame("The flattest direction", body, proxy, flat=span[0], gap=gap))
    report("Phase 6: searching along the flattest direction")
    carved = search(data, proxy, span, 2, seed)
    title = "Heads along the flattest direction"
    frames.append(plane.frame(title, body, proxy, flat=span[0], heads=carved.Theta, residual=carved.residual))
    report("Polishing with all examples")
    fit = variable_projection(data, carved.Theta)
    error = recovery.parameter_error(fit, recovery.Layer(Theta, W))
    numbers = {"residual": fit.residual, "error": float(np.max(error))}
    frames.append(plane.frame("After polishing", body, proxy, None, fit.Theta, **numbers))
    return Sculpture(frames=frames, true=plane.place(Theta).tolist(), reach=plane.reach).model_dump()


class Plane:
    """Two orthonormal directions in the space of Theta, through the middle of the true heads."""

    def __init__(self, middle: Array, axes: Array, reach: Point) -> None:
        self.middle, self.axes, self.reach = middle, axes, reach

    @classmethod
    def through(cls, Theta: Array, proxy: Array) -> "Plane":
        """Return the plane of both heads and the proxy, and how far a picture of it should reach."""
        heads = Theta.reshape(2, -1)
        middle, along = heads.mean(0), heads[1] - heads[0]
        length = float(np.linalg.norm(along))
        along = along / length
        off = proxy.ravel() - middle
        across = off - (off @ along) * along
        height = float(np.linalg.norm(across))
        reach = 0.9 * max(length, 2 * abs(float(off @ along))), max(1.3 * height, 0.15 * length)
        return cls(middle, np.stack([along, across / height]), reach)

    def place(self, Theta: Array) -> Array:
        """Return the coordinates (m, 2) of the projections of heads (m, d, d)."""
        return np.asarray((Theta.reshape(len(Theta), -1) - self.middle) @ self.axes.T)

    def frame(
        self, title: str, body: Body, proxy: Array, flat: Array | None = None, heads: Array | None = None, **more: float
    ) -> Frame:
        """Return the picture of a phase; `more` are its numbers."""
        order = np.argsort(-body.weights)[:_LINES]
        places: dict[str, Any] = {
            "lines": self._lines(body.slabs[order], body.levels[order]),
            "proxy": self.place(proxy[None])[0].tolist(),
            "flat": None if flat is None else (self.axes @ flat.ravel()).tolist(),
            "heads": None if heads is None else self.place(heads).tolist(),
        }
        return Frame(title=title, slabs=len(body.slabs), rank=body.rank, **places, **more)

    def _lines(self, slabs: Array, levels: Array) -> list[list[float]]:
        """Return the ends [x, y, x, y] of the lines in which slabs meet the plane, where they are near."""
        G = slabs.reshape(len(slabs), -1)
        found = []
        for normal, level in zip(G @ self.axes.T, levels - G @ self.middle, strict=True):
            size = float(normal @ normal)
            if size < 1e-12 * float(np.sum(slabs[0] ** 2)):
                continue
            foot = normal * level / size
            along = np.array([-normal[1], normal[0]]) / np.sqrt(size) * _OUTSIDE * max(self.reach)
            if np.all(np.abs(foot) < _OUTSIDE * np.array(self.reach)):
                found.append([*(foot - along), *(foot + along)])
        return found
