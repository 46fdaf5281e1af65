"""A sculpted body in a picture: the plane through the proxy in which it is longest."""

from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.claims.figure import COLOURS, THEORY, finished
from attlas.errors import InputError
from attlas.inputs import integer
from attlas.recovery.comparison import HasLayer, layer_of
from attlas.recovery.sculpt import Sculpted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def section(found: Sculpted, truth: HasLayer | None = None, slabs: int = 300) -> "Figure":
    """Draw a section of a sculpted body, in the plane of the proxy and the two flattest directions.

    Slabs are lines; the borders of half-spaces, of which there are as many as there are small attention weights, dashes.

    Parameters
    ----------
    found : Sculpted
        What `attlas.recovery.sculpt` returns.
    truth : Layer, optional
        Its heads are projected to the plane beside those that were found.
    slabs : int
        At most so many lines, the heaviest, and as many borders.
    """
    from matplotlib.figure import Figure

    body, d = found.body, found.layer.d
    integer(slabs, "slabs")
    if d < 2:
        raise InputError("a section needs d of at least 2")
    heads = {"found": (found.Theta, "o", COLOURS[1])}
    if truth is not None:
        if layer_of(truth).d != d:
            raise InputError(f"truth must be a layer on tokens of dimension {d}; got {layer_of(truth).d}")
        heads["true"] = (layer_of(truth).Theta, "x", "#000000")
    flat = body.span(3)[0].reshape(2, d * d)
    places = {name: (Theta - found.proxy).reshape(-1, d * d) @ flat.T for name, (Theta, _, _) in heads.items()}
    reach = 1.3 * max(float(np.abs(place).max()) for place in places.values()) or 1.0
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    axis = figure.add_subplot()
    order = np.argsort(-body.weights)[:slabs]
    _lines(axis, body.slabs[order], body.levels[order], found.proxy, flat, 4 * reach, "-")
    _lines(axis, body.sides[:slabs], body.limits[:slabs], found.proxy, flat, 4 * reach, ":")
    axis.plot(0, 0, "s", color=THEORY["color"], label="proxy")
    for name, (_, mark, colour) in heads.items():
        axis.plot(*places[name].T, mark, color=colour, markersize=9, fillstyle="none", label=f"{name} heads")
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="flattest direction", ylabel="next flattest")
    return finished(figure)


def _lines(axis: Any, normals: Any, levels: Any, origin: Any, plane: Any, reach: float, style: str) -> None:
    """Draw where <normal, Theta> = level meets a plane through `origin`."""
    G = normals.reshape(len(normals), plane.shape[1])
    for slope, level in zip(G @ plane.T, levels - G @ origin.ravel(), strict=True):
        size = float(slope @ slope)
        if size > 0:
            foot, across = slope * level / size, reach / np.sqrt(size) * np.array([-slope[1], slope[0]])
            ends = np.array([foot - across, foot + across])
            axis.plot(ends[:, 0], ends[:, 1], style, color=COLOURS[0], alpha=0.15, linewidth=0.8)
