"""One visual language for every figure: colour-blind safe colours, theory as lines, simulation as points."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's palette, without its yellow, which is too faint on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
THEORY: dict[str, Any] = {"color": "#555555", "linewidth": 1.2}


def panels(count: int, width: float = 4.6, height: float = 3.6) -> "tuple[Figure, list[Axes]]":
    """Return a figure of `count` panels side by side. No global state is touched, so any thread may draw."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * count, height), layout="constrained")
    axes = [figure.add_subplot(1, count, i + 1) for i in range(count)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, alpha=0.25, linewidth=0.6)
    return figure, axes


def mean_curve(axis: "Axes", i: int, label: str, sizes: "ArrayLike", curves: "NDArray[np.float64]") -> None:
    """Draw the mean of several curves (repeats, sizes) with their spread, in the i-th colour."""
    spread = curves.std(0) if len(curves) > 1 else None
    style: dict[str, Any] = {"color": COLOURS[i], "label": label, "markersize": 4}
    axis.errorbar(sizes, curves.mean(0), yerr=spread, fmt=MARKERS[i] + "-", **style)


def ticks(axis: "Axes", values: Iterable[float]) -> None:
    """Mark a logarithmic x axis at these values, and nowhere else: few decades leave no room for powers of ten."""
    shown = sorted(set(values))
    axis.set_xticks(shown, [f"{value:g}" for value in shown])
    axis.set_xticks([], minor=True)
