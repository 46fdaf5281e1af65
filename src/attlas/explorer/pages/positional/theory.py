"""The theory behind the page of position and meaning: read from the table that comes with attlas, solved where it ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas import positional
from attlas.explorer.controls import State
from attlas.explorer.memoised import memoised
from attlas.positional.baseline import mean_attention
from attlas.positional.fixed_point import BRANCHES, JUMPS, least_order

Array = NDArray[np.float64]

_SOLVED = 4  # every which alpha of the table is solved for an encoding that is not in it


@dataclass(frozen=True)
class Curves:
    """Both minima over alpha, the switch, and the error of the best layer by place.

    Attributes
    ----------
    alpha : dict of array
        Places, by branch.
    loss, test, slope : dict of array
        By branch; NaN where there is no such solution. The slope is d loss/d alpha.
    sure : dict of array
        Whether a point is a minimum, and the theory exact there or nearly so.
    switch : float
        Where the losses cross; NaN if they do not here.
    baseline : float
    """

    alpha: dict[str, Array]
    loss: dict[str, Array]
    test: dict[str, Array]
    slope: dict[str, Array]
    sure: dict[str, NDArray[np.bool_]]
    switch: float
    baseline: float


def model_of(state: State) -> positional.Model:
    """Return the model of the sliders."""
    return positional.Model(float(state["mixture"]), float(state["encoding"]))


@memoised(256, "mixture", "encoding")
def curves(state: State) -> Curves:
    """Return both branches over the alphas of the table."""
    model, table = model_of(state), positional.table()
    places = table.sel(mixture=model.mixture, method="nearest")
    rows = {"semantic": places.sel(branch="semantic").isel(encoding=0)}
    nearest = places.sel(encoding=model.encoding, method="nearest")
    if abs(float(nearest["encoding"]) - model.encoding) < 1e-9:
        rows["positional"] = nearest.sel(branch="positional")
    else:
        alphas = table["alpha"].values[::_SOLVED]
        rows["positional"] = positional.curve(model, alphas, tol=1e-4).sel(branch="positional")
    alpha: dict[str, Array] = {}
    sure: dict[str, NDArray[np.bool_]] = {}
    found: dict[str, dict[str, Array]] = {name: {} for name in ("loss", "test", "envelope")}
    for branch in BRANCHES:
        own = rows[branch]
        order = np.abs(own["m" if branch == "positional" else "theta"].values)
        there = own["converged"].values.astype(bool) & (order > least_order(branch, 1.0, model.encoding))
        alpha[branch] = own["alpha"].values
        slope = own["slope"].values
        if branch == "semantic":  # the row is that of one encoding, and its stability goes as the square
            slope = slope * (model.encoding / float(own["encoding"])) ** 2
        sure[branch] = there & (slope < 1) & (own["jump_share"].values <= JUMPS) & (own["replica"].values < 1)
        for name, values in found.items():
            values[branch] = np.where(there, own[name].values, np.nan)
    switch = _crossing(alpha, found["loss"], found["envelope"])
    return Curves(alpha, found["loss"], found["test"], found["envelope"], sure, switch, positional.baseline(model))


def _crossing(alpha: dict[str, Array], loss: dict[str, Array], slope: dict[str, Array]) -> float:
    """Return where the positional loss rises above the semantic one, between cubics with the exact slopes."""
    from scipy.interpolate import CubicHermiteSpline

    curve = {}
    for branch in BRANCHES:
        there = np.isfinite(loss[branch]) & np.isfinite(slope[branch])
        if there.sum() < 2:
            return np.nan
        curve[branch] = (alpha[branch][there], loss[branch][there], slope[branch][there])
    low = max(own[0][0] for own in curve.values())
    high = min(own[0][-1] for own in curve.values())
    if low >= high:
        return np.nan
    x = np.linspace(low, high, 2001)
    place, meaning = (CubicHermiteSpline(*curve[branch])(x) for branch in BRANCHES)
    rises = np.flatnonzero((place[:-1] < meaning[:-1]) & (place[1:] >= meaning[1:]))
    if not len(rises):
        return np.nan
    i = int(rises[0])
    before, after = place[i] - meaning[i], place[i + 1] - meaning[i + 1]
    return float(x[i] - before * (x[i + 1] - x[i]) / (after - before))


@memoised(256, "alpha", "mixture", "encoding")
def here(state: State) -> dict[str, positional.FixedPoint]:
    """Return both branches at the settings of the sliders: a cell of the table, or the solver."""
    model = model_of(state)
    return {
        "positional": positional.tabulated(model, state["alpha"], "positional", throw=False),
        "semantic": positional.tabulated(model, state["alpha"], "semantic", throw=False),
    }


def teacher_attention(state: State) -> Array:
    """Return the mean attention of the teacher, which is also what the best layer by place has."""
    return mean_attention(model_of(state))
