"""The plots of the page of Bayes limits, their data, and the sentence that goes with them."""

from typing import Any

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.claims.learners import learner
from attlas.errors import InputError
from attlas.explorer.controls import State
from attlas.explorer.page import View
from attlas.explorer.pages.aim import course, theory
from attlas.explorer.pages.aim.runs import Run
from attlas.explorer.plotting import Figure, curves_csv, layout, line, plain, points, simulated, table, titled
from attlas.explorer.simulations import Stored, stored

_SETTINGS = ("channel", "tokens", "noise", "rho", "decay", "d")  # of simulations that the curve can show
_ALPHA, _GREY = "samples α = n/d²", "#555555"


def summary(view: View[list[Run]]) -> str:
    """Return in words what the plots show."""
    state = view.state
    V, (_, _, threshold) = theory.least_error(state), theory.curve(state)
    text = f"At α = {state['alpha']:.4g} the best error is V = {V:.4f} (guessing the prior mean gives 1). "
    if np.isfinite(threshold):
        text += f"S is recovered perfectly above α = {threshold:.4g}."
    else:
        text += "Recovery is not perfect at any finite α."
    if theory.trains(state):
        found, _, _ = theory.spectrum(state)
        text += (
            f" Training with weight decay {state['decay']:.3g} reaches {found.value:.4f}, at rank {found.rank:.3f} d."
        )
    elif state["trained"] == "on":
        text += " There is no theory of training for hardmax."
    return text if _here(view) else text + _elsewhere(view)


def draw_curve(view: View[list[Run]]) -> Figure:
    """Return the learning curve, with the simulations of the store and the visitor's runs."""
    state = view.state
    alphas, V, threshold = theory.curve(state)
    traces = [line(np.r_[0, alphas], np.r_[1, V], "Bayes limit", COLOURS[0]) | _live("bayes")]
    if np.isfinite(threshold):
        edge = line([threshold, threshold], [0, 1], "perfect recovery", _GREY, dash="dot", width=1.5)
        traces.append(edge | _live("threshold") | {"hoverinfo": "x+name"})
    here = points([state["alpha"]], [theory.least_error(state)], "your settings", COLOURS[0], size=9)
    traces.append(here | _live("point") | {"showlegend": False})
    if theory.trains(state):
        x, mse = theory.trained_curve(state)
        look = learner("trained")
        traces.append(line(np.r_[0, x], np.r_[1 + state["rho"], mse], look.name, look.colour) | _live("trained"))
    traces += simulated(_here(view), traces)
    if runs := _runs(view):
        traces += course.traces(runs)
    decay = f", decay {state['decay']:.3g}" if theory.trains(state) else ""
    top = 1.1 * max(value for trace in traces for value in trace["y"] if value is not None)
    rule = {"type": "line", "x0": state["alpha"], "x1": state["alpha"], "yref": "paper", "y0": 0, "y1": 1}
    return {
        "data": traces,
        "layout": layout(
            titled(_ALPHA, f"{_named(state)}, ρ = {state['rho']:g}{decay}"),
            "error V",
            xaxis={"range": [0, theory.span(state)]},
            yaxis={"range": [0, min(top, 3)]},
            shapes=[rule | {"line": {"width": 1, "color": "#888888"}}],
        ),
    }


def curve_data(view: View[list[Run]]) -> str:
    """Return the learning curve and the simulations of the store as CSV."""
    state = view.state
    alphas, V, threshold = theory.curve(state)
    lines: dict[str, tuple[Any, Any]] = {"Bayes limit": (alphas, V)}
    if np.isfinite(threshold):
        lines["perfect recovery"] = [threshold], [0.0]
    if theory.trains(state):
        lines[learner("trained").name] = theory.trained_curve(state)
    return curves_csv("alpha", "mse", lines, _here(view))


def draw_diagram(view: View[list[Run]]) -> Figure:
    """Return the phase diagram."""
    state = view.state
    alphas, rhos, V, edge = theory.diagram(state)
    heat = {
        "type": "heatmap",
        "x": plain(alphas),
        "y": plain(rhos),
        "z": plain(V, 4),
        "colorscale": "Cividis",
        "zmin": 0,
        "zmax": 1,
        "zsmooth": "fast",
        "reversescale": True,
        "colorbar": {"title": {"text": "V"}, "thickness": 14},
        "hovertemplate": "α %{x}, ρ %{y}: V = %{z}<extra></extra>",
    }
    lines = [line(edge, rhos, "perfect recovery", COLOURS[1])] if np.isfinite(edge).any() else []
    here = points([state["alpha"]], [state["rho"]], "your settings", "#ffffff", line={"color": "#000", "width": 2})
    here |= _live("point")
    ends = {"range": [0, float(alphas[-1])]}, {"range": [0, theory.RHOS[1]]}
    return {
        "data": [heat, *lines, here],
        "layout": layout(titled(_ALPHA, _named(state)), "width over d, ρ", xaxis=ends[0], yaxis=ends[1]),
    }


def diagram_data(view: View[list[Run]]) -> str:
    """Return the phase diagram as CSV: the error over samples and width, then the threshold at every width."""
    alphas, rhos, V, edge = theory.diagram(view.state)
    rows = [("error", a, r, v) for r, row in zip(rhos, V, strict=True) for a, v in zip(alphas, row, strict=True)]
    rows += [("perfect recovery", a, r, 0.0) for a, r in zip(edge, rhos, strict=True) if np.isfinite(a)]
    return table(("what", "alpha", "rho", "mse"), rows)


def draw_spectrum(view: View[list[Run]]) -> Figure | None:
    """Return the eigenvalues after training, if training is shown."""
    if not theory.trains(view.state):
        return None
    found, x, density = theory.spectrum(view.state)
    curve = line(x, density, f"{1 - found.rank:.3f} of the eigenvalues are zero", learner("trained").colour)
    axes = layout("eigenvalue", "density of the others", showlegend=True)
    return {"data": [curve | {"fill": "tozeroy"} | _live("spectrum")], "layout": axes}


def spectrum_data(view: View[list[Run]]) -> str:
    """Return the spectrum after training as CSV: the share of zeros, and the density of the other eigenvalues."""
    if not theory.trains(view.state):
        raise InputError("A spectrum needs training shown (trained=on), and an output other than hardmax")
    found, x, density = theory.spectrum(view.state)
    rows = [("share of zeros", 0.0, 1 - found.rank), *(("density", *place) for place in zip(x, density, strict=True))]
    return table(("what", "eigenvalue", "value"), rows)


def _live(name: str) -> dict[str, Any]:
    """Mark a trace that the browser moves by itself (``assets/aim.js``); it hides the others while the width is dragged."""
    return {"meta": {"live": name}}


def _named(state: State) -> str:
    """Return the channel in words, for a figure that leaves the page."""
    noise = f", noise {state['noise']:g}" if state["channel"] == "linear" else ""
    return f"{state['channel']}, T = {state['tokens']:g}{noise}"


def draw_steps(view: View[list[Run]]) -> Figure | None:
    """Return the last of the visitor's runs at these settings, step by step."""
    return course.draw_steps(view, _runs(view))


def _runs(view: View[list[Run]]) -> list[Run]:
    """Return the visitor's runs at the settings of the page."""
    return [run for run in view.found if _same(run.model_dump(), view.state)]


def _stored(view: View[Any]) -> list[Stored]:
    return stored(view.store, "aim", "alpha", "mse", _SETTINGS)


def _here(view: View[Any]) -> list[Stored]:
    """Return the simulations at the settings of the page."""
    return [found for found in _stored(view) if _same(found.series.settings, view.state)]


def _same(settings: Any, state: State) -> bool:
    """Return whether a simulation belongs to the curve."""
    decay = settings.get("decay")
    return (
        (settings.get("channel"), settings.get("tokens")) == (state["channel"], state["tokens"])
        and bool(np.isclose(settings.get("rho", np.nan), state["rho"]))
        and (state["channel"] != "linear" or bool(np.isclose(settings.get("noise", 0.0), state["noise"])))
        and (decay is None or (theory.trains(state) and bool(np.isclose(decay, state["decay"], rtol=0.02))))
    )


def _elsewhere(view: View[Any]) -> str:
    """Return where else the store has simulations of this output."""
    name = view.state["channel"]
    every = [found.series.settings for found in _stored(view)]
    mine = [s for s in every if s.get("channel") == name and s.get("decay") is None]
    places = {
        f"T = {s['tokens']}, ρ = {s['rho']:g}" + (f", noise {s['noise']:g}" if name == "linear" else "") for s in mine
    }
    return f" The store has simulations at {'; '.join(sorted(places)[:4])}." if places else ""
