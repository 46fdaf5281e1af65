"""The second half of the page of recovery: a black box is asked, query by query, until every parameter is known."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas import layers, recovery
from attlas.explorer.controls import Slider, State
from attlas.explorer.memoised import memoised
from attlas.explorer.page import Plot, Section, View
from attlas.explorer.play import Player
from attlas.explorer.plotting import INK, Figure, Trace, layout, plain, table, written

Array = NDArray[np.float64]

_BARE = {"ticks": ""} | dict.fromkeys(("showticklabels", "showline", "showgrid", "zeroline"), False)
_DIVERGING = [[0, "#8a3500"], [0.25, "#e08a4f"], [0.5, "#ffffff"], [0.75, "#5aa2d0"], [1, "#00436b"]]  # for all eyes
_BAR = {"orientation": "h", "thickness": 10, "len": 0.6, "x": 0.5, "y": -0.02, "yanchor": "top"}


class Dialogue(NamedTuple):
    """Every query with its answer, the Theta that was learned from them and why it can be believed, and the truth."""

    queries: tuple[tuple[Array, Array], ...]
    learned: Array
    reason: str
    Theta: Array
    W: Array


@memoised(128, "dim", "box")
def dialogue(state: State) -> Dialogue:
    """Return all queries to the box."""
    d = int(state["dim"])
    Theta, W = recovery.planted_layer(heads=1, d=d, seed=int(state["box"]))
    asked: list[tuple[Array, Array]] = []

    def oracle(X: Any) -> Any:
        answer = layers.multi_head_attention(X[None], Theta, W)[0, -1]
        asked.append((X.copy(), np.atleast_1d(answer)))
        return answer

    found = recovery.learn_from_queries(oracle, d=d)
    return Dialogue(tuple(asked[: found.certificate.queries]), found.Theta[0], found.certificate.reason, Theta[0], W[0])


def known(state: State) -> tuple[Array, Array]:
    """Return W and Theta as far as the answers so far reveal them, NaN elsewhere.

    The share of v W in the answer to [q + v; q] is sigma(q^T Theta v). A row of Theta is known with d such logits; one that
    came out saturated is asked again along the same direction, and the last answer counts.
    """
    found = dialogue(state)
    W, Theta = np.full(found.W.shape, np.nan), np.full(found.Theta.shape, np.nan)
    rows: list[dict[bytes, tuple[Array, float]]] = [{} for _ in Theta]
    for X, answer in _asked(state):
        row = int(np.argmax(X[-1]))
        if len(X) == 1:
            W[row] = answer
        else:
            v = X[0] - X[1]
            rows[row][np.round(v / np.linalg.norm(v), 9).tobytes()] = v, _logit(X, answer, W)
    for row, logits in enumerate(rows):
        if len(logits) == len(Theta):
            Theta[row] = np.linalg.solve([v for v, _ in logits.values()], [logit for _, logit in logits.values()])
    return W, Theta


def _logit(X: Array, answer: Array, W: Array) -> float:
    """Return the logit q^T Theta v that the answer to [q + v; q] reveals, NaN where it is saturated."""
    q, v = X[1], X[0] - X[1]
    share = float((answer - q @ W) @ (v @ W)) / float((v @ W) @ (v @ W))
    return float(np.log(share / (1 - share))) if 0 < share < 1 else np.nan


def summary(view: View[None]) -> str:
    """Return in words how far the queries have come."""
    found, count, d = dialogue(view.state), len(_asked(view.state)), int(view.state["dim"])
    if count < len(found.queries):
        return f"{count} of {len(found.queries)} queries asked (d² + d = {d * d + d})."
    error = float(np.abs(found.learned - found.Theta).max())
    return f"All {count} queries asked. Θ is known to {written(error, 2)}; {found.reason}."


def draw_query(view: View[None]) -> Figure | None:
    """Return the tokens of the last query and its answer, as numbers on a heat map."""
    if not (asked := _asked(view.state)):
        return None
    X, answer = asked[-1]
    names = ["q + v", "q", "answer"] if len(X) == 2 else ["token", "answer"]
    rows = [*X, answer]
    text = [[written(number) for number in row] for row in rows]
    numbers = {"z": plain(rows), "text": text, "texttemplate": "%{text}", "showscale": False}
    found = dialogue(view.state)
    axes = _panel("", (0, 1), (0, 1), len(answer), len(names))
    axes["yaxis"] |= _named(names, range(len(names)))
    words = {"text": f"The answer {_revealed(X, answer, found.W)}", "x": 0.5, "y": -0.02, "yanchor": "top"}
    words |= {"xref": "paper", "yref": "paper", "xanchor": "center", "showarrow": False}
    return {"data": [_colours(found) | numbers], "layout": _layout(annotations=[words], **axes)}


def _revealed(X: Array, answer: Array, W: Array) -> str:
    """Return what the answer to a query says."""
    if len(X) == 1:
        return f"is row {int(np.argmax(X[0])) + 1} of W"
    logit = _logit(X, answer, W)
    return (
        f"says qᵀ Θ v = {written(logit)}" if np.isfinite(logit) else "is saturated: the query is asked again, shorter"
    )


def queries_data(view: View[None]) -> str:
    """Return the queries asked so far, and their answers, as CSV."""
    rows = [
        (i + 1, " | ".join(" ".join(repr(float(x)) for x in token) for token in X), *map(float, answer))
        for i, (X, answer) in enumerate(_asked(view.state))
    ]
    return table(("query", "tokens", *(f"answer_{k + 1}" for k in range(dialogue(view.state).W.shape[1]))), rows)


def draw_matrices(view: View[None]) -> Figure:
    """Return W and Theta as far as they are known, as they are, and the difference, all in the same colours."""
    found, d = dialogue(view.state), int(view.state["dim"])
    traces: list[Trace] = []
    axes: dict[str, Any] = {}
    for name, known_, true in zip(("W", "Θ"), known(view.state), (found.W, found.Theta), strict=True):
        low, toward = (0.52, "bottom") if name == "W" else (0.0, "top")
        for place, (title, entries) in enumerate((("known", known_), ("hidden", true), ("difference", known_ - true))):
            end = str(len(traces) + 1) if traces else ""  # as Plotly counts axes
            axes |= _panel(end, (0.345 * place, 0.345 * place + 0.31), (low, low + 0.48), d, d)
            axes[f"yaxis{end}"] |= {"constraintoward": toward} | ({} if place else _named([name], [(d - 1) / 2]))
            axes[f"xaxis{end}"] |= {"side": "top", "title": {"text": title if name == "W" else "", "standoff": 6}}
            shared = {"xaxis": f"x{end}", "yaxis": f"y{end}", "showscale": not traces, "colorbar": _BAR}
            traces.append(_colours(found) | {"z": plain(entries)} | shared)
    look = _layout(height=420, margin={"l": 40, "r": 10, "t": 40, "b": 60}, **axes)
    return {"data": traces, "layout": look | {"shapes": _asked_now(view.state), "meta": {"last": len(found.queries)}}}


def matrices_data(view: View[None]) -> str:
    """Return the entries of W and Theta that are known, and the true ones, as CSV."""
    found, (W, Theta) = dialogue(view.state), known(view.state)
    rows = [
        (name, *where, "" if np.isnan(value) else value, true[where])
        for name, entries, true in (("W", W, found.W), ("Theta", Theta, found.Theta))
        for where, value in np.ndenumerate(entries)
    ]
    return table(("matrix", "row", "column", "known", "true"), rows)


def _asked(state: State) -> tuple[tuple[Array, Array], ...]:
    """Return the queries asked so far, with their answers."""
    return dialogue(state).queries[: int(state["queries"])]


def _asked_now(state: State) -> list[dict[str, Any]]:
    """Return a frame around the row that the last query is about."""
    if not (asked := _asked(state)):
        return []
    X, _ = asked[-1]
    row, d = int(np.argmax(X[-1])), X.shape[1]
    axes = {"xref": "x", "yref": "y"} if len(X) == 1 else {"xref": "x4", "yref": "y4"}
    place = {"x0": -0.5, "x1": d - 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return [{"type": "rect", "line": {"width": 3, "color": INK}} | axes | place]


def _colours(found: Dialogue) -> Trace:
    """Return an empty heat map, the same colours for the same numbers in all figures: zero is white, signs are opposite."""
    scale = float(max(np.abs(found.Theta).max(), np.abs(found.W).max()))
    colours = {"zmin": -scale, "zmid": 0, "zmax": scale, "colorscale": _DIVERGING}
    return {"type": "heatmap", "xgap": 1.5, "ygap": 1.5, "hovertemplate": "%{z:.4g}<extra></extra>", **colours}


def _panel(end: str, x: tuple[float, float], y: tuple[float, float], columns: int, rows: int) -> dict[str, Any]:
    """Return the axes of a matrix with square cells, its first row on top."""
    across = {"domain": x, "range": [-0.5, columns - 0.5], "anchor": f"y{end}", "constrain": "domain"}
    down = {
        "domain": y,
        "range": [rows - 0.5, -0.5],
        "anchor": f"x{end}",
        "constrain": "domain",
        "constraintoward": "middle",
    }
    return {f"xaxis{end}": _BARE | across, f"yaxis{end}": _BARE | down | {"scaleanchor": f"x{end}", "scaleratio": 1}}


def _named(names: Sequence[str], places: Sequence[float]) -> dict[str, Any]:
    """Return what writes names beside rows."""
    gap = {"ticks": "outside", "ticklen": 8, "tickcolor": "rgba(0,0,0,0)"}
    return {"showticklabels": True, "tickvals": list(places), "ticktext": list(names), **gap}


def _layout(**more: Any) -> dict[str, Any]:
    """Return a layout in which what has no colour is grey: not known yet."""
    return layout("", "", plot_bgcolor="rgba(136,136,136,0.3)", **more)


SECTION = Section(
    heading="Queries: ask a black box",
    text="The box hides one head f(X) = Σᵢ softmaxᵢ(xᵀ Θ xᵢ) xᵢ W, where x is the last token. A query of one token reveals "
    "a row of W; a query of two tokens [q + v; q] reveals the logit qᵀ Θ v.",
    controls=(
        Slider("dim", "Token dimension d", 2, 6, 1, 5),
        Slider("box", "Number of the box", 0, 19, 1, 0),
        Slider("queries", "Queries asked", 0, 42, 1, 18),
    ),
    summary=summary,
    plots=[
        Plot("query", "The last query and its answer", draw_query, queries_data),
        Plot("matrices", "What the answers reveal", draw_matrices, matrices_data, player=Player("queries", 0.6)),
    ],
    note="White is zero, and grey is not known yet. The frame marks the row that the last query is about.",
)
