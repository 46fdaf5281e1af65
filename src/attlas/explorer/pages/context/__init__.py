"""The page of learning in context: errors against sequences, tasks and examples, live, with trained layers on top."""

from attlas.explorer.controls import Choice, Slider
from attlas.explorer.page import Page, Plot, Section
from attlas.explorer.pages.context import drawing
from attlas.explorer.pages.context.runs import JOB

CONTROLS = (
    Slider("alpha", "Examples of a context α = ℓ/d", 0.5, 40, 0.5, 2),
    Choice("tasks", "Training tasks", {"few": "k = κ d, shared", "own": "one per sequence"}, "few"),
    Slider(
        "kappa",
        "Training tasks κ = k/d",
        0.1,
        4,
        0.1,
        0.5,
        only={"tasks": ("few",)},
        why="One task per sequence: no end",
    ),
    Slider("tau", "Training sequences τ = n/d²", 0.1, 4, 0.1, 2),
    Slider("ridge", "Ridge λ", -6, 1, 0.1, -2, powers=True),
    Slider("noise", "Label noise", 0, 1, 0.05, 0.1),
)
PLOTS = (
    Plot("sequences", "Error against training sequences", drawing.draw("tau"), drawing.data("tau"), drag=("tau", "")),
    Plot("tasks", "Error against training tasks", drawing.draw("kappa"), drawing.data("kappa"), drag=("kappa", "")),
    Plot("lengths", "Error against context length", drawing.draw("alpha"), drawing.data("alpha"), drag=("alpha", "")),
    Plot("diagram", "Error on new tasks", drawing.draw_diagram, drawing.diagram_data, drag=("kappa", "tau")),
)

PAGE = Page(
    door="context",
    sections=[
        Section(
            CONTROLS,
            drawing.summary,
            PLOTS,
            note="Lines: theory in the limit of large d. Points: means over seeds from the store, with standard errors. "
            "The peak at τ = 1, as many sequences as parameters, is double descent; the best ridge removes it. "
            "With endless training and contexts, new tasks are learned once there are more than d training tasks (κ > 1).",
            job=JOB,
        )
    ],
    warm=({}, {"tasks": "own"}),
)
