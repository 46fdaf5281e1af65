"""The first half of the page of recovery: a body is sculpted around two heads, and a slider moves through its phases."""

from typing import Any

import numpy as np
from pydantic import ValidationError

from attlas.claims.figure import COLOURS
from attlas.errors import InputError
from attlas.explorer.controls import Slider, State
from attlas.explorer.job import Job
from attlas.explorer.page import Plot, Section, View
from attlas.explorer.pages.recovery.sculpture import PHASES, Frame, Sculpture, sculpt
from attlas.explorer.plotting import Figure, Trace, layout, line, points, table

_EXAMPLES = 4000
_TRUSTED = 1.5  # gaps below it mean that the span is noise (`recovery.Sculpted.gap`)


def summary(view: View[Sculpture | None]) -> str:
    """Return in words what the picture shows."""
    found, frame = view.found, _frame(view)
    if found is None or frame is None:
        return ""
    text = f"{found.title}. {frame.title}: {frame.slabs} slabs of rank {frame.rank}."
    if frame.gap is not None:
        text += f" The flattest direction stands out by a factor of {frame.gap:.3g}"
        text += "." if frame.gap >= _TRUSTED else f" (below {_TRUSTED} it cannot be trusted)."
    if frame.residual is not None:
        text += f" Residual {frame.residual:.1e}."
        if frame.error is not None:
            exact = f" Parameters correct to {frame.error:.1e}."
            text += exact if frame.residual < 1e-9 else " Stuck: the heads are not found from here."
    return text


def draw(view: View[Sculpture | None]) -> Figure | None:
    """Return the picture of the phase that the slider is at, if there is a sculpture."""
    found, frame = view.found, _frame(view)
    if found is None or frame is None:
        return None
    width, height = found.reach
    slabs = [([x0, x1, np.nan], [y0, y1, np.nan]) for x0, y0, x1, y1 in frame.lines]
    x, y = np.concatenate(slabs, axis=1) if slabs else ([], [])
    traces = [line(x, y, "slabs", "rgba(0,114,178,0.35)", width=1) | {"hoverinfo": "skip"}]
    if frame.flat:
        (px, py), (fx, fy), far = frame.proxy, frame.flat, 2 * width
        ends = [px - far * fx, px + far * fx], [py - far * fy, py + far * fy]
        traces.append(line(*ends, "flattest direction", COLOURS[2], dash="dash"))
    traces.append(_heads([frame.proxy], "proxy", "#888888", "square"))
    traces.append(_heads(found.true, "true heads", COLOURS[1], "x"))
    if frame.heads:
        traces.append(_heads(frame.heads, "heads found", COLOURS[0], "circle-open"))
    axes = {"xaxis": {"range": [-width, width]}, "yaxis": {"range": [-height, height]}}
    return {"data": traces, "layout": layout("from head to head", "across", **axes)}


def data(found: Sculpture | None) -> str:
    """Return all phases of a sculpture as CSV: points, and lines by both their ends."""
    rows: list[tuple[Any, ...]] = []
    for number, frame in enumerate(found.frames if found else (), 1):
        (x, y), flat = frame.proxy, frame.flat
        rows += [(number, "slab", *ends) for ends in frame.lines]
        rows += [(number, "flattest direction", x - flat[0], y - flat[1], x + flat[0], y + flat[1])] if flat else []
        marks = [("proxy", (x, y)), *(("true head", head) for head in (found.true if found else ()))]
        marks += [("head found", head) for head in frame.heads or ()]
        rows += [(number, what, *place, "", "") for what, place in marks]
    title = found.title if found else ""
    return table(("sculpture", "phase", "what", "x", "y", "end_x", "end_y"), [(title, *row) for row in rows])


def parse(found: Any) -> Sculpture | None:
    """Return the sculpture that a browser holds, if it holds one."""
    try:
        return None if found is None else Sculpture.model_validate(found)
    except ValidationError:
        raise InputError("Not a saved sculpture") from None


def _settings(state: State, _found: Sculpture | None) -> dict[str, Any]:
    return {"d": int(state["d"]), "scale": state["scale"], "n": _EXAMPLES, "seed": int(state["seed"])}


def _finish(settings: dict[str, Any], result: dict[str, Any], _found: Sculpture | None) -> tuple[str, Any]:
    title = f"d = {settings['d']}, s = {settings['scale']:g}, seed {settings['seed']}"
    return f"{title}: done; move the slider through the phases", result | {"title": title}


def _frame(view: View[Sculpture | None]) -> Frame | None:
    """Return the phase that the slider is at."""
    phase = int(view.state["phase"])
    return view.found.frames[min(phase, len(view.found.frames)) - 1] if view.found and phase else None


def _heads(places: Any, name: str, colour: str, symbol: str) -> Trace:
    x, y = np.transpose(places)
    return points(x, y, name, colour, symbol=symbol, line={"width": 2, "color": colour})


SECTION = Section(
    heading="Sculpting: find two heads from random examples",
    text=f"Two heads are hidden in a layer, and the learner sees {_EXAMPLES} random examples. An example on which both "
    "heads attend alike confines Θ to a slab. All slabs together leave a body that is long from head to head.",
    controls=(
        Slider("d", "Token dimension d", 4, 8, 1, 6),
        Slider("scale", "Logit scale s", 1, 6, 0.5, 3),
        Slider("seed", "Random seed", 0, 19, 1, 1),
    ),
    summary=summary,
    plots=[Plot("body", "A plane through both heads: slabs, proxy and heads", draw)],
    job=Job(
        name="sculpt",
        work=sculpt,
        settings=_settings,
        finish=_finish,
        parse=parse,
        data=data,
        phases=Slider("phase", "Phase", 0, PHASES, 1, 0),
    ),
)
