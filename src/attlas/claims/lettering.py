"""What is written in a figure: symbols in italics, plain numbers on logarithmic axes, legends beside the data."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

GREEK = "alpha|beta|gamma|delta|eta|kappa|lambda|rho|sigma|tau|omega|theta|Delta|Theta"
# a letter alone is a symbol, but for the articles and what a hyphen joins, as in L-BFGS; letters before an index are TeX's
_SYMBOL = re.compile(rf"(?<![A-Za-z0-9_'’\-])(?:({GREEK})|([b-zB-HJ-Z]))([²³]?)(?![A-Za-z0-9_'’]|-[A-Za-z])")
_POWER = re.compile(r"\b(\d(?:\.\d+)?)e([+-]?\d+)\b")
SIZE = 9  # points, of legends and of names at the ends of lines
LINE = 1.35  # of a line of text, over its size
WIDE = 0.54  # of a letter, over its size, on average
BELOW = 34  # points from a panel to its legend, for the numbers and the name of its axis
MANY = 1.9  # decades, from which on powers of ten are enough
PLAIN = (1e-3, 2e4)  # powers of ten that are written out


def maths(text: str) -> str:
    """Return a label with its symbols as mathtext; one that has dollar signs is set already."""
    if "$" in text:
        return text
    found = text.replace(">=", "≥").replace("<=", "≤").replace(" - ", " − ")
    found = re.sub(r"(?<![\w)])-(?=\d)", "−", found)
    found = _POWER.sub(lambda m: f"${'' if m[1] == '1' else m[1] + chr(92) + 'times'}10^{{{int(m[2])}}}$", found)
    parts = re.split(r"(\$[^$]*\$)", found)
    return "".join(p if p.startswith("$") else _SYMBOL.sub(_italic, p) for p in parts)


def _italic(found: re.Match[str]) -> str:
    power = {"²": "^2", "³": "^3"}.get(found[3], "")
    return rf"$\{found[1]}{power}$" if found[1] else f"${found[2]}{power}$"


def letter(figure: "Figure") -> None:
    """Set every label, name of a tick and remark of a figure as mathematics."""
    for axis in figure.axes:
        for text in (axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts):
            text.set_text(maths(text.get_text()))
        for one in (axis.xaxis, axis.yaxis):
            number(one)


def number(axis: "Axis") -> None:
    """Write few and plain numbers along an axis, unless somebody has chosen them."""
    from matplotlib.ticker import (
        AutoLocator,
        FixedFormatter,
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullLocator,
    )

    formatter = axis.get_major_formatter()
    if isinstance(formatter, FixedFormatter | FuncFormatter):  # names that somebody gave
        axis.set_major_formatter(FuncFormatter(lambda at, place: maths(formatter(at, place))))
    elif isinstance(axis.get_major_locator(), AutoLocator):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    elif isinstance(axis.get_major_locator(), LogLocator):
        places = _places(*sorted(axis.get_view_interval()))
        axis.set_major_locator(FixedLocator(places))
        axis.set_major_formatter(FixedFormatter(_written(places)))
        if np.ptp(np.log10(places)) < MANY:
            axis.set_minor_locator(NullLocator())


def _places(low: float, high: float) -> list[float]:
    """Return where a logarithmic axis is marked: at powers of ten, or at 1, 2 and 5 of each if there are few."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    inside = [k for k in range(first, last + 1) if low <= 10.0**k <= high]
    if np.log10(high / low) > MANY and len(inside) > 1:
        return [10.0**k for k in inside if k % (1 + (len(inside) - 1) // 7) == 0]
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8), np.arange(1, 10, 0.2)):
        found = [float(f"{step * 10.0**k:.6g}") for k in range(first - 1, last + 1) for step in steps]
        shown = [at for at in found if low <= at <= high]
        if len(shown) >= 3:
            return shown
    return shown or [low, high]


def _written(places: Sequence[float]) -> list[str]:
    if all(PLAIN[0] <= at <= PLAIN[1] for at in places):
        return [f"{at:g}" for at in places]
    return [maths(f"{at:.0e}") if at != 1 else "1" for at in places]


def powers(axis: "Axis", values: Sequence[float] | None = None) -> None:
    """Mark an axis of logarithms to base 10 at whole ones, and write the powers of ten themselves."""
    low, high = axis.get_view_interval() if values is None else (min(values), max(values))
    first, last = int(np.floor(low)), int(np.ceil(high))
    places = list(range(first, last + 1, 1 + (last - first) // 8))
    axis.set_ticks(places, _written([10.0**k for k in places]))
    axis.axes.set(**{f"{axis.axis_name}lim": (min(first, low), max(last, high))})  # type: ignore[attr-defined]


def base(axis: "Axis") -> float | None:
    """Return the base of an axis of logarithms that is marked with the numbers themselves, as by `powers`; else None."""
    places = [float(place) for place in axis.get_majorticklocs()]
    formatter = axis.get_major_formatter()
    numbers = [_read(formatter(at, i)) for i, at in enumerate(places)]
    if len(places) < 2 or any(one is None or one <= 0 for one in numbers):
        return None
    found = np.log(np.array(numbers, dtype=float))
    return next((one for one in (10.0, np.e) if np.allclose(found / np.log(one), places, rtol=0, atol=0.01)), None)


def _read(label: str) -> float | None:
    """Return the number that stands at a mark of an axis, or None."""
    power = re.fullmatch(r"\$(?:(.*)\\times)?10\^\{(-?\d+)\}\$", label)
    text = f"{power[1] or 1}e{power[2]}" if power else label.replace("−", "-")
    try:
        return float(text)
    except ValueError:
        return None


def name_ends(axis: "Axes") -> None:
    """Write the names of lines where they end on the right, instead of a legend: for few lines that end apart.

    Call it when the limits of the axis are final.
    """
    axis.get_xlim(), axis.get_ylim()  # the limits follow the data only when somebody asks
    rows = []
    for handle, label in _named(axis):
        line = handle[0] if isinstance(handle, tuple) else handle
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        at = (axis.transScale + axis.transLimits).transform(np.stack([x, y], axis=1))
        at = at[np.isfinite(at).all(axis=1) & (at[:, 0] <= 1.001)]
        rows.append((float(at[np.argmax(at[:, 0]), 1]), label, line.get_color()))
        handle.set_label("_" + label)
    height = 72 * axis.get_figure(root=True).get_figheight() * 0.78  # type: ignore[union-attr]  # of a panel
    places = _apart([row[0] for row in sorted(rows)], LINE * SIZE / height)
    for place, (_, label, colour) in zip(places, sorted(rows), strict=True):
        axis.annotate(
            label, (1, place), xycoords="axes fraction", xytext=(5, 0), textcoords="offset points", va="center",
            color=colour, fontsize=SIZE, annotation_clip=False,
        )  # fmt: skip


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Return increasing places moved as little as keeps them `gap` apart, and within the panel if they fit."""
    found = np.array(places, dtype=float)
    for _ in range(200):
        short = gap - np.diff(found)
        if not (short > 1e-6).any():
            break
        push = np.where(short > 0, short, 0) / 2
        found[:-1] -= push
        found[1:] += push
    return list(found)


def place_legends(figure: "Figure") -> None:
    """Put the legend of a figure below its panels, outside of the data: one if they agree, else one for each."""
    named = [(axis, list(_named(axis))) for axis in figure.axes]
    named = [(axis, found) for axis, found in named if found]
    if not named:
        return
    pairs = {(label, look(handle)) for _, found in named for handle, label in found}
    shared = len(pairs) == len({label for label, _ in pairs}) == len({seen for _, seen in pairs})
    if shared or len(named) == 1:
        handles = {label: handle for _, found in named for handle, label in reversed(found)}
        labels = list(dict.fromkeys(label for _, found in named for _, label in found))
        rows = _legend(figure, [handles[label] for label in labels], labels, figure.get_figwidth() * 72 - 30)
    else:
        width = figure.get_figwidth() * 72 / len(figure.axes) - 30
        own = [(axis, {label: handle for handle, label in reversed(found)}, found) for axis, found in named]
        names = [list(dict.fromkeys(label for _, label in found)) for _, _, found in own]
        rows = max(
            _legend(axis, [handles[label] for label in labels], labels, width)
            for (axis, handles, _), labels in zip(own, names, strict=True)
        )
    figure.set_figheight(figure.get_figheight() + rows * LINE * SIZE * 1.15 / 72 + 0.05)


def _legend(home: Any, handles: Sequence[Any], labels: Sequence[str], width: float) -> int:
    """Write a legend below its home in as many columns as fit, and return the number of its rows."""
    longest = max(len(re.sub(rf"{GREEK}|[A-Za-z]+(?=\{{)|[$\\{{}}^]", "", label)) for label in labels)
    fit = max(1, int(width // (WIDE * SIZE * longest + 4 * SIZE)))
    rows = -(-len(labels) // fit)
    columns = -(-len(labels) // rows)
    own: dict[str, Any] = {"loc": "outside lower center"}
    if hasattr(home, "transAxes"):
        from matplotlib.transforms import ScaledTranslation

        down = ScaledTranslation(0, -BELOW / 72, home.figure.dpi_scale_trans)
        own = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": home.transAxes + down}
        own["borderaxespad"] = 0.0
    texts = [maths(label) for label in labels]
    home.legend(
        _by_rows(handles, columns), _by_rows(texts, columns), frameon=False, fontsize=SIZE, ncols=columns,
        columnspacing=1.4, handletextpad=0.5, **own,
    )  # fmt: skip
    return rows


def _by_rows(items: Sequence[Any], columns: int) -> list[Any]:
    """Return items in the order in which a legend, which fills columns, shows them row by row."""
    return [item for column in range(columns) for item in items[column::columns]]


def _named(axis: "Axes") -> Iterator[tuple[Any, str]]:
    handles, labels = axis.get_legend_handles_labels()
    yield from zip(handles, labels, strict=True)


def look(handle: Any) -> tuple[Any, ...]:
    """Return what a reader tells a line or points in a legend by: colour, marker, dashes, filling."""
    line = handle[0] if isinstance(handle, tuple) else handle
    if not hasattr(line, "get_marker"):
        return (str(line.get_facecolor()),)
    return (str(line.get_color()), line.get_marker(), line.get_linestyle(), str(line.get_markerfacecolor()))
