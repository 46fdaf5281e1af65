"""One visual language for every figure: colour-blind safe colours, theory as lines, simulation as points with errors."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attlas.claims.learners import learner
from attlas.claims.lettering import letter, place_legends
from attlas.claims.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

# Okabe and Ito's palette, without its yellow, which is too faint on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
THEORY: dict[str, Any] = {"color": "#555555", "linewidth": 1.2}


def panels(
    count: int, width: float = 4.6, height: float = 3.6, columns: int | None = None
) -> "tuple[Figure, list[Axes]]":
    """Return a figure of `count` panels, `columns` of them in a row. No global state is touched, so any thread may draw."""
    from matplotlib.figure import Figure

    across = min(count, columns or count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down))
    figure.set_layout_engine("constrained", wspace=0.06)
    axes = [figure.add_subplot(down, across, i + 1) for i in range(count)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, alpha=0.25, linewidth=0.6)
    return figure, axes


def finished(figure: "Figure") -> "Figure":
    """Return a figure with its words set: symbols in italics, plain numbers, legends below the panels. The last step."""
    letter(figure)
    place_legends(figure)
    return figure


def simulated(
    axis: "Axes", i: int, x: "ArrayLike", y: "ArrayLike", label: str | None = None, log: bool = False
) -> None:
    """Draw every run faintly and, at each x, the mean over runs with its standard error, in the i-th colour.

    With `log` means and errors are those of the logarithms, for a logarithmic y axis; runs at zero are then left out.
    """
    import numpy as np

    place, value = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    shown = np.isfinite(value) & ((value > 0) | (not log))
    place, value = place[shown], np.log(value[shown]) if log else value[shown]
    style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[i % len(MARKERS)], "capsize": 2}
    at = np.unique(place)
    runs = [value[place == one] for one in at]
    mean = np.array([np.mean(own) for own in runs])
    error = np.array([np.std(own, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0 for own in runs])
    low, high = (np.exp(mean + sign * error) if log else mean + sign * error for sign in (-1, 1))
    middle, faint = (np.exp(mean), np.exp(value)) if log else (mean, value)
    if len(at) < len(value):
        axis.plot(place, faint, style["fmt"], color=style["color"], alpha=0.25, markersize=3, markeredgewidth=0)
    axis.errorbar(at, middle, yerr=[middle - low, high - middle], label=label, markersize=5, linewidth=1.2, **style)


def drawn(axis: "Axes", series: Series, label: str | None = None, **style: Any) -> None:
    """Draw the points of a series with their standard errors, and its theory as a line of the same colour.

    Name, colour and marker are those of the table of learners, unless `label` or `style` say otherwise.
    """
    look = learner(series.name)
    own: dict[str, Any] = {"color": look.colour, "fmt": look.marker, "capsize": 2, "markersize": 5, "linewidth": 1.2}
    own |= style
    axis.errorbar(series.x, series.mean, yerr=series.standard_error, label=look.name if label is None else label, **own)
    if series.theory is not None:
        axis.plot(series.x, series.theory, **(THEORY | {"color": own["color"]}))


def distinct(i: int) -> dict[str, Any]:
    """Return the colour and the marker of the i-th setting; 49 of them differ."""
    return {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]}


def filled_and_hollow(axis: "Axes", filled: str, hollow: str) -> None:
    """Say in the legend which settings have filled marks and which hollow ones."""
    for words, face in ((filled, "#555555"), (hollow, "white")):
        axis.plot([], [], "o", color="#555555", markerfacecolor=face, markersize=5, label=words)


def ticks(axis: "Axes", values: Iterable[float]) -> None:
    """Mark a logarithmic x axis at these values, and nowhere else: few decades leave no room for powers of ten."""
    shown = sorted(set(values))
    axis.set_xticks(shown, [f"{value:g}" for value in shown])
    axis.set_xticks([], minor=True)
