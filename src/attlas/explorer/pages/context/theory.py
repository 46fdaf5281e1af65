"""The theory behind the page of learning in context, fast enough to follow a slider, and remembered."""

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas import context
from attlas.explorer.controls import State
from attlas.explorer.memoised import memoised

Array = NDArray[np.float64]

SETTINGS = ("alpha", "kappa", "tau", "ridge", "noise")
NEW, OLD, TUNED, BAYES = "new tasks", "training tasks", "new tasks, best ridge", "Bayes, new tasks"
AXES = {  # where a curve is drawn
    "tau": np.unique(np.r_[np.linspace(0.05, 4, 60), np.linspace(0.8, 1.25, 37)]),
    "kappa": np.geomspace(0.1, 10, 61),
    "alpha": np.geomspace(0.2, 1000, 61),
}
_TUNED = 4  # every which point has its best ridge found
_DIAGRAM = (32, 40)  # kappas and taus


def settings_of(state: State) -> dict[str, float]:
    """Return the settings of the theory; kappa is infinite where every sequence has a task of its own."""
    found = {name: float(state[name]) for name in SETTINGS}
    return found | ({"kappa": inf} if state["tasks"] == "own" else {})


def here(state: State) -> tuple[context.Theory, context.BestRidge, float]:
    """Return the theory at the settings of the sliders, with the best ridge, and the Bayes error on new tasks."""
    alpha, kappa, tau, ridge, noise = settings_of(state).values()
    found = context.theory(alpha, kappa, tau, ridge, noise)
    return found, context.best_ridge(alpha, kappa, tau, noise), context.ridge_in_context(alpha, noise).value


def curves(state: State, axis: str) -> dict[str, tuple[Array, Array]]:
    """Return errors against one of the ratios: of the layer on both kinds of task, with the best ridge, and of Bayes."""
    return _along[axis](state | {"kappa": settings_of(state)["kappa"]} if axis != "kappa" else state)


def _curves(given: dict[str, Any], axis: str) -> dict[str, tuple[Array, Array]]:
    x = AXES[axis]
    coarse = x[::_TUNED]
    found, tuned = context.curve(**given | {axis: x}), context.curve(**given | {axis: coarse, "ridge": "best"})
    solved = found.where(found["converged"])
    limit = [context.ridge_in_context(at, given["noise"]).value for at in (x if axis == "alpha" else [given["alpha"]])]
    return {
        NEW: (x, solved["icl"].values),
        OLD: (x, solved["idg"].values),
        TUNED: (coarse, tuned["icl"].where(tuned["converged"]).values),
        BAYES: (x, np.broadcast_to(limit, len(x)).astype(float)),
    }


@memoised(256, "kappa", "alpha", "ridge", "noise")
def _over_tau(state: State) -> dict[str, tuple[Array, Array]]:
    return _curves(state, "tau")


@memoised(256, "tau", "alpha", "ridge", "noise")
def _over_kappa(state: State) -> dict[str, tuple[Array, Array]]:
    return _curves(state, "kappa")


@memoised(256, "tau", "kappa", "ridge", "noise")
def _over_alpha(state: State) -> dict[str, tuple[Array, Array]]:
    return _curves(state, "alpha")


_along = {"tau": _over_tau, "kappa": _over_kappa, "alpha": _over_alpha}


@memoised(128, "alpha", "noise")
def diversity(state: State) -> tuple[Array, Array, Array]:
    """Return kappas and the error on new tasks after endless training without ridge, here and with endless contexts."""
    kappas = AXES["kappa"]
    found = context.curve(state["alpha"], kappas, inf, 0.0, state["noise"])
    return kappas, found["icl"].values, state["noise"] + np.maximum(1 - kappas, 0)


@memoised(128, "alpha", "ridge", "noise")
def diagram(state: State) -> tuple[Array, Array, Array]:
    """Return kappas, taus and the error on new tasks over both."""
    kappas, taus = np.linspace(0.1, 4, _DIAGRAM[0]), np.linspace(0.1, 4, _DIAGRAM[1])
    found = context.curve(state["alpha"], kappas, taus, state["ridge"], state["noise"])
    return kappas, taus, np.asarray(found["icl"].where(found["converged"]).transpose("tau", "kappa").values)
