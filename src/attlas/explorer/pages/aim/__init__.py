"""The page of Bayes limits: the learning curve and the phase diagram, live, with simulations on top."""

from attlas.explorer.controls import Choice, Slider
from attlas.explorer.page import Grid, Page, Plot, Section
from attlas.explorer.pages.aim import drawing, theory
from attlas.explorer.pages.aim.runs import JOB
from attlas.explorer.pages.aim.theory import RHOS, span
from attlas.explorer.play import Player

CHANNELS = {"softmax": "softmax", "linear": "linear with noise", "hardmax": "hardmax"}
_TOKENS = (1, 6)
_TRAINED = {"trained": ("on",), "channel": ("softmax", "linear")}
CONTROLS = (
    Choice("channel", "Output", CHANNELS, "softmax"),
    Slider("tokens", "Tokens T", *_TOKENS, 1, 2),
    Slider("noise", "Noise", 0, 1, 0.05, 0.25, only={"channel": ("linear",)}, why="Linear output only"),
    Slider(
        "alpha",
        "Samples α = n/d²",
        0.01,
        1,
        0.01,
        0.4,  # its position is a share of the axis
        scale=span,
        by={"channel": CHANNELS, "tokens": range(_TOKENS[0], _TOKENS[1] + 1)},
    ),
    Slider("rho", "Width over d, ρ", *RHOS, 0.025, 0.5),
    Choice(
        "trained",
        "Training with weight decay",
        {"off": "hide", "on": "show"},
        "on",
        only={"channel": _TRAINED["channel"]},
        why="There is no theory of training for hardmax",
    ),
    Slider("decay", "Weight decay λ", -4, 0, 0.25, -2, powers=True, only=_TRAINED, why="Where training is shown"),
)
PLOTS = (
    Plot("curve", "Error of the query-key matrix", drawing.draw_curve, drawing.curve_data, drag=("alpha", "")),
    Plot(
        "diagram", "The same error over all widths", drawing.draw_diagram, drawing.diagram_data, drag=("alpha", "rho")
    ),
    Plot("spectrum", "Eigenvalues of the trained matrix", drawing.draw_spectrum, drawing.spectrum_data),
    Plot("steps", "Message passing, step by step", drawing.draw_steps, player=Player(seconds=0.15)),
)
GRIDS = {
    "bayes": Grid(("channel", "tokens", "noise"), theory.bayes_grid),
    "trained": Grid(("channel", "tokens", "noise", "decay"), theory.trained_grid),
}

PAGE = Page(
    door="aim",
    sections=[
        Section(
            CONTROLS,
            drawing.summary,
            PLOTS,
            note="Lines: theory in the limit of large d. Points: means over seeds from the store, with standard errors; "
            "a star is a run of yours that has converged, an open star one that has not.",
            job=JOB,
            grids=GRIDS,
        )
    ],
    warm=({}, {"channel": "hardmax"}, {"channel": "linear"}),
)
