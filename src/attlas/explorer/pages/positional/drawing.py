"""The plots of the page of position and meaning, their data, and the sentence that goes with them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.claims.positional.kit import COLOUR
from attlas.explorer.page import View
from attlas.explorer.pages.positional import theory
from attlas.explorer.pages.positional.runs import Run
from attlas.explorer.plotting import Figure, Trace, layout, line, plain, points, table, titled
from attlas.explorer.simulations import Stored, stored
from attlas.positional import FixedPoint

NAMES = {"positional": "by position", "semantic": "by meaning"}
WORDS = {"loss": "loss", "test": "test error"}
_SETTINGS = ("mixture", "encoding", "d")  # of simulations that the plots can show
_GREY = "#777777"
_HOLDS = 0.7  # slope up to which nearly all runs from a small random start stay at the positional minimum
_RIGHT = 8.2  # end of the axis of alpha
Points = dict[str, FixedPoint]
_FOUND = {"positional": COLOUR["positional"], "semantic": COLOUR["semantic"], "between": _GREY}


def summary(view: View[list[Run]]) -> str:
    """Return in words what the plots show."""
    state, found, along = view.state, theory.here(view.state), theory.curves(view.state)
    text = f"At α = {state['alpha']:g} " + _minima(found)
    text += f" Fixed weights by place have test error {along.baseline:.4f} at best."
    crosses = np.isfinite(along.switch)
    text += f" The losses cross at α = {along.switch:.2f}." if crosses else " The losses do not cross here."
    text += _doubts(found)
    return text if _here(view, "loss") else text + _elsewhere(view)


def _minima(found: Points) -> str:
    """Return which minima there are, which one is lower, and which one training finds."""
    unsolved = [NAMES[branch] for branch, point in found.items() if not point.converged]
    if unsolved:
        return f"the equations for the minimum {' and '.join(unsolved)} were not solved."
    missing = [branch for branch, point in found.items() if point.mechanism != branch]
    if len(missing) == 2:
        return "the theory has no minimum of either kind."
    if missing:
        (own,) = [branch for branch in found if branch not in missing]
        return (
            f"the theory has no minimum that attends {NAMES[missing[0]]}. The one {NAMES[own]} has test error"
            f" {found[own].test:.4f}."
        )
    place, meaning = found["positional"], found["semantic"]
    lower = "meaning" if meaning.loss < place.loss else "position"
    numbers = (
        f"the losses are {place.loss:.4f} by position and {meaning.loss:.4f} by meaning, the test errors"
        f" {place.test:.4f} and {meaning.test:.4f}."
    )
    if not meaning.stable:
        return f"only position is a minimum; the solution by meaning is a saddle, from which position grows: {numbers}"
    text = f"the lower minimum attends by {lower}: {numbers}"
    if not place.stable:
        return text + " The one by position is unstable: a trace of meaning grows, and training finds meaning."
    if lower == "meaning":
        often = "usually" if place.slope < _HOLDS else "often"
        text += (
            f" The positional one is stable all the same, and training from a small random start {often} ends there."
        )
    return text


def _doubts(found: Points) -> str:
    """Return where the theory is not exact, and what that means."""
    doubtful = {branch: point for branch, point in found.items() if point.converged and not point.reliable}
    if not doubtful:
        return ""
    shares = [f"{NAMES[branch]} {point.jump_share:.0%}" for branch, point in doubtful.items()]
    text = f" The theory is approximate here: jumps carry part of the response ({', '.join(shares)})."
    lost = [NAMES[branch] for branch, point in doubtful.items() if point.mechanism != branch]
    return text + (f" Training may still find a minimum {' or '.join(lost)}." if lost else "")


def draw(what: str) -> Callable[[View[list[Run]]], Figure]:
    """Return the function that draws losses or test errors of both minima."""

    def drawn(view: View[list[Run]]) -> Figure:
        found = theory.curves(view.state)
        values = getattr(found, what)
        traces = [trace for branch in NAMES for trace in _curve(found, branch, values[branch])]
        if what == "test":
            ends = found.alpha["semantic"][[0, -1]]
            traces.append(
                line(ends, [found.baseline] * 2, "best fixed weights by place", _GREY, dash="dash", width=1.8)
            )
        shown = [(x, y) for trace in traces for x, y in zip(trace["x"], trace["y"], strict=True) if y is not None]
        top = max([y for x, y in shown if x <= _RIGHT], default=1.0)
        if np.isfinite(found.switch):
            x = [found.switch] * 2
            traces.append(line(x, [0, 1.05 * top], f"switch, α = {found.switch:.2f}", _GREY, dash="dot", width=1.8))
        traces += _simulated(view, what) + _trained(view, what)
        state = view.state
        where = f"ω = {state['mixture']:g}, c = {state['encoding']:g}"
        here = {"type": "line", "x0": state["alpha"], "x1": state["alpha"], "yref": "paper", "y0": 0, "y1": 1,
                "line": {"width": 1, "color": "#888888"}}  # fmt: skip
        return {
            "data": traces,
            "layout": layout(
                titled("samples α = n/d", where),
                WORDS[what],
                xaxis={"range": [0, _RIGHT]},
                yaxis={"range": [0, 1.05 * top]},
                shapes=[here],
            ),
        }

    return drawn


def _curve(found: theory.Curves, branch: str, values: Any) -> list[Trace]:
    """Return the curve of a branch, dotted where the theory is approximate or the solution is a saddle."""
    sure, alpha, name = found.sure[branch], found.alpha[branch], NAMES[branch]
    traces = [line(alpha, np.where(sure, values, np.nan), name, COLOUR[branch])]
    doubtful = ~sure
    doubtful[1:] |= ~sure[:-1]  # up to where the solid line begins
    doubtful[:-1] |= ~sure[1:]
    if np.isfinite(values[doubtful]).any():
        dotted = line(alpha, np.where(doubtful, values, np.nan), f"{name}, approximate", COLOUR[branch], dash="dot")
        traces.append(dotted | {"showlegend": False})
    return traces


def data(what: str) -> Callable[[View[list[Run]]], str]:
    """Return the function that gives the same as CSV."""

    def given(view: View[list[Run]]) -> str:
        found = theory.curves(view.state)
        rows: list[tuple[Any, ...]] = [
            (name, alpha, value, "", "", "", "", "yes" if sure else "no")
            for branch, name in NAMES.items()
            for alpha, value, sure in zip(
                found.alpha[branch], getattr(found, what)[branch], found.sure[branch], strict=True
            )
            if np.isfinite(value)
        ]
        if what == "test":
            rows.append(("best fixed weights by place", "", found.baseline, "", "", "", "", ""))
        rows.append(("switch", found.switch, "", "", "", "", "", ""))
        for claim, one in _here(view, what):
            for row in zip(one.x, one.mean, one.standard_error, one.seeds, strict=True):
                rows.append((one.name, *row, one.settings["d"], claim, ""))
        names = ("what", "alpha", WORDS[what].replace(" ", "_"), "standard_error", "seeds", "d", "claim", "reliable")
        return table(names, rows)

    return given


def matrices(view: View[list[Run]]) -> dict[str, Any]:
    """Return the mean attention of the teacher and of either minimum."""
    found = theory.here(view.state)
    return {"teacher": theory.teacher_attention(view.state)} | {
        NAMES[branch]: point.attention if point.converged and point.mechanism == branch else np.full((2, 2), np.nan)
        for branch, point in found.items()
    }


def draw_attention(view: View[list[Run]]) -> Figure:
    """Return the mean attention matrices of the teacher and of the two minima, side by side."""
    traces: list[Trace] = []
    axes: dict[str, Any] = {}
    titles = []
    for i, (name, matrix) in enumerate(matrices(view).items()):
        low, high = i * 0.36, i * 0.36 + 0.28
        tail = "" if i == 0 else str(i + 1)
        there = bool(np.isfinite(matrix).all())
        traces.append(
            {
                "type": "heatmap",
                "x": ["1", "2"],
                "y": ["2", "1"],  # the first token on top
                "z": plain(matrix[::-1], 4),
                "text": [[f"{v:.2f}" if there else "none" for v in row] for row in matrix[::-1]],
                "texttemplate": "%{text}",
                "colorscale": [[0, "#ffffff"], [1, COLOURS[4]]],  # on all of which dark numbers can be read
                "textfont": {"color": "#111111"},
                "zmin": 0.2,
                "zmax": 0.8,
                "showscale": False,
                "name": name,
                "hovertemplate": "token %{y} to token %{x}: %{z}<extra></extra>",
                "xaxis": f"x{tail}",
                "yaxis": f"y{tail}",
            }
        )
        plainly = {"type": "category", "showgrid": False, "ticks": ""}
        axes[f"xaxis{tail}"] = plainly | {"domain": [low, high], "anchor": f"y{tail}", "title": {"text": "to token"}}
        axes[f"yaxis{tail}"] = plainly | {"anchor": f"x{tail}", "scaleanchor": f"x{tail}", "constrain": "domain"}
        if i == 0:
            axes["yaxis"]["title"] = {"text": "from token"}
        titles.append({"text": name if there else f"{name}:<br>none", "x": (low + high) / 2, "y": 1.02, "xref": "paper",
                       "yref": "paper", "showarrow": False, "xanchor": "center", "yanchor": "bottom"})  # fmt: skip
    return {"data": traces, "layout": layout("to token", "from token", annotations=titles, margin={"t": 48}, **axes)}


def attention_data(view: View[list[Run]]) -> str:
    """Return the same as CSV."""
    rows = [
        (name, i + 1, j + 1, matrix[i][j]) for name, matrix in matrices(view).items() for i in (0, 1) for j in (0, 1)
    ]
    return table(("whose", "from_token", "to_token", "mean_attention"), rows)


def _here(view: View[Any], what: str) -> list[Stored]:
    """Return the simulations of the store at the teacher and encoding of the sliders."""
    return [one for one in _all(view, what) if _close(one.series.settings, view.state)]


def _all(view: View[Any], what: str) -> list[Stored]:
    return [
        one
        for one in stored(view.store, "positional", "alpha", WORDS[what], _SETTINGS)
        if one.series.name in NAMES.values() and set(_SETTINGS) <= set(one.series.settings)
    ]


def _close(settings: Any, state: Any) -> bool:
    return all(abs(float(settings[name]) - float(state[name])) < 1e-6 for name in ("mixture", "encoding"))


def _elsewhere(view: View[Any]) -> str:
    places = {(one.series.settings["mixture"], one.series.settings["encoding"]) for one in _all(view, "loss")}
    words = [f"ω = {mixture:g}, c = {encoding:g}" for mixture, encoding in sorted(places)]
    return f" The store has simulations at {'; '.join(words[:4])}." if words else ""


def _simulated(view: View[Any], what: str) -> list[Trace]:
    traces = []
    for branch, name in NAMES.items():
        rows = [
            (*row, f"d = {one.settings['d']}, {row[-1]} seeds ({claim})", 6 + one.settings["d"] / 40)
            for claim, one in _here(view, what)
            for row in zip(one.x, one.mean, one.standard_error, one.seeds, strict=True)
            if one.name == name
        ]
        if rows:
            x, mean, error, _, text, sizes = zip(*rows, strict=True)
            marks = points(x, mean, name, COLOUR[branch], size=list(sizes))
            traces.append(
                marks | {"error_y": {"type": "data", "array": plain(error)}, "text": list(text), "showlegend": False}
            )
    return traces


def _trained(view: View[list[Run]], what: str) -> list[Trace]:
    """Return the visitor's runs at this teacher and encoding, in the colour of what they found."""
    runs = [run for run in view.found if _close(run.model_dump(), view.state)]
    if not runs:
        return []
    shapes = ["star" if run.converged else "star-open" for run in runs]
    colours = [_FOUND[run.mechanism] for run in runs]
    marks = points([run.alpha for run in runs], [getattr(run, what) for run in runs], "your runs", _GREY, symbol=shapes)
    marks["marker"] |= {"color": colours, "size": 14, "line": {"width": 1, "color": "#ffffff"}}
    return [marks | {"text": [f"{run.mechanism}, d = {run.d}, {run.method}, seed {run.seed}" for run in runs]}]
