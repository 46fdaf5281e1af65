"""What there is to see in a figure: its texts, its lines and its marks, for tests of what figures show and captions say."""

import itertools
import re

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer

DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashed", "None": ""}
SLACK = 1e-6  # of the length of an axis


def laid_out(figure):
    """Return a figure with everything at its place."""
    FigureCanvasAgg(figure).draw()
    return figure


def texts(figure):
    """Return every text that is shown, without its mathematics."""
    found = []
    for axis in figure.axes:
        found += [axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        found += [*numbers(axis.xaxis), *numbers(axis.yaxis)]
    found += [text for legend in legends(figure) for text in legend.get_texts()]
    return [text for text in found if text.get_visible() and text.get_text()]


def numbers(axis):
    """Return what is written at the ticks of an axis, in order."""
    low, high = sorted(axis.get_view_interval())
    slack = SLACK * (high - low)
    ticks = [(tick.get_loc(), tick.label1) for tick in axis.get_major_ticks()]
    return [label for at, label in sorted(ticks, key=lambda pair: pair[0]) if low - slack <= at <= high + slack]


def legends(figure):
    """Return the legends of a figure and of its panels."""
    return [*figure.legends, *(axis.get_legend() for axis in figure.axes if axis.get_legend())]


def lines(figure):
    """Return (axis, line) of everything that is drawn as a line or as marks, those of error bars too."""
    return [(axis, line) for axis in figure.axes for line in axis.lines if len(line.get_xdata())]


def shown(figure):
    """Return which kinds of lines and marks are drawn: solid, dashed, dotted, points, hollow, bars, band."""
    kinds = set()
    for _, line in lines(figure):
        marked = line.get_marker() not in (None, "None", "none", "", " ")
        kinds.add(DASHES.get(str(line.get_linestyle()), "dashed"))
        if marked:
            kinds.add(
                "hollow"
                if str(line.get_markerfacecolor()) in ("white", "none") or line.get_fillstyle() == "none"
                else "points"
            )
            kinds.add("points")
    for axis in figure.axes:
        kinds |= {"errors" for box in axis.containers if isinstance(box, ErrorbarContainer)}
        kinds |= {"bars" for box in axis.containers if not isinstance(box, ErrorbarContainer)}
        kinds |= {"bars" for line in axis.lines if line.get_linewidth() >= 2}
        kinds |= {
            "band"
            for patch in (*axis.patches, *axis.collections)
            if type(patch).__name__ in ("Polygon", "Rectangle", "PolyCollection", "FillBetweenPolyCollection")
        }
    return kinds - {""}


def cut(figure):
    """Return data that lie outside of their panel: marks anywhere, curves above or below it."""
    found = []
    for axis, line in lines(figure):
        if line.get_transform() != axis.transData:
            continue  # a line across the panel
        axis.get_xlim(), axis.get_ylim()  # the limits follow the data only when somebody asks
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        at = (axis.transScale + axis.transLimits).transform(np.stack([x, y], axis=1)[np.isfinite(x) & np.isfinite(y)])
        marked = line.get_marker() not in (None, "None", "none", "", " ")
        beside = ~((at[:, 0] > -SLACK) & (at[:, 0] < 1 + SLACK))
        beyond = ~((at[:, 1] > -SLACK) & (at[:, 1] < 1 + SLACK))
        out = beside | beyond if marked else beyond & ~beside
        if out.any():
            found.append((axis.get_title() or axis.get_ylabel(), line.get_label(), at[out][0].round(3).tolist()))
    return found


def crowded(figure):
    """Return texts that leave the figure, numbers of an axis that overlap, and legends that cover a panel."""
    whole = figure.bbox.padded(2)
    found = [
        f"leaves the figure: {text.get_text()}" for text in texts(figure) if _leaves(text.get_window_extent(), whole)
    ]
    for axis in figure.axes:
        for one, other in itertools.pairwise(_extents(numbers(axis.xaxis))):
            if one[1].x1 > other[1].x0:
                found.append(f"overlap: {one[0]} {other[0]}")
    for legend in legends(figure):
        box = legend.get_window_extent()
        found += [
            f"legend over a panel: {axis.get_ylabel()}"
            for axis in figure.axes
            if box.overlaps(axis.get_window_extent())
        ]
    return found


def _leaves(box, whole):
    return box.width > 0 and not (
        whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
    )


def _extents(labels):
    found = [(text.get_text(), text.get_window_extent()) for text in labels if text.get_visible() and text.get_text()]
    return sorted(found, key=lambda pair: pair[1].x0)


def plain(text):
    """Return a text without its mathematics."""
    return re.sub(r"\$[^$]*\$", "", text)
