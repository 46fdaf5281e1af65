"""One look for every plot of the page: theory as lines, simulation as points with error bars, colour-blind safe."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from dash import dcc, html
from numpy.typing import ArrayLike

from attlas.claims.figure import COLOURS

MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
INK, RULE = "#1a1a1a", "#d9dce1"  # of the file one downloads; on the page style sheets follow the reader's scheme


def layout(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Return a layout with the titles of both axes."""
    axis = {"gridcolor": RULE, "zerolinecolor": RULE, "linecolor": INK, "ticks": "outside", "automargin": True}
    both = {"xaxis": axis | {"title": {"text": x}}, "yaxis": axis | {"title": {"text": y}}}
    look: dict[str, Any] = {
        "font": {"family": "system-ui, sans-serif", "size": 14, "color": INK},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "bgcolor": "rgba(0,0,0,0)"},
        "height": 384,
        "autosize": True,
        "hovermode": "closest",
        "uirevision": "kept",  # a zoom survives the next move of a slider
    }
    for name, value in more.items():
        found = both if name in both else look
        found[name] = found[name] | value if isinstance(found.get(name), dict) else value
    return look | both


BLANK = {"data": [], "layout": layout("", "")}


def line(x: ArrayLike, y: ArrayLike, name: str, i: int = 0, **more: Any) -> dict[str, Any]:
    """Return a curve of the theory."""
    style = {"color": COLOURS[i], "width": 2.5}
    xs, ys = plain(x), plain(y)
    return {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "name": name, "line": style} | more


def points(x: ArrayLike, y: ArrayLike, spread: ArrayLike, name: str, i: int = 0, **more: Any) -> dict[str, Any]:
    """Return simulations with their standard errors."""
    style = {"color": COLOURS[i], "symbol": MARKERS[i % len(MARKERS)], "size": 9}
    bars = {"type": "data", "array": plain(spread), "color": COLOURS[i]}
    trace = {"type": "scatter", "mode": "markers", "x": plain(x), "y": plain(y), "name": name, "marker": style}
    return trace | {"error_y": bars} | more


def plain(values: ArrayLike, digits: int = 6) -> list[Any]:
    """Return numbers as JSON has them, to so many digits; what is not finite is a gap."""
    flat = np.asarray(values, dtype=float)
    if flat.ndim == 2:
        return [plain(row, digits) for row in flat]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in flat]


def graph(name: str, caption: str) -> Any:
    """Return the place of a plot, with a button that saves it."""
    options: Any = {"displaylogo": False, "displayModeBar": False, "responsive": True}
    button = html.Button("Save figure", id={"save": name}, type="button", className="quiet")
    body = dcc.Graph(id=name, config=options, className="plot", figure=BLANK)
    return html.Figure(
        [html.Figcaption([html.Span(caption), button]), html.Div(body, role="img", **{"aria-label": caption})]
    )


def file_link(name: str, label: str) -> Any:
    """Return a link to data as CSV; the browser adds the settings to it as they change."""
    return html.A(f"{label} (CSV)", id={"data": name}, href=f"/data/{name}.csv", download="")


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV, each number with all its digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([float(cell) if isinstance(cell, np.floating) else cell for cell in row] for row in rows)
    return text.getvalue()
