"""The plots of the page of random features, their data, and the sentences that go with them."""

from typing import Any

import numpy as np

from attlas.claims.learners import learner
from attlas.explorer.controls import State
from attlas.explorer.page import View
from attlas.explorer.pages.features import points, theory
from attlas.explorer.pages.features.theory import RANGES, TARGETS, Found
from attlas.explorer.plotting import SYMBOLS, Figure, Trace, layout, line, plain, table, written
from attlas.explorer.plotting import points as marks
from attlas.features.sharp.penalty import GRID

NAMES = {"kernel": "attention", "biased": "biased attention", "network": "the network"}
_GREY = "#777777"
_LOWEST = 1e-4  # end of the axis, at most
_WIDEST = 36  # characters of a line below an axis
_COLUMNS = ("alpha", "ridge", "freedom", "from_noise", "deviation", "converged")


def summary(view: View[None]) -> str:
    """Return in words what the plots show."""
    state = view.state
    mine, refused = theory.found(state)
    errors = [f"{one.here.error:.3g} for {NAMES[name]}" for name, one in mine.items()]
    n = theory.size_of(state)
    text = f"At n = {n} the test error over variance is {_listed(errors)} (a constant predictor scores 1)."
    freedom = f"ffective degrees of freedom: {_listed([f'{one.here.freedom:.0f}' for one in mine.values()])}."
    if state["penalty"] == "best":
        penalties = _listed([_penalty(float(one.here.alpha)) for one in mine.values()])
        text += f" Best penalty α: {penalties}; e{freedom}"
    else:
        text += f" E{freedom}"
    low, high = RANGES[state["range"]]
    halves = [_count(theory.halving(one.curve), f"fewer than {low}", f"more than {high}") for one in mine.values()]
    text += f" An error of one half takes {_listed(halves)} samples." + _overtaken(mine, state)
    for name, why in refused.items():
        text += f" No line for {NAMES[name]}: {why}."
    text += _doubts(mine)
    return text if points.here(view) else text + points.elsewhere(view)


def draw_curves(view: View[None]) -> Figure:
    """Return the predicted errors against samples, with their bands, the crossing, and the simulations of the store."""
    state = view.state
    mine, _ = theory.found(state)
    lines, bands = [], []
    for name, one in mine.items():
        x, y = theory.smooth(one.curve)
        lines.append(line(x, y, label(name, state), learner(name).colour))
        bands.append(_band(x, y, float(one.curve.deviation.max()), learner(name).colour))
    stored = _simulated(view)
    range_ = _range([*lines, *stored])
    at = theory.crossing(mine)
    if 0 < at < np.inf:
        ends = [10 ** range_[0], 10 ** range_[1]]
        lines.append(
            line([at, at], ends, f"attention overtakes, n = {_count(at, '', '')}", _GREY, dash="dot", width=1.8)
        )
    low, high = RANGES[state["range"]]
    axis = {"type": "log", "range": [float(np.log10(low / 1.1)), float(np.log10(high * 1.1))]}
    return {
        "data": [*bands, *lines, *stored],
        "layout": layout(
            _title("samples n", _settings(state)),
            "test error / variance",
            xaxis=axis | _ticks(low, high),
            yaxis={"type": "log", "range": range_, "dtick": 1, "exponentformat": "power"},
            height=420,
            shapes=[_here(theory.size_of(state))],
        ),
    }


def curves_data(view: View[None]) -> str:
    """Return the predicted errors where they were computed, and the simulations with their standard errors, as CSV."""
    mine, _ = theory.found(view.state)
    rows = _rows({label(name, view.state): one.curve for name, one in mine.items()}, "n")
    blank = [""] * len(_COLUMNS)
    for name, stored in points.here(view).items():
        for claim, one in stored:
            for x, mean, error, seeds in zip(one.x, one.mean, one.standard_error, one.seeds, strict=True):
                rows.append((label(name, view.state), x, mean, *blank, error, seeds, one.settings["d"], claim))
    return table(("what", "n", "mse_over_variance", *_COLUMNS, "standard_error", "seeds", "d", "claim"), rows)


def draw_heads(view: View[None]) -> Figure:
    """Return the predicted errors against heads at the n of the slider."""
    state = view.state
    mine, _ = theory.found(state)
    lines = []
    for name in mine:
        found = theory.against_heads(theory.settings_of(state, name))
        error = found.error.where(found.converged).values
        lines.append(line(found.heads.values, error, NAMES[name].removeprefix("the "), learner(name).colour))
    n, d = theory.size_of(state), state["d"]
    range_ = _range(lines)
    coded = bool(state["positions"]) and "kernel" in mine
    peak = n / theory.per_head(state if coded else state | {"positions": 0.0})
    if d <= peak <= 1e4:
        ends = [10 ** range_[0], 10 ** range_[1]]
        lines.append(
            line([peak, peak], ends, "M (d + 1 + keys) = n" if coded else "M (d + 1) = n", _GREY, dash="dot", width=1.8)
        )
    where = [*_settings(state, "heads", "penalty"), f"n = {n}", f"α = {written(theory.fixed_alpha(state))}"]
    axis = {"type": "log", "range": [float(np.log10(d / 1.1)), 4.05]}
    return {
        "data": lines,
        "layout": layout(
            _title("heads M", where),
            "test error / variance",
            xaxis=axis | _ticks(d, 1e4),
            yaxis={"type": "log", "range": range_, "dtick": 1, "exponentformat": "power"},
            height=420,
        ),
    }


def heads_data(view: View[None]) -> str:
    """Return the predicted errors against heads as CSV."""
    mine, _ = theory.found(view.state)
    found = {NAMES[name].removeprefix("the "): theory.settings_of(view.state, name) for name in mine}
    rows = _rows({name: theory.against_heads(own) for name, own in found.items()}, "heads")
    return table(("what", "heads", "mse_over_variance", *_COLUMNS), [row[: 3 + len(_COLUMNS)] for row in rows])


def label(name: str, state: State) -> str:
    """Return the name of a line."""
    if state["heads"] == "infinite":
        return learner(name).name
    M = int(state["heads"])
    return f"network, {M * (int(state['d']) + 1)} neurons" if name == "network" else f"{NAMES[name]}, {M} heads"


def _penalty(alpha: float) -> str:
    """Return a best penalty; one at the end of those that are tried may lie beyond it."""
    return "≤ 10⁻⁸" if alpha < 1.01 * GRID.min() else "≥ 1000" if alpha > 0.99 * GRID.max() else written(alpha, 2)


def _count(n: float, fewer: str, more: str) -> str:
    return fewer if n == 0 else more if n == np.inf else f"{float(f'{n:.3g}'):g}"


def _overtaken(mine: dict[str, Found], state: State) -> str:
    n = theory.crossing(mine)
    low, high = RANGES[state["range"]]
    if np.isnan(n):
        return ""
    if n in (0, np.inf):
        return f" The bias helps at all n up to {high}." if n else f" The bias does not help at any n from {low} on."
    return f" The bias helps up to n = {_count(n, '', '')}; from there on attention without it is better."


def _doubts(mine: dict[str, Found]) -> str:
    """Return what the theory says of its own limits, and where it was not solved."""
    text = ""
    for note in dict.fromkeys(one.curve.attrs["outside"] for one in mine.values()):
        if note:
            whose = [NAMES[name] for name, one in mine.items() if one.curve.attrs["outside"] == note]
            text += f" Not sharp for {_listed(whose)}: {note}."
    for name, one in mine.items():
        missing = int((~one.curve.converged).sum())
        if missing:
            text += f" The equations were not solved at {missing} of {one.curve.sizes['n']} sizes for {NAMES[name]}."
        if not one.here.converged:
            text += f" The error of {NAMES[name]} at n = {int(one.here.n)} is not a solution."
    return text


def _rows(curves: dict[str, Any], axis: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for name, curve in curves.items():
        columns = [np.broadcast_to(curve[column].values, curve[axis].shape) for column in (axis, "error", *_COLUMNS)]
        rows += [(name, *row, "", "", "", "") for row in zip(*columns, strict=True)]
    return rows


def _simulated(view: View[None]) -> list[Trace]:
    traces = []
    for name, stored in points.here(view).items():
        rows = [
            (x, mean, error, f"{seeds} seeds ({claim})")
            for claim, one in stored
            for x, mean, error, seeds in zip(one.x, one.mean, one.standard_error, one.seeds, strict=True)
        ]
        x, mean, error, text = zip(*rows, strict=True)
        look = learner(name)
        trace = marks(x, mean, label(name, view.state), look.colour, symbol=SYMBOLS[look.marker], size=9)
        bars = {"error_y": {"type": "data", "array": plain(error)}, "text": list(text), "showlegend": False}
        traces.append(trace | bars)
    return traces


def _band(x: Any, y: Any, deviation: float, colour: str) -> Trace:
    """Return the region in which nine in ten simulations lie."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    x, low, high = np.asarray(x), y / (1 + deviation), y * (1 + deviation)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": plain(np.r_[x, x[::-1]]),
        "y": plain(np.r_[high, low[::-1]]),
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},0.18)",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _range(traces: list[Trace]) -> list[float]:
    """Return the range of the errors, in decimal logarithms."""
    values = [value for trace in traces for value in trace["y"] if value] or [1.0]
    return [float(np.log10(0.8 * max(min(values), _LOWEST))), float(np.log10(1.3 * max(*values, 1.0)))]


def _ticks(low: float, high: float) -> dict[str, Any]:
    digits = (1, 2, 5) if high / low < 1000 else (1, 3)
    ticks = [k * 10.0**e for e in range(6) for k in digits if low <= 1.1 * k * 10.0**e and k * 10.0**e <= 1.1 * high]
    return {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _here(x: float) -> dict[str, Any]:
    """Return the line at the n of the slider."""
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 1, "color": "#888888"},
    }


def _title(axis: str, settings: list[str]) -> str:
    """Return the title of an axis with the settings below it, in lines that a phone has room for."""
    lines = [""]
    for word in settings:
        lines += [""] if len(lines[-1]) + len(word) > _WIDEST else []
        lines[-1] += f"{word}, "
    text = "<br>".join(lines).rstrip(", ")
    return f'{axis}<br><span style="font-size:12px">({text})</span>'


def _settings(state: State, *but: str) -> list[str]:
    """Return the settings in words, for a figure that leaves the page."""
    words = {
        "target": TARGETS[state["target"]],
        "d": f"d = {state['d']:g}",
        "keys": f"{state['keys']} keys",
        "bias": f"b = {state['bias']:g}" if "biased" in theory.chosen(state) else "",
        "heads": "" if state["heads"] == "infinite" else f"M = {state['heads']}",
        "scoring": "" if state["scoring"] == "relu" else state["scoring"],
        "positions": f"position codes {state['positions']:g}" if state["positions"] else "",
        "penalty": "" if state["penalty"] == "best" else f"α = {written(float(state['penalty']))}",
        "noise": f"noise {state['noise']:g}" if state["noise"] else "",
    }
    return [text for name, text in words.items() if text and name not in but]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
