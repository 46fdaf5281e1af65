"""The page of random features: test errors that the theory predicts, against samples and against heads, live."""

from attlas.explorer.controls import Choice, Slider
from attlas.explorer.page import Page, Plot, Section
from attlas.explorer.pages.features import drawing
from attlas.explorer.pages.features.theory import RANGES, TARGETS

CONTROLS = (
    Choice("target", "Target: the average over keys i of", TARGETS, "correlation 1"),
    Choice(
        "model",
        "Learner",
        {"all": "all", "kernel": "attention", "biased": "biased attention", "network": "network"},
        "all",
    ),
    Choice(
        "heads",
        "Heads M",
        {"infinite": "∞"} | {str(M): str(M) for M in (50, 100, 200, 400, 600, 1000, 3000)},
        "infinite",
    ),
    Choice(
        "penalty",
        "Penalty α over the kernel's trace",
        {"best": "best", "1": "1", "0.1": "0.1", "0.01": "0.01", "1e-4": "10⁻⁴", "1e-6": "10⁻⁶"},
        "best",
    ),
    Choice(
        "scoring",
        "Scoring function",
        {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp", "relu2": "relu²"},
        "relu",
    ),
    Choice("keys", "Keys", {N: N for N in ("2", "4", "6", "8", "16", "32", "64")}, "4"),
    Slider("d", "Token dimension d", 4, 32, 2, 8),
    Slider(
        "bias", "Bias b of W₀ = b I", 0.5, 4, 0.5, 1, only={"model": ("all", "biased")}, why="Biased attention only"
    ),
    Slider(
        "positions",
        "Weight of position codes",
        0,
        2,
        0.25,
        0,
        only={"model": ("all", "kernel", "biased")},
        why="Attention only",
    ),
    Slider("noise", "Label noise over variance", 0, 1, 0.05, 0),
    Slider("n", "Samples n", 1, 5, 0.1, 2.5, powers=True),
    Choice(
        "range", "Samples on the axis", {name: f"{low} to {high}" for name, (low, high) in RANGES.items()}, "middle"
    ),
)
PLOTS = (
    Plot(
        "curves", "Test error over variance against samples", drawing.draw_curves, drawing.curves_data, drag=("n", "")
    ),
    Plot("heads", "Test error over variance against heads", drawing.draw_heads, drawing.heads_data),
)

PAGE = Page(
    door="features",
    sections=[
        Section(
            CONTROLS,
            drawing.summary,
            PLOTS,
            note="Lines: theory, without a fit, at 12 sizes or more and cubics between them; bands hold nine in ten "
            "simulations. Points: means over seeds from the store, with standard errors. Their penalty is chosen by "
            "leave-one-out, so they are shown beside the best penalty, without noise. A network has d + 1 neurons for "
            "every head: as many trained numbers. The plot against heads is at the n of the slider (grey line), with "
            "the penalty that you choose, or 10⁻⁶ in place of the best. With so small a penalty the error peaks where "
            "there are as many trained numbers as samples: double descent. Position codes tell attention the order of "
            "the keys. Without them it cannot learn a target with signs ±, which are plus for the first half of the "
            "keys.",
        )
    ],
    warm=({"heads": "1000"}, {}),
)
