"""Fixed points that come with attlas: both branches over alpha, mixture and encoding, for sliders that must not wait.

``studies/positional_table.py`` computes them, at the coarse quadrature (1e-4), for tokens of unit scale and decay 0.5. The
semantic branch does not depend on the encoding, but for its stability, which goes as the square of it.
"""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import real
from attlas.numerics import Status
from attlas.positional.evolution import state_evolution
from attlas.positional.fixed_point import BRANCHES, Branch, FixedPoint, check_branch
from attlas.positional.model import Model, check_model

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

FILE = "fixed_points.npz"
FIELDS = (
    "loss", "test", "train", "q", "m", "theta", "V", "envelope", "slope", "jump_share", "replica", "cosine", "residual",
    "rule_error", "diagonal",
)  # fmt: skip


def table() -> "xarray.Dataset":
    """Return the fixed points that come with attlas, as an xarray.Dataset over (branch, encoding, mixture, alpha).

    Variables as in `curve`, and ``diagonal``, the mean attention of a token to itself. The attributes ``token_scale`` and
    ``decay`` say for which models.

    Examples
    --------
    >>> from attlas import positional
    >>> dict(positional.table().sizes)
    {'branch': 2, 'encoding': 9, 'mixture': 8, 'alpha': 36}
    """
    import xarray

    held = _held()
    shape = (len(held["encoding"]), len(held["mixture"]), len(held["alpha"]))
    data = {}
    for i, name in enumerate(FIELDS):
        semantic = np.broadcast_to(held["semantic"][i], shape)
        if name == "slope":
            semantic = semantic * held["encoding"][:, None, None] ** 2
        data[name] = (("branch", "encoding", "mixture", "alpha"), np.stack([held["positional"][i], semantic]))
    settled = np.stack([held["positional_settled"], np.broadcast_to(held["semantic_settled"], shape)])
    return xarray.Dataset(
        data | {"converged": (("branch", "encoding", "mixture", "alpha"), settled)},
        {"branch": list(BRANCHES)} | {name: held[name] for name in ("encoding", "mixture", "alpha")},
        {"token_scale": float(held["token_scale"]), "decay": float(held["decay"])},
    )


def tabulated(model: Model, alpha: float, branch: Branch, *, tol: float = 1e-4, throw: bool = True) -> FixedPoint:
    """Return a fixed point from the table if it is there, at its accuracy of 1e-4, else from the solver.

    Parameters as in `state_evolution`. With a smaller `tol` the solver runs, from the cell of the table if there is one.

    Examples
    --------
    >>> from attlas import positional
    >>> round(positional.tabulated(positional.Model(mixture=0.3, encoding=3.0), alpha=4, branch="semantic").loss, 3)
    0.122
    """
    alpha, tol = real(alpha, "alpha", above=0), real(tol, "tol", above=0)
    check_branch(branch)
    check_model(model)
    cell = _cell(model, alpha, branch)
    if cell is None or tol < 1e-4 * (1 - 1e-9) or not cell.converged:
        start = cell if cell is not None and cell.converged and cell.mechanism == branch else None
        return state_evolution(model, alpha, branch, tol=tol, start=start, throw=throw)
    return cell


def _cell(model: Model, alpha: float, branch: Branch) -> FixedPoint | None:
    held = _held()
    same = Model(model.mixture, model.encoding, float(held["token_scale"]), float(held["decay"]))
    places = [_place(held[name], value) for name, value in (("mixture", model.mixture), ("alpha", alpha))]
    c = 0 if branch == "semantic" else _place(held["encoding"], model.encoding)
    if model != same or c is None or None in places:
        return None
    at = (*places,) if branch == "semantic" else (c, *places)
    values = {name: float(held[branch][(i, *at)]) for i, name in enumerate(FIELDS)}
    status = Status.CONVERGED if held[f"{branch}_settled"][at] else Status.OUT_OF_STEPS
    loss, residual, diagonal = (values.pop(name) for name in ("loss", "residual", "diagonal"))
    if branch == "semantic":
        values["slope"] *= model.encoding**2
    attention = np.array([[diagonal, 1 - diagonal], [1 - diagonal, diagonal]])
    return FixedPoint(
        loss,
        status,
        residual,
        0,
        np.empty((0, 3)),
        attention=attention,
        branch=branch,
        alpha=alpha,
        token_scale=model.token_scale,
        encoding=model.encoding,
        **values,
    )


def _place(axis: Array, value: float) -> int | None:
    found = np.flatnonzero(np.abs(axis - value) < 1e-9)
    return int(found[0]) if len(found) else None


@cache
def _held() -> dict[str, NDArray[np.float64]]:
    with resources.files(__package__).joinpath(FILE).open("rb") as file, np.load(file, allow_pickle=False) as held:
        return {name: held[name].astype(bool if name.endswith("settled") else float) for name in held.files}
