"""The page of random features: learning curves of infinitely many heads, live at small n, with those of the store."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.claims.learners import learner
from attlas.explorer.controls import Choice, Slider, State
from attlas.explorer.memoised import memoised
from attlas.explorer.page import Page, Plot, Section, View
from attlas.explorer.plotting import Figure, curves_csv, layout, line, simulated
from attlas.explorer.simulations import Stored, stored
from attlas.features import TargetData, sample_sizes

Array = NDArray[np.float64]

TARGETS = {
    "keys 1": "average of ⟨β, xᵢ⟩",
    "keys 2": "average of ⟨β, xᵢ⟩²",
    "query 1": "⟨β, x₀⟩",
    "query 2": "⟨β, x₀⟩²",
    "correlation 1": "average of ⟨x₀, xᵢ⟩",
    "correlation 2": "average of ⟨x₀, xᵢ⟩²",
    "rotated 1": "average of ⟨x₀, S xᵢ⟩, S a rotation",
}
MODELS = {"kernel": "attention", "biased": "biased attention", "network": "network"}  # by learner
CONTROLS = (
    Choice("target", "Target", TARGETS, "correlation 1"),
    Choice("model", "Model", {"all": "all"} | MODELS, "all"),
    Slider("d", "Token dimension d", 4, 16, 2, 8),
    Choice("keys", "Keys", {"4": "4", "8": "8", "16": "16"}, "8"),
    Slider("bias", "Bias b of W₀ = b I", 0.5, 4, 0.5, 1),
    Slider("seed", "Random seed", 0, 9, 1, 0),
)
_FINITE = {"heads": "kernel", "neurons": "network"}  # learners of the store that are shown with another
_SETTINGS = ("target", "d", "keys", "bias")  # of simulations that the plot can show
_MOST = {"4": 128, "8": 96, "16": 48}  # samples that are fast enough, by keys
_TEST = 150  # test sequences


def curves(state: State) -> dict[str, tuple[Array, Array]]:
    """Return sample sizes and test error over the variance of the target, for every learner that is shown."""
    chosen = [name for name in MODELS if state["model"] in ("all", name)]
    return {name: _curve(state | {"model": name} | ({} if name == "biased" else {"bias": 0.0})) for name in chosen}


@memoised(1024, "target", "model", "d", "keys", "bias", "seed")
def _curve(state: State) -> tuple[Array, Array]:
    n = _MOST[state["keys"]]
    sizes = sample_sizes(4, n, 2)
    data = TargetData([state["target"]], int(state["d"]), int(state["keys"]), n, _TEST, int(state["seed"]))
    errors = data.network(sizes) if state["model"] == "network" else data.attention(sizes, state["bias"])
    return np.array(sizes), errors[:, 0]


def summary(view: View[None]) -> str:
    """Return in words what the plot shows."""
    state = view.state
    ends = [f"{MODELS[name]} {errors[-1]:.3f}" for name, (_, errors) in curves(state).items()]
    text = f"Test error over variance after {_MOST[state['keys']]} samples: {', '.join(ends)}"
    text += " (a constant predictor scores 1)."
    return text if _here(view) else text + _elsewhere(view)


def draw(view: View[None]) -> Figure:
    """Return the plot of the learning curves."""
    state, found = view.state, _here(view)
    traces = [line(*curve, learner(name).name, learner(name).colour) for name, curve in curves(state).items()]
    return {
        "data": traces + simulated(found, traces),
        "layout": layout(
            f"samples n<br>({TARGETS[state['target']]}, d = {state['d']:g}, {state['keys']} keys)",
            "test error / variance",
            xaxis={"type": "log", "tick0": np.log10(4), "dtick": np.log10(4 if found else 2)},
            yaxis={"rangemode": "tozero"},
        ),
    }


def data(view: View[None]) -> str:
    """Return the learning curves, and those of the store with their standard errors, as CSV."""
    lines = {learner(name).name: curve for name, curve in curves(view.state).items()}
    return curves_csv("n", "mse over variance", lines, _here(view))


def _stored(view: View[None]) -> list[Stored]:
    return stored(view.store, "features", "n", "mse over variance", _SETTINGS)


def _here(view: View[None]) -> list[Stored]:
    """Return the simulations at the settings of the page."""
    return [found for found in _stored(view) if _same(found.series.name, found.series.settings, view.state)]


def _same(name: str, settings: Any, state: State) -> bool:
    place = settings.get("target"), settings.get("d"), str(settings.get("keys"))
    return (
        place == (state["target"], state["d"], state["keys"])
        and state["model"] in ("all", _FINITE.get(name, name))
        and (name != "biased" or bool(np.isclose(settings.get("bias", np.nan), state["bias"])))
    )


def _elsewhere(view: View[None]) -> str:
    """Return where else the store has curves of this target."""
    mine = [found.series.settings for found in _stored(view)]
    places = {(s["keys"], s["d"]) for s in mine if s.get("target") == view.state["target"]}
    text = "; ".join(f"{keys} keys, d = {d}" for keys, d in sorted(places)[:4])
    return f" The store has curves of this target at {text}." if text else ""


PAGE = Page(
    door="features",
    sections=[
        Section(
            CONTROLS,
            summary,
            [Plot("curves", "Test error over the variance of the target, against samples", draw, data)],
            note="Lines: kernel ridge regression on one draw of the data, with the kernel of infinitely many heads or "
            "neurons; leave-one-out chooses the penalty. Points: means over seeds from the store, with standard errors.",
        )
    ],
)
