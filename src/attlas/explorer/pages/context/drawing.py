"""The plots of the page of learning in context, their data, and the sentence that goes with them."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.explorer.controls import State
from attlas.explorer.page import View
from attlas.explorer.pages.context import theory
from attlas.explorer.pages.context.points import LEARNERS, Point, along, close, endless, trained
from attlas.explorer.pages.context.runs import Run
from attlas.explorer.pages.context.theory import BAYES, NEW, OLD, SETTINGS, TUNED
from attlas.explorer.plotting import Figure, Trace, layout, line, plain, points, table, titled

LABELS = {
    "tau": "training sequences over d², τ",
    "kappa": "training tasks over d, κ",
    "alpha": "examples of a context over d, α",
}
_COLOURS = {NEW: COLOURS[0], OLD: COLOURS[1], TUNED: COLOURS[2], BAYES: "#777777"}
_STYLES: dict[str, dict[str, Any]] = {TUNED: {"dash": "dash", "width": 1.8}, BAYES: {"dash": "dot", "width": 1.8}}
_SIGNS = {"alpha": "α", "kappa": "κ", "tau": "τ", "ridge": "λ", "noise": "noise"}
_ENDLESS, _TRANSITION = "endless training", "endless training and contexts"
_TICKS = {
    "error": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20),
    "kappa": (0.1, 0.2, 0.5, 1, 2, 5, 10),
    "alpha": (0.2, 1, 5, 20, 100, 1000),
}


def summary(view: View[list[Run]]) -> str:
    """Return in words what the plots show."""
    state = view.state
    found, best, bayes = theory.here(state)
    text = (
        f"The trained layer has error {found.icl:.3f} on new tasks and {found.idg:.3f} on its training tasks"
        f" (predicting zero costs {1 + state['noise']:.3g}). With the best ridge, {best.ridge:.3g}, it would have"
        f" {best.icl:.3f} on new tasks; the best that a context allows is {bayes:.3f}."
    )
    return text if along(view, "tau") else text + _elsewhere(view)


def draw(axis: str) -> Callable[[View[list[Run]]], Figure]:
    """Return the function that draws the errors against one of the ratios."""

    def drawn(view: View[list[Run]]) -> Figure:
        state = view.state
        traces = [
            line(*curve, name, _COLOURS[name], **_STYLES.get(name, {}))
            for name, curve in theory.curves(state, axis).items()
        ]
        if axis == "kappa":
            x, reached, limit = theory.diversity(state)
            traces.append(line(x, reached, _ENDLESS, COLOURS[4], width=1.5))
            traces.append(line(x, limit, _TRANSITION, COLOURS[4], dash="dot", width=1.5))
            traces += _marks(endless(view), LEARNERS, legend=True)
        traces += _points(view, axis)
        return {
            "data": traces,
            "layout": layout(
                titled(LABELS[axis], _named(state, axis)),
                "error",
                xaxis={} if axis == "tau" else _logarithmic(_TICKS[axis]),
                yaxis=_logarithmic(_TICKS["error"]) | {"range": _range(traces, state)},
                shapes=_here(theory.settings_of(state)[axis]),
            ),
        }

    return drawn


def data(axis: str) -> Callable[[View[list[Run]]], str]:
    """Return the function that gives the same as CSV."""

    def given(view: View[list[Run]]) -> str:
        rows: list[tuple[Any, ...]] = [
            (name, *place, "", "", "", "")
            for name, curve in theory.curves(view.state, axis).items()
            for place in zip(*curve, strict=True)
        ]
        if axis == "kappa":
            x, reached, limit = theory.diversity(view.state)
            rows += [(_ENDLESS, *place, "", "", "", "") for place in zip(x, reached, strict=True)]
            rows += [(_TRANSITION, *place, "", "", "", "") for place in zip(x, limit, strict=True)]
        for point in along(view, axis) + (endless(view) if axis == "kappa" else []):
            rows.append((point.kind, point.x, point.mean, point.error, point.seeds, point.d, point.claim))
        return table(("what", axis, "error", "standard_error", "seeds", "d", "claim"), rows)

    return given


def draw_diagram(view: View[list[Run]]) -> Figure:
    """Return the error on new tasks over tasks and sequences."""
    state = view.state
    kappas, taus, errors = theory.diagram(state)
    nothing = 1 + state["noise"]
    heat = {
        "type": "heatmap",
        "x": plain(kappas),
        "y": plain(taus),
        "z": plain(errors, 4),
        "colorscale": "Cividis",
        "zmin": 0,
        "zmax": 2 * nothing,
        "reversescale": True,
        "colorbar": {"title": {"text": "error"}, "thickness": 14},
        "hovertemplate": "κ %{x}, τ %{y}: %{z}<extra></extra>",
    }
    contour = {
        "type": "contour",
        "x": plain(kappas),
        "y": plain(taus),
        "z": plain(np.minimum(errors, 4 * nothing), 4),
        "contours": {"start": nothing, "end": nothing, "size": 1, "coloring": "none"},
        "line": {"color": COLOURS[1], "width": 2},
        "showscale": False,
        "showlegend": True,
        "name": "same as predicting zero",
        "hoverinfo": "skip",
    }
    traces: list[Trace] = [heat, contour]
    at = theory.settings_of(state)
    if at["kappa"] < inf:
        ring = {"color": "#000", "width": 2}
        traces.append(points([at["kappa"]], [at["tau"]], "your settings", "#ffffff", line=ring))
    ends = {"range": [float(kappas[0]), float(kappas[-1])]}, {"range": [float(taus[0]), float(taus[-1])]}
    title = titled(LABELS["kappa"], _named(state, "kappa", "tau"))
    return {"data": traces, "layout": layout(title, LABELS["tau"], xaxis=ends[0], yaxis=ends[1])}


def diagram_data(view: View[list[Run]]) -> str:
    """Return the error on new tasks over tasks and sequences as CSV."""
    kappas, taus, errors = theory.diagram(view.state)
    rows = [(k, t, e) for t, row in zip(taus, errors, strict=True) for k, e in zip(kappas, row, strict=True)]
    return table(("kappa", "tau", "icl"), rows)


def _marks(found: list[Point], colours: dict[str, str], legend: bool) -> list[Trace]:
    """Return points of the store with their standard errors, a trace for each kind; larger d, larger points."""
    traces = []
    for kind in dict.fromkeys(point.kind for point in found):
        mine = [point for point in found if point.kind == kind]
        sizes = [6 + p.d / 12 for p in mine]
        marks = points([p.x for p in mine], [p.mean for p in mine], kind, colours[kind], size=sizes)
        bars = {"error_y": {"type": "data", "array": plain([p.error for p in mine])}, "showlegend": legend}
        traces.append(marks | bars | {"text": [f"d = {p.d}, {p.seeds} seeds ({p.claim})" for p in mine]})
    return traces


def _points(view: View[list[Run]], axis: str) -> list[Trace]:
    """Return the simulations of the store, and the visitor's runs."""
    traces = _marks(along(view, axis), _COLOURS, legend=False)
    at = theory.settings_of(view.state)
    runs = [(run, _of_run(run)) for run in view.found]
    runs = [
        (run, given)
        for run, given in runs
        if given[axis] < inf and all(close(given[name], at[name]) for name in SETTINGS if name != axis)
    ]
    for kind, key in ((NEW, "icl"), (OLD, "idg")):
        if runs:
            shapes = ["star" if run.converged else "star-open" for run, _ in runs]
            places = [given[axis] for _, given in runs], [getattr(run, key) for run, _ in runs]
            marks = points(*places, f"your layers, {kind}", _COLOURS[kind], symbol=shapes)
            traces.append(marks | {"text": [f"d = {run.d}, seed {run.seed}" for run, _ in runs]})
    return traces


def _of_run(run: Run) -> dict[str, float]:
    return {name: float(getattr(run, name)) for name in SETTINGS} | ({"kappa": inf} if run.tasks == "own" else {})


def _named(state: State, *but: str) -> str:
    """Return the settings in words, for a figure that leaves the page."""
    at = theory.settings_of(state)
    values = {name: "∞" if value == inf else f"{value:.2g}" for name, value in at.items()}
    return ", ".join(f"{_SIGNS[name]} = {value}" for name, value in values.items() if name not in but)


def _elsewhere(view: View[Any]) -> str:
    """Return where the store has simulations."""
    places = {_named({"tasks": "own" if at["kappa"] == inf else "few"} | at) for at, _ in trained(view)}
    return f" The store has simulations at {'; at '.join(sorted(places)[:3])}." if places else ""


def _logarithmic(ticks: tuple[float, ...]) -> dict[str, Any]:
    return {"type": "log", "tickvals": list(ticks), "ticktext": [f"{tick:g}" for tick in ticks]}


def _range(traces: list[Trace], state: State) -> list[float]:
    """Return the range of the errors, in decimal logarithms: from the lowest to above the peak, but not beyond 30."""
    values = [value for trace in traces for value in trace["y"] if value]
    low = max(min(values), 0.01 * (1 + state["noise"]))
    return [float(np.log10(0.8 * low)), float(np.log10(min(1.25 * max(values), 30)))]


def _here(x: float) -> list[dict[str, Any]]:
    """Return the line at the position of the slider; a number of tasks without end has none."""
    ends = {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1}
    return [ends | {"line": {"width": 1, "color": "#888888"}}] if x < inf else []
