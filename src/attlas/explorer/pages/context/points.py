"""The simulations of the store that belong on the page of learning in context: trained layers, and learners without end."""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.explorer.page import View
from attlas.explorer.pages.context import theory
from attlas.explorer.pages.context.theory import NEW, OLD, SETTINGS
from attlas.explorer.simulations import stored

LEARNERS = {"linear attention": COLOURS[4], "Bayes of the training tasks": COLOURS[3]}  # after endless training


class Point(NamedTuple):
    """A simulation of the store: where it is on a plot, and what it found."""

    kind: str
    settings: dict[str, float]
    x: float
    mean: float
    error: float
    seeds: int
    d: int
    claim: str


def trained(view: View[Any]) -> list[tuple[dict[str, float], Point]]:
    """Return the trained layers of the store: series over 1/d whose settings are those of the theory."""
    found = []
    for claim, series in stored(view.store, "context", "1/d", "error", SETTINGS):
        if series.name not in (NEW, OLD) or not set(SETTINGS) <= set(series.settings):
            continue
        at = {name: inf if series.settings[name] is None else float(series.settings[name]) for name in SETTINGS}
        found += [
            (at, Point(series.name, at, np.nan, mean, error, seeds, round(1 / x), claim))
            for x, mean, error, seeds in zip(series.x, series.mean, series.standard_error, series.seeds, strict=True)
        ]
    return found


def along(view: View[Any], axis: str) -> list[Point]:
    """Return the simulations at the settings of the page, wherever they are along the axis."""
    at = theory.settings_of(view.state)
    others = [name for name in SETTINGS if name != axis]
    return [
        point._replace(x=settings[axis])
        for settings, point in trained(view)
        if settings[axis] < inf and all(close(settings[name], at[name]) for name in others)
    ]


def endless(view: View[Any]) -> list[Point]:
    """Return what learners of the store make of new tasks after endless training without ridge, against tasks."""
    at = {"tau": inf, "ridge": 0.0} | {name: float(view.state[name]) for name in ("alpha", "noise")}
    return [
        Point(series.name, at, x, mean, error, seeds, int(series.settings["d"]), claim)
        for claim, series in stored(view.store, "context", "tasks over d", "error", (*SETTINGS, "tasks", "d"))
        if series.name in LEARNERS
        and series.settings.get("tasks") == "new"
        and all(close(float(series.settings.get(name, np.nan)), value) for name, value in at.items())
        for x, mean, error, seeds in zip(series.x, series.mean, series.standard_error, series.seeds, strict=True)
    ]


def close(one: float, other: float) -> bool:
    """Return whether two settings are the same to the steps of a slider."""
    return one == other or bool(np.isclose(one, other, rtol=0.02, atol=1e-9))
