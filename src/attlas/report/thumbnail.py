"""A figure as one of many small ones: its first panel with what it shows, and no words but the names of its axes."""

import io
from typing import TYPE_CHECKING, Any

from attlas.claims.tex import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (2.9, 1.95)  # inches; pages show it at about this size
PLACE = (0.075, 0.12, 0.9, 0.84)  # of the panel, as shares of that
LETTERS = 44, 30  # as many fit along the axes
RUNS = 250  # points of a line that are drawn; more would only be bytes


def thumbnail(figure: "Figure") -> str:
    """Return a small SVG of the first panel of a figure, which is stripped for it and of no further use."""
    axis, *others = figure.axes
    for other in others:
        other.remove()
    for words in (*figure.texts, *figure.legends, *axis.texts):
        words.remove()
    if legend := axis.get_legend():
        legend.remove()
    figure.suptitle("")
    axis.set_title("")
    figure.set_layout_engine(None)
    figure.set_size_inches(*SIZE)
    axis.set_position(PLACE)
    axis.tick_params(which="both", length=2, labelbottom=False, labelleft=False, labeltop=False, labelright=False)
    for side, most in ((axis.xaxis, LETTERS[0]), (axis.yaxis, LETTERS[1])):
        side.get_offset_text().set_visible(False)
        side.set_label_text(_short(side.get_label_text(), most), fontsize=7.5, color="#555555")
        side.labelpad = 2
    for line in axis.lines:
        _lighter(line)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _short(label: str, most: int) -> str:
    """Return a label that fits, without what stands behind a comma or in brackets; nothing where none does."""
    for text in (label, label.partition(",")[0], label.partition(" (")[0]):
        if len(plain(text)) <= most:
            return text
    return ""


def _lighter(line: Any) -> None:
    line.set_markersize(0.7 * line.get_markersize())
    count = len(line.get_xdata())
    if line.get_linestyle() in ("None", "none", "", " ") and count > RUNS:
        line.set_markevery(-(-count // RUNS))
