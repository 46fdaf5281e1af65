"""What figures about recovery share: single runs as faint points, and curves that are told apart by their settings."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attlas.claims.figure import distinct, drawn, finished, panels, ticks
from attlas.claims.learners import learner
from attlas.claims.lettering import name_ends, powers
from attlas.claims.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHORT = {"heads": "m", "scale": "s"}


def magnitude(value: float) -> float:
    """Return the logarithm to base 10; minus infinity, which no series keeps, where there is none."""
    return float(np.log10(value)) if value > 0 else -np.inf


def curves(axis: "Axes", series: Sequence[Series]) -> None:
    """Draw series in colours of their own, labelled by the settings in which they differ."""
    varied = [key for key in series[0].settings if len({one.settings[key] for one in series}) > 1] if series else []
    for i, one in enumerate(series):
        label = ", ".join(f"{_SHORT.get(key, key)} = {one.settings[key]:g}" for key in varied)
        drawn(axis, one, label, **distinct(i))


def each_against_x(series: Sequence[Series]) -> "Figure":
    """Return a figure with a panel for every y of the series, a power of ten each, against d; both axes logarithmic."""
    names = list(dict.fromkeys(one.y_name for one in series))
    figure, axes = panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        mine = [one for one in series if one.y_name == name]
        curves(axis, mine)
        axis.set(xlabel="token dimension d", ylabel=name.removeprefix("log10 of the "), xscale="log")
        powers(axis.yaxis)
        name_ends(axis)
        ticks(axis, (x for one in mine for x in one.x))
    return finished(figure)


def shifted(series: Series, by: float) -> Series:
    """Return the same points a little aside, where several would hide each other."""
    return replace(series, x=tuple(x + by for x in series.x))


def runs(axis: "Axes", x: Iterable[float], y: Iterable[float], name: str) -> None:
    """Draw single runs of a learner, faintly."""
    look = learner(name)
    axis.plot(list(x), list(y), look.marker, color=look.colour, alpha=0.3, markersize=3, markeredgewidth=0)
