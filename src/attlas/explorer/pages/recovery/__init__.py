"""The door of recovery: watch a body being sculpted around two heads, and ask a black box until it has told everything."""

from pathlib import Path
from typing import Any

import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from attlas import layers, recovery
from attlas.claims.figure import COLOURS
from attlas.errors import AttlasError
from attlas.explorer import job as runner
from attlas.explorer.controls import Slider, identity, inputs, panel, read
from attlas.explorer.memoised import kept
from attlas.explorer.plotting import BLANK, file_link, graph, layout, plain, points, table
from attlas.explorer.queue import Job, Queue
from attlas.recovery.sculpt import ROUNDS

TITLE = "Recovery"
SCULPTED = (
    Slider("d", "Token dimension d", 4, 8, 1, 6),
    Slider("scale", "Size of Theta", 1, 6, 0.5, 3),
    Slider("seed", "Layer", 0, 19, 1, 1),
)
ASKED = (
    Slider("dim", "Token dimension d", 2, 6, 1, 3),
    Slider("box", "Black box", 0, 19, 1, 0),
    Slider("asked", "Queries asked", 0, 42, 1, 5),
)
PHASE = Slider("phase", "Phase", 0, ROUNDS + 3, 1, 0)  # 0: not sculpted
ADDRESS = (*SCULPTED, PHASE, *ASKED)
_EXAMPLES = 4000
_TRUSTED = 1.5  # gaps below it mean that the span is noise (`recovery.Sculpted.gap`)


def show(given: dict[str, Any]) -> Any:
    """Return the page of the door, its controls set to `given`."""
    hidden = "" if given.get("phase") else " hidden"
    return [
        html.H1(TITLE),
        html.P("Can the parameters of an attention layer be found, from examples or from queries?", className="lead"),
        html.Section(
            [
                html.H2("Watch a body being sculpted"),
                html.P(
                    f"Two hidden heads, {_EXAMPLES} random examples. Where both heads agree, an example is a slab in the "
                    "space of Theta; all slabs together leave a body, long in the direction from head to head."
                ),
                panel("recovery", SCULPTED, given),
                runner.show("sculpt", "Sculpt", [], begin=bool(given.get("phase"))),
                *runner.stores("sculpt"),
                html.Div(PHASE.show("recovery", given), id="frames", className="row" + hidden),
                html.P(id="sculpt-says", role="status", className="says"),
                html.Div(
                    [graph("sculpt-body", "A plane through both heads: slabs, proxy and heads")],
                    id="bodies",
                    className="plots" + hidden,
                ),
            ]
        ),
        html.Section(
            [
                html.H2("Ask a black box"),
                html.P(
                    "One hidden head f(X) = Σᵢ softmaxᵢ(xᵀ Θ xᵢ) xᵢ W, x the last token. A single token betrays a row of W; "
                    "two tokens [q + v; q] betray the logit qᵀ Θ v."
                ),
                panel("recovery", ASKED, given),
                html.P(id="asked-says", role="status", className="says"),
                html.Div(id="asked-query", className="wide"),
                html.Div(
                    [
                        graph("asked-known", "What the answers have told so far"),
                        graph("asked-truth", "What is in the box"),
                    ],
                    className="plots",
                ),
                html.P([file_link("recovery", "The queries and answers")]),
                html.P([file_link("matrices", "What is known, and what is in the box")]),
            ]
        ),
    ]


@kept(128)
def asked(dim: int, box: int) -> tuple[tuple[Any, ...], Any, Any, Any]:
    """Return every query with its answer, the layer that was learned, and the truth (Theta, W)."""
    Theta, W = recovery.planted_layer(heads=1, d=dim, seed=box)
    told: list[tuple[Any, Any]] = []

    def oracle(X: Any) -> Any:
        answer = layers.multi_head_attention(X[None], Theta, W)[0, -1]
        told.append((X.copy(), answer))
        return answer

    found = recovery.learn_from_queries(oracle, d=dim)
    return tuple(told[: found.queries]), found, Theta, W


def known(dim: int, box: int, count: int) -> tuple[Any, Any]:
    """Return W and Theta as far as the first `count` answers tell them, NaN where they do not.

    The share of v W in the answer to [q + v; q] is sigma(q^T Theta v). A row of Theta is known with d such logits; one that
    came out saturated is asked again along the same direction, and the last answer counts.
    """
    told, found, _, _ = asked(dim, box)
    W, Theta = np.full(found.W[0].shape, np.nan), np.full((dim, dim), np.nan)
    rows: list[dict[bytes, tuple[Any, float]]] = [{} for _ in range(dim)]
    for X, answer in told[:count]:
        q = X[-1]
        row = int(np.argmax(q))
        if len(X) == 1:
            W[row] = answer
            continue
        v = X[0] - q
        length = float(np.linalg.norm(v))
        share = float((answer - q @ W) @ (v @ W)) / float((v @ W) @ (v @ W))
        logit = float(np.log(share / (1 - share))) if 0 < share < 1 else np.nan
        rows[row][np.round(v / length, 9).tobytes()] = v, logit
    for row, logits in enumerate(rows):
        if len(logits) == dim:
            Theta[row] = np.linalg.solve([v for v, _ in logits.values()], [logit for _, logit in logits.values()])
    return W, Theta


def says(dim: int, box: int, count: int) -> str:
    """Return in words how far the questions have come."""
    told, found, Theta, _ = asked(dim, box)
    if count < len(told):
        return f"{count} of {len(told)} queries asked (d² + d = {dim * dim + dim})."
    error = float(np.abs(found.Theta[0] - Theta[0]).max())
    return f"All {len(told)} queries asked. Θ is known to {error:.1e}; {found.reason}."


def draw_body(found: Any, number: int) -> tuple[dict[str, Any], str]:
    """Return the picture of one phase, and what it shows in words."""
    frame, (width, height) = found["frames"][number], found["reach"]
    style: dict[str, Any] = {"color": "rgba(0,114,178,0.35)", "width": 1}
    lines: dict[str, Any] = {"type": "scatter", "mode": "lines", "x": [], "y": [], "name": "slabs", "line": style}
    for x0, y0, x1, y1 in frame["lines"]:
        lines["x"] += [x0, x1, None]
        lines["y"] += [y0, y1, None]
    traces = [lines | {"hoverinfo": "skip"}]
    if frame["flat"] is not None:
        (px, py), (fx, fy) = frame["proxy"], frame["flat"]
        far = 2 * width
        style = {"color": COLOURS[2], "width": 2.5, "dash": "dash"}
        ends = {"x": [px - far * fx, px + far * fx], "y": [py - far * fy, py + far * fy]}
        traces.append({"type": "scatter", "mode": "lines", "name": "flattest direction", "line": style, **ends})
    traces.append(_marks([frame["proxy"]], "proxy", "#888888", "square"))
    traces.append(_marks(found["true"], "true heads", COLOURS[1], "x"))
    if frame["heads"] is not None:
        traces.append(_marks(frame["heads"], "found heads", COLOURS[0], "circle-open"))
    text = f"{found['of']}. {frame['title']}: {frame['slabs']} slabs of rank {frame['rank']}."
    if "gap" in frame:
        text += f" The flattest direction stands out by a factor {frame['gap']:.3g}"
        text += "." if frame["gap"] >= _TRUSTED else f": below {_TRUSTED} it is not to be trusted."
    if "residual" in frame:
        text += f" Residual {frame['residual']:.1e}."
    if "error" in frame:
        exact = frame["residual"] < 1e-9
        text += f" Parameters right to {frame['error']:.1e}." if exact else " Stuck: from here the heads are not found."
    axes = {"xaxis": {"range": [-width, width]}, "yaxis": {"range": [-height, height]}}
    return {"data": traces, "layout": layout("from head to head", "across", **axes)}, text


def draw_known(dim: int, box: int, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return heat maps of what is known and of the truth: W, and Theta beside it."""
    W, Theta = known(dim, box, count)
    _, _, truth, values = asked(dim, box)
    scale = float(max(np.abs(truth).max(), np.abs(values).max()))
    return _heat_maps(W, Theta, scale), _heat_maps(values[0], truth[0], scale)


def data(state: dict[str, Any], _store: Path) -> str:
    """Return the queries asked so far, and their answers, as CSV."""
    told, _, _, _ = asked(int(state["dim"]), int(state["box"]))
    rows = [
        (i + 1, " | ".join(" ".join(repr(float(x)) for x in token) for token in X), *map(float, np.atleast_1d(answer)))
        for i, (X, answer) in enumerate(told[: int(state["asked"])])
    ]
    return table(("query", "tokens", *(f"answer_{k + 1}" for k in range(len(told[0][1])))), rows)


def matrices_data(state: dict[str, Any], _store: Path) -> str:
    """Return the entries of W and Theta that are known, and the true ones, as CSV."""
    place = int(state["dim"]), int(state["box"])
    W, Theta = known(*place, int(state["asked"]))
    _, _, truth, values = asked(*place)
    both = (("W", W, values[0]), ("Theta", Theta, truth[0]))
    rows = [
        (name, *where, "" if np.isnan(value) else value, true[where])
        for name, found, true in both
        for where, value in np.ndenumerate(found)
    ]
    return table(("matrix", "row", "column", "known", "true"), rows)


def body_data(found: Any) -> str:
    """Return all phases of a sculpture as CSV: points, and lines by both their ends."""
    rows: list[tuple[Any, ...]] = []
    for number, frame in enumerate(found["frames"], 1):
        (x, y), flat = frame["proxy"], frame["flat"]
        rows += [(number, "slab", *ends) for ends in frame["lines"]]
        rows += [(number, "flattest direction", x - flat[0], y - flat[1], x + flat[0], y + flat[1])] if flat else []
        marks = [("proxy", (x, y)), *(("true head", head) for head in found["true"])]
        marks += [("found head", head) for head in frame["heads"] or ()]
        rows += [(number, what, *place, "", "") for what, place in marks]
    return table(("sculpture", "phase", "what", "x", "y", "end_x", "end_y"), [(found["of"], *row) for row in rows])


FILES = {"recovery": data, "matrices": matrices_data}


def connect(app: Dash, _store: Path, queue: Queue) -> None:
    """Let the controls of the door move its plots, and the buttons start and stop sculpting."""
    runner.connect(app, queue, "sculpt", "recovery", SCULPTED, _task, _ended, body_data)

    @app.callback(
        Output(identity("recovery", "phase"), "value"),
        Output("frames", "className"),
        Output("bodies", "className"),
        Output("sculpt-found", "data", allow_duplicate=True),
        Output("sculpt-status", "children", allow_duplicate=True),
        Input("sculpt-found", "data"),
        inputs("recovery", SCULPTED),
        State(identity("recovery", "phase"), "value"),
        prevent_initial_call=True,
    )
    def done(found: Any, _given: Any, phase: Any) -> Any:
        """A sculpture is shown from its first phase on; a control that moves makes it another's, and it goes."""
        if found and ctx.triggered_id == "sculpt-found":
            return phase or 1, "row", "plots", no_update, no_update
        return 0, "row hidden", "plots hidden", None, ""

    for control in SCULPTED:  # they stay where they are while their sculpture is made
        app.clientside_callback(
            ClientsideFunction("explorer", "same"),
            Output(identity("recovery", control.name), "disabled"),
            Input("sculpt-run", "disabled"),
        )

    @app.callback(
        Output("sculpt-body", "figure"),
        Output("sculpt-says", "children"),
        Input(identity("recovery", "phase"), "value"),
        Input("sculpt-found", "data"),
        prevent_initial_call=True,
    )
    def turn(phase: Any, found: Any) -> Any:
        try:
            place = min(int(PHASE.read(phase)), len(found["frames"])) if found else 0
            return draw_body(found, place - 1) if place else (BLANK, "")
        except (AttlasError, LookupError, TypeError, ValueError):  # not what a job of ours has sent
            return BLANK, "this is no sculpture"

    @app.callback(
        Output("asked-known", "figure"),
        Output("asked-truth", "figure"),
        Output("asked-query", "children"),
        Output("asked-says", "children"),
        Input("address", "pathname"),
        inputs("recovery", ASKED),
    )
    def ask(_path: Any, given: dict[str, Any]) -> Any:
        try:
            state = read(ASKED, given)
            place = int(state["dim"]), int(state["box"]), int(state["asked"])
            return *draw_known(*place), _query(*place), says(*place)
        except AttlasError as error:
            return BLANK, BLANK, [], str(error)


def _task(given: dict[str, Any], _before: Any) -> dict[str, Any]:
    state = read(SCULPTED, given)
    return {"d": int(state["d"]), "scale": state["scale"], "n": _EXAMPLES, "seed": int(state["seed"])}


def _ended(job: Job, _before: Any) -> tuple[str, Any]:
    settings = job.settings
    title = f"d = {settings['d']}, size {settings['scale']:g}, layer {settings['seed']}"
    return f"{title}: done, move through the phases", job.result | {"of": title}


def _query(dim: int, box: int, count: int) -> Any:
    """Return the last query and its answer as a table."""
    told, _, _, _ = asked(dim, box)
    if count == 0:
        return html.P("Nothing asked yet: move the slider.")
    X, answer = told[min(count, len(told)) - 1]
    names = ["token"] if len(X) == 1 else ["q + v", "q"]
    rows = [
        html.Tr([html.Th(name, scope="row"), *[html.Td(f"{x:.4g}") for x in row]])
        for name, row in zip(names, X, strict=True)
    ]
    answered = html.Tr([html.Th("answer", scope="row"), *[html.Td(f"{x:.4g}") for x in np.atleast_1d(answer)]])
    return html.Table([html.Caption(f"Query {min(count, len(told))}"), html.Tbody([*rows, answered])])


def _heat_maps(W: Any, Theta: Any, scale: float) -> dict[str, Any]:
    """Return two heat maps side by side."""
    colours = {"zmin": -scale, "zmax": scale, "colorscale": "RdBu", "reversescale": True}
    shared = {"type": "heatmap", "xgap": 2, "ygap": 2, "hovertemplate": "%{z}<extra></extra>"} | colours
    traces = [
        shared | {"z": plain(np.asarray(W)[::-1]), "showscale": False},
        shared | {"z": plain(np.asarray(Theta)[::-1]), "xaxis": "x2", "colorbar": {"thickness": 14}},
    ]
    blank = {
        "showticklabels": False,
        "ticks": "",
        "linewidth": 0,
        "showline": False,
        "showgrid": False,
        "zeroline": False,
    }
    axes: dict[str, Any] = {"xaxis": {"domain": [0, 0.42], "title": {"text": "W"}} | blank, "yaxis": blank}
    return {
        "data": traces,
        "layout": layout("W", "", **axes) | {"xaxis2": {"domain": [0.55, 1], "title": {"text": "Θ"}} | blank},
    }


def _marks(places: Any, name: str, colour: str, symbol: str) -> dict[str, Any]:
    x, y = np.transpose(places)
    trace = points(x, y, np.zeros(len(x)), name)
    trace.pop("error_y")
    return trace | {"marker": {"color": colour, "symbol": symbol, "size": 12, "line": {"width": 2, "color": colour}}}
