"""The page of Bayes limits: the learning curve and the phase diagram, live, with simulations on top."""

from attlas.explorer.controls import Choice, Slider
from attlas.explorer.page import Page, Plot, Section
from attlas.explorer.pages.aim import drawing
from attlas.explorer.pages.aim.runs import JOB
from attlas.explorer.pages.aim.theory import RHOS, span

CHANNELS = {"softmax": "softmax", "linear": "linear with noise", "hardmax": "hardmax"}
CONTROLS = (
    Choice("channel", "Output", CHANNELS, "softmax"),
    Slider("tokens", "Tokens T", 1, 6, 1, 2),
    Slider("rho", "Width over d, ρ", *RHOS, 0.05, 0.5),
    Slider("noise", "Noise (linear only)", 0, 1, 0.05, 0.25),
    Slider("alpha", "Samples α = n/d²", 0.02, 1, 0.02, 0.4, scale=span),  # its position is a share of the axis
    Choice("trained", "Training with weight decay", {"off": "hide", "on": "show"}, "off"),
    Slider("decay", "Weight decay", -4, 0, 0.25, -2, powers=True),
)
PLOTS = (
    Plot("curve", "Error of the query-key matrix", drawing.draw_curve, drawing.curve_data),
    Plot("diagram", "The same error over all widths", drawing.draw_diagram, drawing.diagram_data),
    Plot("spectrum", "Eigenvalues of the trained matrix", drawing.draw_spectrum, drawing.spectrum_data),
)

PAGE = Page(
    door="aim",
    sections=[
        Section(
            CONTROLS,
            drawing.summary,
            PLOTS,
            note="Lines: theory in the limit of large d. Points: means over seeds from the store, with standard errors.",
            job=JOB,
        )
    ],
    warm=({}, {"channel": "linear"}, {"channel": "hardmax"}, {"trained": "on"}),
)
