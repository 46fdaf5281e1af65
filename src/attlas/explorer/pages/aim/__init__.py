"""The door of Bayes limits: the learning curve and the phase diagram, live, with simulations on top."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dash import Dash, Input, Output, html, no_update
from numpy.typing import NDArray

from attlas import aim
from attlas.claims.figure import COLOURS
from attlas.errors import AttlasError, InputError
from attlas.explorer import job as runner
from attlas.explorer import simulations
from attlas.explorer.controls import Choice, Slider, inputs, panel, read
from attlas.explorer.memoised import kept
from attlas.explorer.plotting import BLANK, file_link, graph, layout, line, plain, points, table
from attlas.explorer.queue import Job, Queue

Array = NDArray[np.float64]

TITLE = "Bayes limits"
CHANNELS = {"softmax": "softmax", "linear": "linear with noise", "hardmax": "hardmax"}
WIDTH = Slider("rho", "Width over d, ρ", 0.05, 1.5, 0.05, 0.5)
CONTROLS = (
    Choice("channel", "Output", CHANNELS, "softmax"),
    Slider("tokens", "Tokens T", 1, 6, 1, 2),
    WIDTH,
    Slider("noise", "Noise (linear only)", 0, 1, 0.05, 0.25),
    Slider("alpha", "Samples α, as a share of the axis", 0.02, 1, 0.02, 0.4),
    Choice("trained", "Training with weight decay", {"off": "hide", "on": "show"}, "off"),
    Slider("decay", "Weight decay", -4, 0, 0.25, -2, powers=True),
)
SIZES = Slider("d", "Token dimension d", 20, 160, 20, 80)
ADDRESS = (*CONTROLS, SIZES)
_LENGTH = 50  # alphas of a curve
_ROWS = (24, 20)  # alphas and widths of a diagram
_KEPT = 20  # runs of message passing shown


def channel_of(name: str, tokens: int, noise: float) -> aim.Channel:
    """Return the channel of these settings, if its theory is fast enough to be live."""
    if name == "linear":
        return aim.Linear(int(tokens), noise)
    if tokens < 2:
        raise InputError(f"{name} of one token is always 1 and tells nothing; choose two tokens or more")
    if name == "softmax":
        return aim.Softmax(int(tokens))
    if tokens != 2:
        raise InputError("hardmax of other than two tokens takes a minute a curve: `attlas predict hardmax`")
    return hardmax()


@kept(1)
def hardmax() -> aim.Channel:
    """Return the channel with its table, which takes some seconds to make."""
    channel = aim.Hardmax(2)
    channel.information(0.5, 1.5)
    return channel


def span(name: str, tokens: int) -> float:
    """Return the alpha at which the axis ends: beyond perfect recovery at every width."""
    count = tokens**2 + tokens - (2 if name == "softmax" else 0)
    return float(f"{(4.0 if name == 'hardmax' else 1.25) / max(count, 1):.3g}")


def chosen(state: dict[str, Any]) -> float:
    """Return the alpha of the slider, which holds a share of the axis."""
    return float(state["alpha"] * span(state["channel"], int(state["tokens"])))


@kept(2048)
def curve(name: str, tokens: int, noise: float, rho: float) -> tuple[Array, Array, float]:
    """Return alphas, V and the threshold of perfect recovery (NaN for none)."""
    alphas = np.linspace(0, span(name, tokens), _LENGTH + 1)[1:]
    found = aim.curve(channel_of(name, tokens, noise), alphas, rho)
    return alphas, found["mse"].values[0], float(found["threshold"].values[0])


@kept(256)
def diagram(name: str, tokens: int, noise: float) -> tuple[Array, Array, Array, Array]:
    """Return alphas, widths, V over both and the threshold of every width."""
    alphas = np.linspace(0, span(name, tokens), _ROWS[0] + 1)[1:]
    rhos = np.linspace(WIDTH.low, WIDTH.high, _ROWS[1])
    found = aim.curve(channel_of(name, tokens, noise), alphas, rhos)
    return alphas, rhos, found["mse"].values, found["threshold"].values


@kept(512)
def trained_curve(name: str, tokens: int, noise: float, rho: float, decay: float) -> tuple[Array, Array]:
    """Return alphas and the test error of training with weight decay."""
    alphas = np.linspace(0, span(name, tokens), 21)[1:]
    found = aim.trained_curve(channel_of(name, tokens, noise), alphas, [decay], rho)
    return alphas, found["mse"].values.ravel()


@kept(512)
def spectrum(name: str, tokens: int, noise: float, rho: float, decay: float, alpha: float) -> Any:
    """Return what training reaches at one alpha, and the density of its non-zero eigenvalues."""
    found = aim.trained(channel_of(name, tokens, noise), alpha, rho, decay)
    x = np.linspace(0, 4 * np.sqrt(rho) * (1 + 1 / np.sqrt(rho)) ** 2, 801)[1:]
    density = found.spectrum(x)
    end = int(np.flatnonzero(density > 0).max(initial=100)) + 10  # the bulk ends well before the grid
    return found, x[:end], density[:end]


def _spectrum(state: dict[str, Any]) -> Any:
    """Return the spectrum at the settings of the page."""
    settings = (state[name] for name in ("noise", "rho", "decay"))
    return spectrum(state["channel"], int(state["tokens"]), *settings, chosen(state))


def show(given: dict[str, Any]) -> Any:
    """Return the page of the door, its controls set to `given`."""
    about = "At the settings above and the alpha of the slider, on a fresh teacher."
    size = SIZES.show("bayes", given)
    run = html.Section([html.H2("Run message passing now"), html.P(about), runner.show("amp", "Run", [size])])
    return [
        html.H1(TITLE),
        html.P(
            "The best error any learner can reach on one attention layer with a random teacher, as d grows.",
            className="lead",
        ),
        panel("bayes", CONTROLS, given),
        html.P(id="bayes-says", role="status", className="says"),
        html.Div(
            [
                graph("bayes-curve", "Error of the query-key matrix against samples"),
                graph("bayes-diagram", "The same error over samples and width"),
                html.Div(
                    [
                        graph("bayes-spectrum", "Eigenvalues of the trained matrix"),
                        html.P([file_link("spectrum", "Data of the spectrum")]),
                    ],
                    id="bayes-training",
                    className="hidden",
                ),
            ],
            className="plots",
        ),
        html.P([file_link("bayes", "Data of the curve and the diagram")], id="bayes-data"),
        run,
    ]


def says(state: dict[str, Any]) -> str:
    """Return in words what the plots show."""
    name, T, rho, noise = state["channel"], int(state["tokens"]), state["rho"], state["noise"]
    alpha = chosen(state)
    V = float(aim.curve(channel_of(name, T, noise), alpha, rho)["mse"].values[0, 0])
    threshold = curve(name, T, noise, rho)[2]
    text = f"At α = {alpha:.4g} the best error is V = {V:.4f} (1 is that of the prior mean). "
    if np.isfinite(threshold):
        text += f"S is recovered perfectly above α = {threshold:.4g}."
    else:
        text += "No finite number of samples of order d² recovers S perfectly."
    if state["trained"] == "on" and name == "hardmax":
        text += " The theory of training is not derived for hardmax."
    if _trains(state):
        found, _, _ = _spectrum(state)
        text += f" Training with decay {state['decay']:.3g} reaches {found.value:.4f}, with rank {found.rank:.3f} d."
    return text


def named(state: dict[str, Any]) -> str:
    """Return the channel in words, for a figure that leaves the page."""
    return f"{state['channel']}, T = {state['tokens']:g}" + (
        f", noise {state['noise']:g}" if state["channel"] == "linear" else ""
    )


def draw_curve(
    state: dict[str, Any], simulated: Sequence[simulations.Simulated], runs: Sequence[Any]
) -> dict[str, Any]:
    """Return the plot of the learning curve."""
    name, T, rho, noise = state["channel"], int(state["tokens"]), state["rho"], state["noise"]
    alphas, V, threshold = curve(name, T, noise, rho)
    traces = [line(np.r_[0, alphas], np.r_[1, V], "Bayes limit")]
    if np.isfinite(threshold):
        style = {"color": "#555555", "dash": "dot", "width": 1.5}
        traces.append(line([threshold, threshold], [0, 1], "perfect recovery", line=style, hoverinfo="x+name"))
    if _trains(state):
        few, error = trained_curve(name, T, noise, rho, state["decay"])
        traces.append(line(np.r_[0, few], np.r_[1 + rho, error], f"trained, decay {state['decay']:.3g}", 1))
    for i, learner in enumerate(sorted({s.learner for s in simulated})):
        mine = [s for s in simulated if s.learner == learner]
        sizes = [f"d = {s.settings['d']}, {s.seeds} seeds ({s.claim})" for s in mine]
        trace = points(
            [s.x for s in mine], [s.mean for s in mine], [s.error for s in mine], learner, 2 + i % 4, text=sizes
        )
        trace["marker"]["size"] = [6 + min(s.settings["d"], 240) / 24 for s in mine]  # the larger the size
        traces.append(trace)
    if runs:
        x, y = [r["alpha"] for r in runs], [r["error"] for r in runs]
        label = [f"d = {r['d']}, seed {r['seed']}{'' if r.get('converged') else ', not converged'}" for r in runs]
        shapes = ["star" if r.get("converged") else "star-open" for r in runs]
        trace = points(x, y, [0.0] * len(x), "your runs", 6, text=label)
        traces.append(trace | {"marker": {"color": COLOURS[1], "symbol": shapes, "size": 12}})
    alpha = chosen(state)
    mark = {
        "type": "line",
        "x0": alpha,
        "x1": alpha,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 1, "color": "#888"},
    }
    ends = {"range": [0, span(name, T)]}
    top = 1.1 * max(value for trace in traces for value in trace["y"] if value is not None)
    return {
        "data": traces,
        "layout": layout(
            f"samples over d², α<br>({named(state)}, ρ = {rho:g})",
            "error V",
            xaxis=ends,
            yaxis={"range": [0, min(top, 3)]},
            shapes=[mark],
        ),
    }


def draw_diagram(state: dict[str, Any]) -> dict[str, Any]:
    """Return the plot of the phase diagram."""
    name, T, noise = state["channel"], int(state["tokens"]), state["noise"]
    alphas, rhos, V, edge = diagram(name, T, noise)
    bar = {"title": {"text": "V"}, "thickness": 14}
    traces: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "x": plain(alphas),
            "y": plain(rhos),
            "z": plain(V, 4),
            "colorscale": "Cividis",
            "zmin": 0,
            "zmax": 1,
            "reversescale": True,
            "colorbar": bar,
            "hovertemplate": "α %{x}, ρ %{y}: V = %{z}<extra></extra>",
        }
    ]
    if np.isfinite(edge).any():
        traces.append(line(edge, rhos, "perfect recovery", 1))
    here = [chosen(state)], [state["rho"]], [0.0]
    traces.append(
        points(*here, "chosen", 5) | {"marker": {"color": "#ffffff", "size": 11, "line": {"color": "#000", "width": 2}}}
    )
    ends = {"range": [float(alphas[0]), float(alphas[-1])]}
    return {"data": traces, "layout": layout(f"samples over d², α<br>({named(state)})", "width over d, ρ", xaxis=ends)}


def draw_spectrum(state: dict[str, Any]) -> dict[str, Any]:
    """Return the plot of the eigenvalues after training."""
    found, x, density = _spectrum(state)
    label = f"{1 - found.rank:.3f} of the eigenvalues are zero"
    return {
        "data": [line(x, density, label, 1, fill="tozeroy")],
        "layout": layout("eigenvalue", "density of the others", showlegend=True),
    }


def data(state: dict[str, Any], store: Path) -> str:
    """Return what both plots show as CSV: lines, simulations with their standard errors, and the diagram."""
    name, T, rho, noise = state["channel"], int(state["tokens"]), state["rho"], state["noise"]
    alphas, V, threshold = curve(name, T, noise, rho)
    rows: list[tuple[Any, ...]] = [("Bayes limit", a, rho, v, "", "", "") for a, v in zip(alphas, V, strict=True)]
    if np.isfinite(threshold):
        rows.append(("perfect recovery", threshold, rho, 0.0, "", "", ""))
    if _trains(state):
        what = f"trained with decay {state['decay']:.4g}"
        found = zip(*trained_curve(name, T, noise, rho, state["decay"]), strict=True)
        rows += [(what, a, rho, error, "", "", "") for a, error in found]
    for s in simulations.bayes(store):
        if _same(s.settings, state):
            rows.append((f"{s.learner} ({s.claim})", s.x, rho, s.mean, s.error, s.settings["d"], s.seeds))
    grid, rhos, values, edge = diagram(name, T, noise)
    rows += [
        ("diagram", a, r, v, "", "", "")
        for r, row in zip(rhos, values, strict=True)
        for a, v in zip(grid, row, strict=True)
    ]
    rows += [
        ("diagram, perfect recovery", a, r, 0.0, "", "", "") for a, r in zip(edge, rhos, strict=True) if np.isfinite(a)
    ]
    return table(("what", "alpha", "rho", "V", "standard_error", "d", "seeds"), rows)


def spectrum_data(state: dict[str, Any], _store: Path) -> str:
    """Return the spectrum after training as CSV: the share of zeros, and the density of the other eigenvalues."""
    if not _trains(state):
        raise InputError("a spectrum needs training shown (trained=on), and an output other than hardmax")
    found, x, density = _spectrum(state)
    rows = [("share of zeros", 0.0, 1 - found.rank), *(("density", *place) for place in zip(x, density, strict=True))]
    return table(("what", "eigenvalue", "value"), rows)


def runs_data(runs: Any) -> str:
    """Return a visitor's runs of message passing as CSV."""
    names = ("channel", "tokens", "noise", "rho", "alpha", "d", "seed", "error", "converged")
    told = (run if run["channel"] == "linear" else run | {"noise": ""} for run in _runs(runs))  # others have none
    return table(names, ([run.get(name) for name in names] for run in told))


FILES = {"bayes": data, "spectrum": spectrum_data}


def connect(app: Dash, store: Path, queue: Queue) -> None:
    """Let the controls of the door move its plots, and the buttons start and stop message passing."""

    @app.callback(
        Output("bayes-curve", "figure"),
        Output("bayes-says", "children"),
        Output("bayes-data", "className"),
        Input("amp-found", "data"),
        inputs("bayes", CONTROLS),
    )
    def move(runs: Any, given: dict[str, Any]) -> Any:
        try:
            state = read(CONTROLS, given)
            known = simulations.bayes(store)
            simulated = [s for s in known if _same(s.settings, state)]
            text = says(state) + ("" if simulated else _elsewhere(known, state["channel"]))
            return draw_curve(state, simulated, [run for run in _runs(runs) if _same(run, state)]), text, ""
        except AttlasError as error:
            return BLANK, str(error), "hidden"

    @app.callback(Output("bayes-diagram", "figure"), inputs("bayes", CONTROLS))
    def place(**given: Any) -> Any:
        try:
            return draw_diagram(read(CONTROLS, given))
        except AttlasError:  # `move` says why
            return BLANK

    @app.callback(Output("bayes-spectrum", "figure"), Output("bayes-training", "className"), inputs("bayes", CONTROLS))
    def train(**given: Any) -> Any:
        try:
            state = read(CONTROLS, given)
            return (draw_spectrum(state), "") if _trains(state) else (no_update, "hidden")
        except AttlasError:
            return BLANK, "hidden"

    runner.connect(app, queue, "amp", "bayes", ADDRESS, _task, _ended, runs_data)


def _task(given: dict[str, Any], before: Any) -> dict[str, Any]:
    """Return the settings of a run; those that no channel has are refused before they wait in a queue."""
    state = read(ADDRESS, given)
    settings = {
        "channel": state["channel"],
        "tokens": int(state["tokens"]),
        "noise": state["noise"],
        "rho": state["rho"],
    }
    channel_of(settings["channel"], settings["tokens"], settings["noise"])
    return settings | {
        "alpha": chosen(state),
        "d": int(state["d"]),
        "seed": 1 + max((run["seed"] for run in _runs(before)), default=-1),
    }


def _ended(job: Job, before: Any) -> tuple[str, Any]:
    found = job.result
    run = {key: job.settings[key] for key in ("channel", "tokens", "noise", "rho", "d", "seed")}
    run |= {"alpha": found["alpha"], "error": found["error"], "converged": found["converged"]}
    note = "" if found["converged"] else ", not converged: the error is not final"
    text = f"error {found['error']:.4f} after {found['steps']} steps at d = {found['d']}{note}"
    return text, [*_runs(before), run][-_KEPT:]


def _elsewhere(known: Sequence[simulations.Simulated], channel: str) -> str:
    """Return where else the store has simulations of this output."""
    mine = [s.settings for s in known if s.settings["channel"] == channel and s.settings["decay"] is None]
    places = {
        f"T = {s['tokens']}, ρ = {s['rho']:g}" + (f", noise {s['noise']:g}" if channel == "linear" else "")
        for s in mine
    }
    return f" The store has simulations at {'; '.join(sorted(places)[:4])}." if places else ""


def _trains(state: dict[str, Any]) -> bool:
    """Return whether training with weight decay is shown; its theory has no hardmax."""
    return bool(state["trained"] == "on" and state["channel"] != "hardmax")


def _same(settings: dict[str, Any], state: dict[str, Any]) -> bool:
    """Return whether a simulation belongs to the curve shown."""
    if settings["channel"] != state["channel"] or settings["tokens"] != state["tokens"]:
        return False
    if not np.isclose(settings["rho"], state["rho"]):
        return False
    if settings["channel"] == "linear" and not np.isclose(settings["noise"], state["noise"]):
        return False
    decay = settings.get("decay")
    return decay is None or (state.get("trained") == "on" and bool(np.isclose(decay, state["decay"], rtol=0.02)))


def _runs(runs: Any) -> list[dict[str, Any]]:
    """Return those of a visitor's runs that look like runs: the browser hands them back."""

    def good(run: Any) -> bool:
        numbers = [run.get(key) for key in ("tokens", "noise", "rho", "alpha", "error", "d", "seed")]
        sound = all(type(n) in (int, float) and abs(n) < 1e9 for n in numbers)  # also not NaN
        return sound and type(run["seed"]) is int and run["seed"] >= 0 and run.get("channel") in CHANNELS

    given = runs if isinstance(runs, list) else []
    return [run for run in given[-_KEPT:] if isinstance(run, dict) and good(run)]
