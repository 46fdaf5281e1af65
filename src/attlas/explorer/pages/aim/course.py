"""The visitor's runs of message passing on the page of Bayes limits, step by step: on the curve, and beside the theory."""

from typing import Any

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.claims.learners import learner
from attlas.explorer.page import View
from attlas.explorer.pages.aim import theory
from attlas.explorer.pages.aim.runs import Run
from attlas.explorer.plotting import SYMBOLS, Figure, Trace, layout, line, points

_NAME = "your runs"
_FADE, _LEAST = 0.85, 0.3  # every step before the one that is shown is so much fainter, down to the least


def traces(runs: list[Run]) -> list[Trace]:
    """Return runs on the learning curve: each at its alpha, the last one with the trail of its steps.

    A run has ended in a star, an open one if it has not converged.
    """
    amp, last = learner("amp"), runs[-1]
    ended = [run for run in runs if not (run is last and run.errors)]  # the last step of a trail is a star already
    text, shapes = [_told(run) for run in ended], [_star(run) for run in ended]
    places = (
        [run.alpha for run in ended] or [np.nan],
        [run.mse for run in ended] or [np.nan],
    )  # in the legend also without
    found = [
        points(*places, _NAME, amp.colour, symbol=shapes or "star", size=14) | {"text": text, "legendgroup": _NAME}
    ]
    if last.errors:
        trail = points([last.alpha] * len(last.errors), last.errors, _NAME, amp.colour)
        found.append(trail | _steps(last, _FADE) | {"legendgroup": _NAME, "showlegend": False})
    return found


def draw_steps(view: View[list[Run]], runs: list[Run]) -> Figure | None:
    """Return the error of the last of these runs at every step, beside what theory expects; None if there is no run."""
    if not runs or not runs[-1].errors:
        return None
    amp, last = learner("amp"), runs[-1]
    steps = np.arange(len(last.errors))
    limit = theory.least_error(view.state | {"alpha": last.alpha})
    end = max(len(steps) - 1, 10)
    low = max(0.5 * min(limit, *last.errors), 1e-10)
    deep = min(limit, *last.errors) < 1e-2
    drawn = [
        line([0, end], [max(limit, low)] * 2, "Bayes limit", COLOURS[0], dash="dash", width=2),
        line(np.arange(len(last.expected)), last.expected, "expected by the algorithm", COLOURS[0], width=1.5),
        points([np.nan], [np.nan], "error", amp.colour, symbol=SYMBOLS[amp.marker]),  # in the legend at every step
        points(steps, last.errors, "error", amp.colour) | _steps(last, 1.0) | {"showlegend": False},
    ]
    top = 1.1 * max(1.0, *last.errors)
    y: dict[str, Any] = {"range": [0, top]}
    if deep:
        y = {"type": "log", "range": [np.log10(low), np.log10(top)], "dtick": 1, "exponentformat": "power"}
    about = {"text": f"step<br>α = {last.alpha:.4g}, {_told(last)}", "font": {"size": 13}}
    x = {"range": [-0.02 * end, 1.03 * end], "title": about}
    return {"data": drawn, "layout": layout("", "error V", xaxis=x, yaxis=y)}


def _steps(run: Run, fade: float) -> Trace:
    """Return how the steps of a run look, and what lets a player go through them."""
    count = len(run.errors)
    marks = [SYMBOLS[learner("amp").marker]] * count
    sizes = [9.0] * count
    if not run.running:
        marks[-1], sizes[-1] = _star(run), 14.0
    opacity = np.maximum(fade ** np.arange(count)[::-1], _LEAST)
    marker = {"color": learner("amp").colour, "symbol": marks, "size": sizes, "opacity": opacity.tolist()}
    marker |= {"line": {"width": 0}}
    text = [f"step {step}: {error:.4g}" for step, error in enumerate(run.errors)]
    meta = {"fade": fade, "least": _LEAST, "take": run.seed, "more": run.running}
    return {"marker": marker, "text": text, "hoverinfo": "text+name", "meta": meta}


def _star(run: Run) -> str:
    return "star" if run.converged else "star-open"


def _told(run: Run) -> str:
    """Return a run in words."""
    ended = "still running" if run.running else "" if run.converged else "not converged"
    return ", ".join(filter(None, (f"d = {run.d}", f"seed {run.seed}", ended)))
