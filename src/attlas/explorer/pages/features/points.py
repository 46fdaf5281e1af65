"""The simulations of the store that belong on the page of random features."""

from typing import Any

from attlas.explorer.controls import State
from attlas.explorer.page import View
from attlas.explorer.pages.features import theory
from attlas.explorer.simulations import Stored, stored

_LEARNERS = {"kernel": "kernel", "biased": "biased", "network": "network", "heads": "kernel", "neurons": "network"}
_SETTINGS = ("target", "d", "keys", "bias", "heads")  # of simulations that the plot can show
_USUAL = {"penalty": "best", "scoring": "relu", "positions": 0.0, "noise": 0.0}  # what claims simulate


def here(view: View[Any]) -> dict[str, list[Stored]]:
    """Return the simulations at the settings of the page, by learner."""
    state = view.state
    if any(state[name] != value for name, value in _USUAL.items()):
        return {}
    found: dict[str, list[Stored]] = {}
    for one in _all(view):
        name = _learner(one)
        if name in theory.chosen(state) and _same(one, theory.settings_of(state, name)):
            found.setdefault(name, []).append(one)
    return found


def elsewhere(view: View[Any]) -> str:
    """Return where the store has simulations of this target, in words; nothing if it has none."""
    mine = [one.series.settings for one in _all(view) if one.series.settings["target"] == view.state["target"]]
    places = sorted({(int(s["keys"]), int(s["d"]), float(s.get("heads", "inf"))) for s in mine})
    words = [f"{keys} keys, d = {d}, M = {_sign(M)}" for keys, d, M in places]
    return f" The store has simulations of this target at {'; '.join(words[:4])}." if words else ""


def _all(view: View[Any]) -> list[Stored]:
    return [
        one
        for one in stored(view.store, "features", "n", "mse over variance", _SETTINGS)
        if _learner(one) and {"target", "d", "keys"} <= set(one.series.settings)
    ]


def _learner(one: Stored) -> str:
    """Return whose simulation this is: relu heads of the claim about scoring functions are attention too."""
    settings = one.series.settings
    if one.series.name == "relu":
        return "biased" if settings.get("bias") else "kernel"
    finite = one.series.name in ("heads", "neurons")
    return _LEARNERS.get(one.series.name, "") if finite == ("heads" in settings) else ""


def _same(one: Stored, state: State) -> bool:
    settings = one.series.settings
    heads = "infinite" if "heads" not in settings else str(settings["heads"])
    place = settings["target"], settings["d"], str(settings["keys"]), heads
    same = place == (state["target"], state["d"], state["keys"], state["heads"])
    return same and abs(float(settings.get("bias", 0.0)) - float(state["bias"])) < 1e-9


def _sign(heads: float) -> str:
    return f"{heads:g}" if heads < float("inf") else "∞"
