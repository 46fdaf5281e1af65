"""The door of random features: learning curves of infinitely many heads, live at small n, with those of the store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dash import Dash, Input, Output, html
from numpy.typing import NDArray

from attlas.claims.features.kit import Draw, grid
from attlas.errors import AttlasError
from attlas.explorer import simulations
from attlas.explorer.controls import Choice, Slider, inputs, panel, read
from attlas.explorer.memoised import kept
from attlas.explorer.plotting import BLANK, file_link, graph, layout, line, points, table
from attlas.explorer.queue import Queue

Array = NDArray[np.float64]

TITLE = "Random features"
TARGETS = {
    "keys 1": "average of ⟨β, xᵢ⟩",
    "keys 2": "average of ⟨β, xᵢ⟩²",
    "query 1": "⟨β, x₀⟩",
    "query 2": "⟨β, x₀⟩²",
    "correlation 1": "average of ⟨x₀, xᵢ⟩",
    "correlation 2": "average of ⟨x₀, xᵢ⟩²",
    "rotated 1": "average of ⟨x₀, S xᵢ⟩, S a rotation",
}
MODELS = {"all": "all", "attention": "attention", "biased": "biased attention", "network": "network"}
CONTROLS = (
    Choice("target", "Target", TARGETS, "correlation 1"),
    Choice("model", "Model", MODELS, "all"),
    Slider("d", "Token dimension d", 4, 16, 2, 8),
    Choice("keys", "Keys", {"4": "4", "8": "8", "16": "16"}, "8"),
    Slider("bias", "Bias b of W₀ = b I", 0.5, 4, 0.5, 1),
    Slider("seed", "Draw of the data", 0, 9, 1, 0),
)
ADDRESS = CONTROLS
_LARGEST = {"4": 128, "8": 96, "16": 48}  # samples that are live, by keys
_TEST = 150
_COLOURS = {"attention": 0, "biased": 1, "network": 2, "finite": 3, "neurons": 4}
_NAMES = {
    "attention": "attention, infinitely many heads",
    "biased": "biased attention, infinitely many heads",
    "network": "network, infinitely many neurons",
}
_STORED = {
    "attention": "attention, infinitely many heads, store",
    "biased": "biased attention, infinitely many heads, store",
    "finite": "attention, finitely many heads, store",
    "neurons": "network, as many neurons, store",
}


@kept(1024)
def curves(target: str, model: str, d: int, keys: str, bias: float, seed: int) -> tuple[Array, Array]:
    """Return sample sizes and the test error of one model over the variance of the target."""
    n = _LARGEST[keys]
    sizes = grid(4, n, 2)
    draw = Draw([target], d, int(keys), n, _TEST, seed)
    found = draw.network(sizes) if model == "network" else draw.attention(sizes, bias if model == "biased" else 0.0)
    return np.array(sizes, dtype=float), found[:, 0]


def shown(state: dict[str, Any]) -> dict[str, tuple[Array, Array]]:
    """Return the curves of the models that are shown."""
    names = [name for name in ("attention", "biased", "network") if state["model"] in ("all", name)]
    bias = {"attention": 0.0, "biased": state["bias"], "network": 0.0}
    settings = (int(state["d"]), state["keys"])
    return {name: curves(state["target"], name, *settings, bias[name], int(state["seed"])) for name in names}


def show(given: dict[str, Any]) -> Any:
    """Return the page of the door, its controls set to `given`."""
    return [
        html.H1(TITLE),
        html.P(
            "Frozen random query-key matrices, trained values: which targets are learned, from how many samples?",
            className="lead",
        ),
        panel("features", CONTROLS, given),
        html.P(id="features-says", role="status", className="says"),
        html.Div(
            [graph("features-curves", "Test error over the variance of the target, against samples")], className="plots"
        ),
        html.P([file_link("features", "Data of the curves")]),
        html.P(
            "Lines are kernel ridge regression with the kernel of infinitely many heads or neurons, on one draw, its "
            "penalty chosen by leave-one-out; points are means over seeds from the store, at the same "
            "target, d and keys.",
            className="faint",
        ),
    ]


def says(state: dict[str, Any]) -> str:
    """Return in words what the plot shows."""
    ends = [f"{MODELS[name]} {error[-1]:.3f}" for name, (_, error) in shown(state).items()]
    return f"Test error over variance after {_LARGEST[state['keys']]} samples: {', '.join(ends)}. 1 is a constant's."


def draw(state: dict[str, Any], simulated: Sequence[simulations.Simulated]) -> dict[str, Any]:
    """Return the plot of the learning curves."""
    traces = [line(*curve, _NAMES[name], _COLOURS[name]) for name, curve in shown(state).items()]
    for name in sorted({s.learner for s in simulated}):
        mine = [s for s in simulated if s.learner == name]
        label = _STORED[name]
        traces.append(
            points([s.x for s in mine], [s.mean for s in mine], [s.error for s in mine], label, _COLOURS[name])
        )
    axis = {"type": "log", "tick0": np.log10(4), "dtick": np.log10(4 if simulated else 2)}
    return {
        "data": traces,
        "layout": layout(
            f"samples n<br>({TARGETS[state['target']]}, d = {state['d']:g}, {state['keys']} keys)",
            "test error / variance",
            xaxis=axis,
            yaxis={"rangemode": "tozero"},
        ),
    }


def data(state: dict[str, Any], store: Path) -> str:
    """Return what the plot shows as CSV: lines, and simulations with their standard errors."""
    rows: list[tuple[Any, ...]] = []
    for name, curve in shown(state).items():
        rows += [(_NAMES[name], int(n), error, "", "", "") for n, error in zip(*curve, strict=True)]
    for s in simulations.features(store):
        if _same(s, state):
            rows.append((_STORED[s.learner], int(s.x), s.mean, s.error, s.seeds, s.claim))
    return table(("what", "n", "error_over_variance", "standard_error", "seeds", "claim"), rows)


FILES = {"features": data}


def connect(app: Dash, store: Path, _queue: Queue) -> None:
    """Let the controls of the door move its plot."""

    @app.callback(
        Output("features-curves", "figure"),
        Output("features-says", "children"),
        Input("address", "pathname"),
        inputs("features", CONTROLS),
    )
    def move(_path: Any, given: dict[str, Any]) -> Any:
        try:
            state = read(CONTROLS, given)
            known = simulations.features(store)
            simulated = [s for s in known if _same(s, state)]
            return draw(state, simulated), says(state) + ("" if simulated else _elsewhere(known, state["target"]))
        except AttlasError as error:
            return BLANK, str(error)


def _elsewhere(known: Sequence[simulations.Simulated], target: str) -> str:
    """Return where else the store has curves of this target."""
    places = {(s.settings["keys"], s.settings["d"]) for s in known if s.settings["target"] == target}
    text = "; ".join(f"{keys} keys, d = {d}" for keys, d in sorted(places)[:4])
    return f" The store has curves of this target at {text}." if text else ""


def _same(simulated: simulations.Simulated, state: dict[str, Any]) -> bool:
    settings = simulated.settings
    model = {"finite": "attention", "neurons": "network"}.get(simulated.learner, simulated.learner)
    if state["model"] not in ("all", model):
        return False
    if simulated.learner == "biased" and not np.isclose(settings["bias"], state["bias"]):
        return False
    return (settings["target"], settings["d"], str(settings["keys"])) == (state["target"], state["d"], state["keys"])
