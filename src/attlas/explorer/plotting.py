"""One look for every plot of the explorer: theory as lines, simulations as points with error bars; and the same as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attlas.claims.learners import learner
from attlas.explorer.simulations import Stored

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
}
INK, RULE = "#1a1a1a", "#d9dce1"  # of a saved figure; on the page style sheets follow the reader's scheme

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Figure = dict[str, Any]  # as Plotly takes it
Trace = dict[str, Any]


def layout(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Return a layout with the titles of both axes."""
    axis = {"gridcolor": RULE, "zerolinecolor": RULE, "linecolor": INK, "ticks": "outside", "automargin": True}
    both = {"xaxis": axis | {"title": {"text": x}}, "yaxis": axis | {"title": {"text": y}}}
    look: dict[str, Any] = {
        "font": {"family": "system-ui, sans-serif", "size": 14, "color": INK},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "legend": {
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.02,
            "x": 0,
            "font": {"size": 12},
            "bgcolor": "rgba(0,0,0,0)",
        },
        "height": 384,
        "autosize": True,
        "hovermode": "closest",
        "uirevision": "same",  # a zoom survives the next move of a slider
    }
    for name, value in more.items():
        part = both if name in both else look
        part[name] = part[name] | value if isinstance(part.get(name), dict) else value
    return look | both


BLANK: Figure = {"data": [], "layout": layout("", "", xaxis={"visible": False}, yaxis={"visible": False})}


def titled(axis: str, settings: str) -> str:
    """Return the title of an axis with the settings below it, small, for a figure that leaves the page."""
    return f'{axis}<br><span style="font-size:12px">({settings})</span>'


def line(x: ArrayLike, y: ArrayLike, name: str, colour: str, **more: Any) -> Trace:
    """Return a curve; `more` goes to its line's style (``dash``, ``width``)."""
    style = {"color": colour, "width": 2.5} | more
    return {"type": "scatter", "mode": "lines", "x": plain(x), "y": plain(y), "name": name, "line": style}


def points(x: ArrayLike, y: ArrayLike, name: str, colour: str, **more: Any) -> Trace:
    """Return single points; `more` goes to their markers' style (``symbol``, ``size``)."""
    style = {"color": colour, "size": 12, "opacity": 1} | more
    return {"type": "scatter", "mode": "markers", "x": plain(x), "y": plain(y), "name": name, "marker": style}


def simulated(stored: Sequence[Stored], lines: Sequence[Trace] = ()) -> list[Trace]:
    """Return the points of stored series with their standard errors, a trace for each learner; larger d, larger points.

    A learner that has a line already, of the same name and colour, has no second entry in the legend.
    """
    known = {line["name"] for line in lines}
    traces = []
    for name in dict.fromkeys(found.series.name for found in stored):
        rows = [
            (*row, f"d = {series.settings['d']}, {row[-1]} seeds ({claim})", 8 + min(series.settings["d"], 240) / 24)
            for claim, series in stored
            for row in zip(series.x, series.mean, series.standard_error, series.seeds, strict=True)
            if series.name == name
        ]
        x, mean, error, _, text, sizes = zip(*rows, strict=True)
        look = learner(name)
        trace = points(x, mean, look.name, look.colour, symbol=SYMBOLS[look.marker], size=list(sizes))
        bars = {"error_y": {"type": "data", "array": plain(error)}, "text": list(text)}
        traces.append(trace | bars | {"showlegend": look.name not in known})
    return traces


def curves_csv(x_name: str, y_name: str, lines: Mapping[str, tuple[Any, Any]], stored: Sequence[Stored]) -> str:
    """Return curves by name, and stored series with their standard errors, as CSV."""
    rows: list[tuple[Any, ...]] = [
        (name, *xy, "", "", "", "") for name, c in lines.items() for xy in zip(*c, strict=True)
    ]
    for claim, s in stored:
        name, d = learner(s.name).name, s.settings["d"]
        rows += [(name, *row, d, claim) for row in zip(s.x, s.mean, s.standard_error, s.seeds, strict=True)]
    return table(("what", x_name, y_name.replace(" ", "_"), "standard_error", "seeds", "d", "claim"), rows)


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV, each number with all its digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([float(cell) if isinstance(cell, np.floating) else cell for cell in row] for row in rows)
    return text.getvalue()


def written(value: float, digits: int = 3) -> str:
    """Return a number as one writes it, as the browser does beside sliders: powers of ten where it is small or large."""
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0 or 1e-3 <= abs(rounded) < 1e5:
        return f"{rounded:g}".replace("-", "−")
    mantissa, power = f"{rounded:e}".split("e")
    factor = f"{float(mantissa):g}".replace("-", "−")
    return ("" if factor == "1" else f"{factor} × ") + "10" + str(int(power)).translate(_RAISED)


def plain(values: ArrayLike, digits: int = 6) -> list[Any]:
    """Return numbers as JSON has them, to this many digits; a value that is not finite is a gap."""
    flat = np.asarray(values, dtype=float)
    if flat.ndim == 2:
        return [plain(row, digits) for row in flat]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in flat]
