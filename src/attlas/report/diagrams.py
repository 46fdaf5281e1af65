"""Pictures of grids of the theory: the error over samples and width, sequence length or weight decay."""

from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.claims.figure import COLOURS
from attlas.errors import InputError
from attlas.report.context_diagram import context_diagram

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_SAMPLES = "samples over d², alpha"


def diagram(dataset: "xarray.Dataset") -> "Figure":
    """Draw a dataset of `aim.phase_diagram`, `aim.trained_diagram` or, over two ranges, `context.curve`.

    Over (alpha, rho) or (alpha, tokens): the error V, with the threshold of perfect recovery as a line; channels that never
    recover have none. Over (alpha, decay): the test error and the rank of the trained matrix, with the best decay as a line.
    From `context.curve`: the errors on new and on training tasks. Points that are not converged are crossed out.

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.savefig(...)`` writes it.
    """
    from matplotlib.figure import Figure

    if "icl" in dataset:
        return context_diagram(dataset)
    if "decay" in dataset.dims and "best_decay" in dataset:
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        for axis, name, label in zip(
            figure.subplots(1, 2), ("mse", "rank"), ("test error", "rank over d"), strict=True
        ):
            _trained(figure, axis, dataset, name, label)
        return figure
    if "threshold" not in dataset or not {"rho", "tokens"} & set(dataset.dims):
        raise InputError(
            "a diagram is drawn from a dataset of aim.phase_diagram or aim.trained_diagram, or of context.curve"
        )
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    _recovery(figure, figure.add_subplot(), dataset)
    return figure


def _recovery(figure: Any, axis: Any, dataset: "xarray.Dataset") -> None:
    rows = "tokens" if "tokens" in dataset.dims else "rho"
    alphas, height, edge = (dataset[name].values for name in ("alpha", rows, "threshold"))
    figure.colorbar(_map(axis, dataset, "mse", rows, vmax=1), label="error of the query-key matrix, V")
    if rows == "tokens":  # a length is a whole number: a bar across its row
        inside = (edge >= alphas[0]) & (edge <= alphas[-1])
        axis.vlines(
            edge[inside], height[inside] - 0.5, height[inside] + 0.5, color=COLOURS[1], label="perfect recovery"
        )
        axis.set_yticks(height)
    else:
        inside = np.isfinite(edge)
        axis.plot(edge[inside], height[inside], color=COLOURS[1], label="perfect recovery")
        axis.set(xlim=(alphas[0], alphas[-1]), ylim=(height[0], height[-1]))
    axis.set(xlabel=_SAMPLES, ylabel="tokens, T" if rows == "tokens" else "width over d, rho")
    axis.set_title(f"rho = {dataset.attrs['rho']:g}" if rows == "tokens" else dataset.attrs["channel"], fontsize=10)
    if inside.any():
        axis.legend(loc="upper right", fontsize=9)


def _trained(figure: Any, axis: Any, dataset: "xarray.Dataset", name: str, label: str) -> None:
    alphas, decays, best = (dataset[which].values for which in ("alpha", "decay", "best_decay"))
    figure.colorbar(_map(axis, dataset, name, "decay"))
    axis.plot(alphas, np.where(best > 0, best, np.nan), color=COLOURS[1], label="best decay")
    axis.set(xlabel=_SAMPLES, ylabel="decay", yscale="log", title=label)
    axis.set(xlim=(alphas[0], alphas[-1]), ylim=(decays[0], decays[-1]))
    if np.any((best > decays[0]) & (best < decays[-1])):
        axis.legend(loc="upper right", fontsize=9)


def _map(axis: Any, dataset: "xarray.Dataset", name: str, rows: str, **limits: float) -> Any:
    """Draw one variable in colours, and a cross on every point that is not converged."""
    x, y, grid = dataset["alpha"].values, dataset[rows].values, dataset.transpose(rows, "alpha", ...)
    image = axis.pcolormesh(x, y, grid[name].values, cmap="cividis_r", vmin=0, **limits, shading="nearest")
    across, along = np.nonzero(~grid["converged"].values)
    if len(across):
        axis.plot(x[along], y[across], "x", color="black", markersize=4, label="not converged")
    return image
