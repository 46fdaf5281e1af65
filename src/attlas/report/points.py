"""The points of a figure as a reader can ask for them: where each is in the SVG, and what it says in words."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attlas.claims import Series
from attlas.claims.learners import learner
from attlas.claims.lettering import base
from attlas.claims.tex import plain
from attlas.report.typeset import greek, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MOST = 600  # of a figure; a cloud of more is no set of points to ask one by one
NEAR = 1e-6  # share by which a drawn number may differ from the claim's own
ASIDE = 0.15, 0.35  # share by which a mark may stand aside, so that others are seen; and how far where x is whole
SKEW = 1.1  # between the ends of an interval, from which on it is told by its ends
ROUNDING = 1e-12  # an error smaller than this share of its number is none
INCH = 72  # units of matplotlib's SVG in an inch


@dataclass(frozen=True)
class Point:
    """A point: its place in units of the SVG, and its words."""

    x: float
    y: float
    words: str


def points(figure: "Figure", series: Sequence[Series]) -> str:
    """Return the points of a figure as circles of SVG that nobody sees, each with its words as a title.

    What stands in the claim's own `series` is told with its settings, seeds and theory; any other point with what was drawn.
    """
    found = list(dict.fromkeys(point for axis in figure.axes for point in _of(axis, figure, series)))
    if len(found) > MOST:
        return ""
    circles = (
        f'<circle cx="{p.x:.1f}" cy="{p.y:.1f}" r="5"><title>{html.escape(p.words)}</title></circle>\n' for p in found
    )
    return f'<g class="points">\n{"".join(circles)}</g>\n' if found else ""


def _of(axis: "Axes", figure: "Figure", series: Sequence[Series]) -> Iterator[Point]:
    """Yield the points of a panel: means with errors first, then marks without."""
    import numpy as np

    height, unit = figure.get_figheight() * INCH, INCH / figure.dpi
    names = _name(axis.get_xlabel(), "x"), _name(_shared(axis, figure), "y")
    for label, x, y, error in _marked(axis):
        places = axis.transData.transform(np.column_stack([x, y]).astype(float))
        inside = axis.bbox.padded(1).contains
        for place, at, value, off in zip(places, x, y, error, strict=True):
            if np.isfinite(place).all() and inside(*place):
                words = _words(label, names, (axis.xaxis, axis.yaxis), float(at), float(value), off, series)
                yield Point(place[0] * unit, height - place[1] * unit, greek(words))


def _name(label: str, otherwise: str) -> str:
    """Return the name of an axis as running text."""
    return _spoken(label) or otherwise


def _shared(axis: "Axes", figure: "Figure") -> str:
    """Return the name of the y axis of a panel; where it has none, that of the last panel before it that has one."""
    before = figure.axes[: figure.axes.index(axis) + 1]
    return next((label for panel in reversed(before) if (label := panel.get_ylabel())), "")


def _marked(axis: "Axes") -> Iterator[tuple[str, Any, Any, Sequence[float | None]]]:
    """Yield label, x, y and half the error bars of everything that is drawn as marks, single runs left out."""
    import numpy as np
    from matplotlib.container import ErrorbarContainer

    held = []
    for each in axis.containers:
        if isinstance(each, ErrorbarContainer) and each.lines[0] is not None:
            held.append(each.lines[0])
            x, y = map(np.asarray, each.lines[0].get_data(orig=False))
            bars = each.lines[2][0].get_segments() if each.lines[2] and each.has_yerr else ()
            whole = len(bars) == len(x)
            error = [abs(bar[1][1] - bar[0][1]) / 2 for bar in bars] if whole else [None] * len(x)
            yield str(each.get_label()), x, y, error
    for line in axis.lines:
        faint = (line.get_alpha() or 1.0) < 0.5
        if line not in held and line.get_marker() not in (None, "", " ", "None", "none", "_", "|") and not faint:
            x, y = map(np.asarray, line.get_data(orig=False))
            if line.get_transform() == axis.transData:
                yield str(line.get_label()), x, y, [None] * len(x)


def _words(
    label: str,
    names: tuple[str, str],
    axes: "tuple[Axis, Axis]",
    x: float,
    y: float,
    error: float | None,
    series: Sequence[Series],
) -> str:
    """Return what a point says: "message passing, d = 80: alpha 0.2, error 0.0513 ± 0.0004 (16 seeds), theory 0.0511"."""
    name, after = "" if label.startswith("_") or not label else f"{_spoken(label)}: ", ""
    if known := _known(x, y, series):
        one, i = known
        settings = ", ".join(map(_setting, one.settings.items()))
        name = f"{learner(one.name).name}{', ' if settings else ''}{settings}: "
        x, error = one.x[i], one.standard_error[i] if one.seeds[i] > 1 else None
        after = f" ({one.seeds[i]} seed{'s' if one.seeds[i] > 1 else ''})"
        after += f", theory {_said(axes[1], one.theory[i])}" if one.theory else ""
    elif error is not None and (count := _seeds(label, x, series)):
        after = f" ({count} seeds)"
    told = (_told(axis, own, at, off) for axis, own, at, off in zip(axes, names, (x, y), (None, error), strict=True))
    return name + ", ".join(told) + after


def _known(x: float, y: float, series: Sequence[Series]) -> tuple[Series, int] | None:
    """Return the series that a mark is of, and its place there; marks may stand aside from where they belong."""
    alike = [(one, i) for one in series for i, mean in enumerate(one.mean) if _same(mean, y)]
    for same in (_same, _beside):
        if found := [(one, i) for one, i in alike if same(one.x[i], x)]:
            return min(found, key=lambda each: abs(each[0].x[each[1]] - x))
    return None


def _seeds(label: str, x: float, series: Sequence[Series]) -> int | None:
    """Return over how many seeds a mean is that is drawn in other units than its series has; None if they do not agree."""
    own = [one for one in series if learner(one.name).name == label] or series
    counts = {one.seeds[i] for one in own for i, at in enumerate(one.x) if _same(at, x) or _beside(at, x)}
    return counts.pop() if len(counts) == 1 and 1 not in counts else None


def _beside(at: float, x: float) -> bool:
    return abs(at - x) <= max(ASIDE[0] * abs(at), ASIDE[1] if at.is_integer() else 0.0)


def _setting(item: tuple[str, Any]) -> str:
    """Return a setting in words: "d = 80", "decay = none"; one that says itself what it is, "rho = 0.5", stays."""
    key, value = item[0].replace("_over_", "/").replace("_", " "), item[1]
    if isinstance(value, str) and "=" in value:
        return value
    words = {None: "none", True: "yes", False: "no"}.get(value) if value is None or isinstance(value, bool) else None
    return f"{key} = {words or (number(value, 6) if isinstance(value, float) else value)}"


def _told(axis: "Axis", name: str, value: float, error: float | None) -> str:
    """Return what an axis says of a number with its error, in words: "error 0.51 ± 0.02", or the name beside its mark."""
    if word := _nearest(axis, value):
        return word
    if not error or error <= ROUNDING * abs(value):
        return f"{name} {_said(axis, value)}"
    if of := base(axis):
        low, high = of ** (value - error), of ** (value + error)
        if high > SKEW * low:
            return f"{name} {_said(axis, value)} ({number(low)} to {number(high)})"
        error = (high - low) / 2
    return f"{name} {_said(axis, value)} ± {number(error)}"


def _said(axis: "Axis", value: float) -> str:
    """Return a number on an axis; along logarithms that are marked with the numbers themselves, the number."""
    return number(value if (of := base(axis)) is None else of**value)


def _nearest(axis: "Axis", value: float) -> str:
    """Return the name of the nearest mark along an axis of names; nothing along one of numbers."""
    from matplotlib.ticker import FixedLocator

    if not isinstance(axis.get_major_locator(), FixedLocator):
        return ""
    places = [float(place) for place in axis.get_majorticklocs()]
    words = [_spoken(axis.get_major_formatter()(place, i)) for i, place in enumerate(places)]
    if not words or not all(re.search(r"[A-Za-zΑ-ω]", word) for word in words):
        return ""
    return words[min(range(len(places)), key=lambda i: abs(places[i] - value))]


def _spoken(label: str) -> str:
    """Return a label as running text, its small powers raised."""
    return re.sub(r"\^(\d)(?!\d)", lambda found: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(found[1])], plain(label))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), abs(other))
