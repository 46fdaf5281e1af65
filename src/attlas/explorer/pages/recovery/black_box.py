"""The second half of the page of recovery: a black box is asked, query by query, until every parameter is known."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas import layers, recovery
from attlas.explorer.controls import Slider, State
from attlas.explorer.memoised import memoised
from attlas.explorer.page import Plot, Section, View
from attlas.explorer.plotting import Figure, Trace, layout, plain, table

Array = NDArray[np.float64]

_BARE = {"ticks": ""} | dict.fromkeys(("showticklabels", "showline", "showgrid", "zeroline"), False)


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
        if len(logits) == len(Theta):
            Theta[row] = np.linalg.solve([v for v, _ in logits.values()], [logit for _, logit in logits.values()])
    return W, Theta


def summary(view: View[None]) -> str:
    """Return in words how far the queries have come."""
    found, count, d = dialogue(view.state), len(_asked(view.state)), int(view.state["dim"])
    if count < len(found.queries):
        return f"{count} of {len(found.queries)} queries asked (d² + d = {d * d + d})."
    error = float(np.abs(found.learned - found.Theta).max())
    return f"All {count} queries asked. Θ is known to {error:.1e}; {found.reason}."


def draw_query(view: View[None]) -> Figure | None:
    """Return the tokens of the last query and its answer, as numbers on a heat map."""
    if not (asked := _asked(view.state)):
        return None
    X, answer = asked[-1]
    names = ["answer", "q", "q + v"] if len(X) == 2 else ["answer", "token"]
    numbers = {"y": names, "z": plain([answer, *X[::-1]]), "texttemplate": "%{z:.3g}", "showscale": False}
    return {
        "data": [_colours(dialogue(view.state)) | numbers],
        "layout": layout("", "", xaxis=_BARE, yaxis={"showgrid": False}),
    }


def queries_data(view: View[None]) -> str:
    """Return the queries asked so far, and their answers, as CSV."""
    rows = [
        (i + 1, " | ".join(" ".join(repr(float(x)) for x in token) for token in X), *map(float, answer))
        for i, (X, answer) in enumerate(_asked(view.state))
    ]
    return table(("query", "tokens", *(f"answer_{k + 1}" for k in range(dialogue(view.state).W.shape[1]))), rows)


def draw_known(view: View[None]) -> Figure:
    """Return heat maps of W and Theta as far as they are known."""
    return _heat_maps(*known(view.state), _colours(dialogue(view.state)))


def draw_truth(view: View[None]) -> Figure:
    """Return heat maps of the true W and Theta."""
    found = dialogue(view.state)
    return _heat_maps(found.W, found.Theta, _colours(found))


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


def _colours(found: Dialogue) -> Trace:
    """Return an empty heat map, the same colours for the same numbers in all figures."""
    scale = float(max(np.abs(found.Theta).max(), np.abs(found.W).max()))
    colours = {"zmin": -scale, "zmax": scale, "colorscale": "RdBu", "reversescale": True}
    return {"type": "heatmap", "xgap": 2, "ygap": 2, "hovertemplate": "%{z}<extra></extra>", **colours}


def _heat_maps(W: Array, Theta: Array, shared: Trace) -> Figure:
    """Return two heat maps side by side."""
    traces = [
        shared | {"z": plain(W[::-1]), "showscale": False},
        shared | {"z": plain(Theta[::-1]), "xaxis": "x2", "colorbar": {"thickness": 14}},
    ]
    axes: dict[str, Any] = {"xaxis": {"domain": [0, 0.42]} | _BARE, "yaxis": _BARE}
    second = {"xaxis2": {"domain": [0.55, 1], "title": {"text": "Θ"}} | _BARE}
    return {"data": traces, "layout": layout("W", "", **axes) | second}


SECTION = Section(
    heading="Queries: ask a black box",
    text="The box hides one head f(X) = Σᵢ softmaxᵢ(xᵀ Θ xᵢ) xᵢ W, where x is the last token. A query of one token reveals "
    "a row of W; a query of two tokens [q + v; q] reveals the logit qᵀ Θ v.",
    controls=(
        Slider("dim", "Token dimension d", 2, 6, 1, 3),
        Slider("box", "Number of the box", 0, 19, 1, 0),
        Slider("queries", "Queries asked", 0, 42, 1, 5),
    ),
    summary=summary,
    plots=[
        Plot("query", "The last query and its answer", draw_query, queries_data),
        Plot("known", "What the answers reveal", draw_known, matrices_data),
        Plot("truth", "What the box hides", draw_truth),
    ],
)
