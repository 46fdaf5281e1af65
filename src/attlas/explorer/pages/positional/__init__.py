"""The page of position and meaning: both minima against samples, their attention, and which one training finds."""

from attlas.explorer.controls import Slider
from attlas.explorer.page import Page, Plot, Section
from attlas.explorer.pages.positional import drawing
from attlas.explorer.pages.positional.runs import JOB

CONTROLS = (
    Slider("alpha", "Samples α = n/d", 0.5, 8, 0.25, 4),
    Slider("mixture", "Share of position in the teacher, ω", 0, 0.7, 0.1, 0.3),
    Slider("encoding", "Strength of the encoding, c", 1.5, 8, 0.5, 4),
)
PLOTS = (
    Plot("losses", "Loss of the two minima", drawing.draw("loss"), drawing.data("loss"), drag=("alpha", "")),
    Plot("errors", "Their test errors", drawing.draw("test"), drawing.data("test"), drag=("alpha", "")),
    Plot("attention", "Mean attention at your settings", drawing.draw_attention, drawing.attention_data),
)

PAGE = Page(
    door="positional",
    sections=[
        Section(
            CONTROLS,
            drawing.summary,
            PLOTS,
            note="Lines: theory in the limit of large d, dotted where it is approximate or the solution is a saddle. "
            "Points: means over seeds from the store, with standard errors. "
            "Tokens have unit variance, the weight decay is 0.5 and the teacher's matrix of places has 0.6 on its diagonal.",
            job=JOB,
        )
    ],
)
