"""A picture of the errors of a layer that learns in context, over two of its ratios."""

from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.errors import InputError

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_LABELS = {
    "alpha": "examples of a context over d, alpha",
    "kappa": "training tasks over d, kappa",
    "tau": "training sequences over d², tau",
    "ridge": "ridge",
    "noise": "label noise",
}
_ACROSS = ("kappa", "alpha", "ridge", "noise", "tau")  # the first of these that is a dimension is the horizontal axis


def context_diagram(dataset: "xarray.Dataset") -> "Figure":
    """Draw both errors of a dataset of `context.curve` over its two dimensions, as colours.

    A line shows where the layer is as good as one that predicts zero, a dotted one k = d tasks or n = d^2 sequences.
    Colours end at twice the error of predicting zero: without ridge the errors at tau = 1 are infinite.
    """
    from matplotlib.figure import Figure

    if len(dataset["icl"].dims) != 2:
        raise InputError(f"a diagram needs errors over two ranges; got {len(dataset['icl'].dims)}")
    across = next(name for name in _ACROSS if name in dataset["icl"].dims)
    (up,) = (str(name) for name in dataset["icl"].dims if name != across)
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    for axis, name, title in zip(
        figure.subplots(1, 2), ("icl", "idg"), ("error on new tasks", "error on training tasks"), strict=True
    ):
        image = _errors(axis, dataset.transpose(up, across), name, across, up)
        axis.set(xlabel=_LABELS[across], ylabel=_LABELS[up])
        axis.set_title(title, fontsize=10)
        figure.colorbar(image, ax=axis, extend="max")
    return figure


def _errors(axis: Any, dataset: "xarray.Dataset", name: str, across: str, up: str) -> Any:
    x, y, nothing = dataset[across].values, dataset[up].values, 1 + float(dataset["noise"].max())
    values = np.minimum(dataset[name].values, 10 * nothing)
    image = axis.pcolormesh(x, y, values, cmap="cividis_r", vmin=0, vmax=2 * nothing, shading="nearest")
    if "noise" not in dataset[name].dims and values.min() < nothing < values.max():
        axis.contour(x, y, values, levels=[nothing], colors=[COLOURS[1]])
        axis.plot([], [], color=COLOURS[1], label="same as predicting zero")
        axis.legend(loc="upper right", fontsize=8)
    for place, line, values in ((across, axis.axvline, x), (up, axis.axhline, y)):
        if place in ("kappa", "tau") and values[0] < 1 < values[-1]:
            line(1, linestyle=":", color="white", linewidth=1.2)
    rows, columns = np.nonzero(~dataset["converged"].values)
    if len(rows):
        axis.plot(x[columns], y[rows], "x", color="black", markersize=4)
    return image
