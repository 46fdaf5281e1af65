"""A body being sculpted around two heads, phase by phase, as pictures of a plane through both.

The plane is spanned by the difference of the true heads, along which the body stays long, and by the way in which the first
proxy is wrong, across which it narrows. The truth serves the picture only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas import layers, recovery, tokens
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import ROUNDS, Body, rounds, search
from attlas.recovery.variable_projection import variable_projection

Array = NDArray[np.float64]

_LINES = 60
_OUTSIDE = 4.0  # lines end so many half-widths from the middle


def frames(tell: Callable[[float, str], None], d: int, scale: float, n: int, seed: int) -> dict[str, Any]:
    """Return a frame for every phase, and where the true heads lie."""
    Theta, W = recovery.planted_layer(heads=2, d=d, seed=seed, scale=scale)
    X = tokens.boolean(n, 2, d, seed=seed + 1000)
    data = Examples.of(X, layers.multi_head_attention(X, Theta, W))
    tell(0.0, f"phase 1: the sum of the values, from {n} examples")
    found: list[dict[str, Any]] = []
    for _, body, proxy in rounds(data):
        if not found:
            plane = Plane.through(Theta, proxy)
        found.append(plane.frame(f"Carving, round {len(found) + 1}", body, proxy))
        tell(0.1 + 0.1 * len(found), f"phases 2 to 4: carved, round {len(found)} of {ROUNDS}")
    span, gap = body.span(2)
    found.append(plane.frame("The flattest direction", body, proxy, flat=span[0]) | {"gap": gap})
    tell(0.7, "phase 6: searching the flat direction")
    layer, residual = search(data, proxy, span, 2, seed)
    found.append(
        plane.frame("Heads in the flat direction", body, proxy, flat=span[0], heads=layer.Theta)
        | {"residual": residual}
    )
    tell(0.85, "polishing with all examples")
    fit = variable_projection(data, layer.Theta)
    truth = recovery.Layer(Theta, W)
    error = recovery.parameter_error(recovery.Layer(fit.Theta, fit.W), truth)
    last = plane.frame("After polishing", body, proxy, heads=fit.Theta)
    found.append(last | {"residual": fit.residual, "error": float(np.max(error))})
    return {"frames": found, "true": plane.place(Theta).tolist(), "reach": plane.reach}


class Plane:
    """Two orthonormal directions in the space of Theta, through the middle of the true heads."""

    def __init__(self, middle: Array, axes: Array, reach: list[float]) -> None:
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
        reach = [0.9 * max(length, 2 * abs(float(off @ along))), max(1.3 * height, 0.15 * length)]
        return cls(middle, np.stack([along, across / height]), reach)

    def place(self, Theta: Array) -> Array:
        """Return the coordinates (m, 2) of the projections of heads (m, d, d)."""
        return np.asarray((Theta.reshape(len(Theta), -1) - self.middle) @ self.axes.T)

    def frame(
        self, title: str, body: Body, proxy: Array, flat: Array | None = None, heads: Array | None = None
    ) -> dict[str, Any]:
        """Return what a picture shows: slabs as lines, the proxy, the flat direction, the heads."""
        order = np.argsort(-body.weights)[:_LINES]
        return {
            "title": title,
            "slabs": len(body.slabs),
            "rank": body.rank,
            "lines": self._lines(body.slabs[order], body.levels[order]),
            "proxy": self.place(proxy[None])[0].tolist(),
            "flat": None if flat is None else (self.axes @ flat.ravel()).tolist(),
            "heads": None if heads is None else self.place(heads).tolist(),
        }

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
