"""The first half of the page of recovery: a body is sculpted around two heads, and one goes through its phases."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.claims.figure import COLOURS
from attlas.claims.learners import learner
from attlas.explorer.controls import Slider
from attlas.explorer.page import Plot, Section, View
from attlas.explorer.pages.recovery.sculpture import EXAMPLES, KEPT, PHASES, Frame, sculpture
from attlas.explorer.play import Player
from attlas.explorer.plotting import SYMBOLS, Figure, Trace, layout, line, points, table, written

Array = NDArray[np.float64]

_TRUSTED = 2  # gaps below it mean that the span is noise (`recovery.Sculpted.gap`)
_GREY, _FILL = "#888888", "rgba(0,158,115,0.28)"  # the fill is the colour of sculpting


def summary(view: View[None]) -> str:
    """Return in words what the picture shows."""
    number, frame = _phase(view)
    text = f"Phase {number} of {PHASES}. {frame.title}: {frame.slabs} slabs of rank {frame.rank}."
    if frame.gap is not None:
        text += f" The flattest direction stands out by a factor of {written(frame.gap)}"
        text += "." if frame.gap >= _TRUSTED else f" (it cannot be trusted below {_TRUSTED})."
    if frame.residual is not None:
        text += f" Residual {written(frame.residual, 2)}."
    if frame.residual is not None and frame.error is not None:
        exact = f" Parameters correct to {written(frame.error, 2)}."
        text += exact if frame.residual < 1e-9 else " Stuck: the heads are not found from here."
    return text


def draw(view: View[None]) -> Figure:
    """Return the picture of the phase that the slider is at; scales and ranges are the same in all phases."""
    found, (_, frame) = sculpture(view.state), _phase(view)
    width, height = found.reach
    sculpting = learner("sculpt").colour
    gaps = np.full((len(frame.lines), 1, 2), np.nan)
    slabs = np.concatenate([frame.lines, gaps], axis=1).reshape(-1, 2)
    traces = [
        line(*_xy(slabs), "slabs", "rgba(136,136,136,0.4)", width=1) | {"hoverinfo": "skip"},
        line(*_xy(np.r_[frame.outline, frame.outline[:1]]), "body", sculpting, width=2)
        | {"fill": "toself", "fillcolor": _FILL, "hoverinfo": "skip"},
    ]
    if frame.flat is not None:
        ends = frame.proxy + 4 * width * np.outer([-1, 1], frame.flat)
        traces.append(line(*_xy(ends), "flattest direction", sculpting, dash="dash"))
    named: dict[str, Any] = {"mode": "markers+text", "showlegend": False, "hoverinfo": "x+y+name"}
    text = {"text": ["proxy"], "textposition": "top center"}
    traces.append(_marks(frame.proxy[None], "proxy", _GREY, "diamond", size=9) | named | text)
    text = {"text": ["head 1", "head 2"], "textposition": "bottom center"}
    edge = {"width": 1.5, "color": "#ffffff"}
    traces.append(_marks(found.true, "true heads", COLOURS[1], "circle", size=13, line=edge) | named | text)
    if frame.heads is not None:
        look = learner(frame.learner)
        traces.append(
            _marks(frame.heads, f"estimate: {look.name}", look.colour, SYMBOLS[look.marker] + "-open", size=15)
        )
    axes: dict[str, Any] = {
        "xaxis": {"range": [-width, width]},  # or more, where there is room: scales are equal
        "yaxis": {"range": [-height, height], "scaleanchor": "x", "scaleratio": 1},
    }
    return {"data": traces, "layout": layout("from head 1 to head 2", "across", height=420, **axes)}


def data(view: View[None]) -> str:
    """Return all phases as CSV: the corners of bodies, points, and lines by both their ends."""
    found = sculpture(view.state)
    rows: list[tuple[Any, ...]] = []
    for number, frame in enumerate(found.frames, 1):
        rows += [(number, "corner of the body", *corner, "", "") for corner in frame.outline]
        rows += [(number, "slab", *ends.ravel()) for ends in frame.lines]
        if frame.flat is not None:
            rows.append((number, "flattest direction", *(frame.proxy - frame.flat), *(frame.proxy + frame.flat)))
        marks = [("proxy", frame.proxy), *(("true head", head) for head in found.true)]
        marks += [("estimate", head) for head in (() if frame.heads is None else frame.heads)]
        rows += [(number, what, *place, "", "") for what, place in marks]
    return table(("phase", "what", "x", "y", "end_x", "end_y"), rows)


def _phase(view: View[None]) -> tuple[int, Frame]:
    """Return the number of the phase that the slider is at, and the phase."""
    number = int(view.state["phase"])
    return number, sculpture(view.state).frames[number - 1]


def _xy(places: Array) -> tuple[Array, Array]:
    return places[:, 0], places[:, 1]


def _marks(places: Array, name: str, colour: str, symbol: str, **style: Any) -> Trace:
    return points(*_xy(places), name, colour, **({"symbol": symbol, "line": {"width": 2.5, "color": colour}} | style))


SECTION = Section(
    heading="Sculpting: find two heads from random examples",
    text=f"Two heads are hidden in a layer, and the learner sees {EXAMPLES} random examples. An example on which both "
    "heads attend alike confines Θ to a slab. All slabs together leave a body that is long from head to head. The proxy is "
    "the point that fits them best, and the heads are searched for along the flattest direction of the body.",
    controls=(
        Slider("d", "Token dimension d", 4, 8, 1, 6),
        Slider("scale", "Logit scale s", 1, 6, 0.5, 3),
        Slider("seed", "Random seed", 0, 19, 1, 1),
        Slider("phase", "Phase", 1, PHASES, 1, PHASES - 1),
    ),
    summary=summary,
    plots=[
        Plot("body", "The body in the plane of both heads and the first proxy", draw, data, player=Player("phase", 1.2))
    ],
    note=f"Lines: the middles of up to 60 slabs. Filled: the points inside the {KEPT:.0%} of the slabs that fit the true "
    "heads best; the others were misread. A slab is thicker where its example says less, and all are just thick enough to "
    "hold both heads. The picture uses the true heads; the learner does not.",
)
