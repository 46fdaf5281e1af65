"""`attlas predict positional`: whether the best layer attends by place or by meaning, and what it has learned."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.mounted import Table
from attlas.cli.predict import Csv, Json, grid_of, save, show
from attlas.cli.printing import echo
from attlas.errors import InputError

BRANCHES = ("positional", "semantic")  # as the door has them; importing it would make every --help wait
_NAMES = ("loss", "test", "train", "q", "m", "theta", "V", "slope", "jump_share")


def positional(
    mixture: Annotated[
        str, typer.Option("--mixture", help="Share of the teacher's attention by place, in [0, 1), or a range.")
    ] = "0.3",
    encoding: Annotated[
        str, typer.Option("--encoding", help="Strength of the student's positional encoding, or a range such as 2:5:4.")
    ] = "3",
    alpha: Annotated[str, typer.Option("--alpha", help="Samples over d, or a range such as 1:5:17.")] = "3",
    token_scale: Annotated[float, typer.Option("--token-scale", help="Standard deviation of the tokens.")] = 1.0,
    decay: Annotated[float, typer.Option("--decay", help="Weight decay, added to the sum over samples.")] = 0.5,
    tol: Annotated[float, typer.Option("--tol", help="Relative accuracy: 1e-4, 1e-6 or 1e-8.")] = 1e-6,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw both minima against alpha, with the switch, into FILE."),
    ] = None,
) -> None:
    """Place or meaning: both minima of a layer with positional encodings, and where the better one switches.

    Rows hold, for either minimum, the loss (objective over d), test and training error, norm q, position m, meaning theta;
    which of the two is lower ("better"); alpha_c, where they change places; and the test error of the best layer that goes
    by place alone ("baseline"). A status other than "exact" says what to beware of: "approximate" (replica
    symmetry is broken), "unstable" (a saddle, not a minimum), "none" (no such solution), "not converged". A drawing is
    solid where the theory is exact, dotted where it is approximate or unstable, and empty where nothing was found.
    """
    from attlas import positional as door

    grid = grid_of(as_json, as_csv, mixture=mixture, encoding=encoding, alpha=alpha)
    if plot is not None and len(grid["alpha"]) < 2:
        raise InputError("--plot draws curves over alpha: give a range, such as --alpha 1:5:17")
    models = [
        door.Model(share, strength, token_scale, decay) for share in grid["mixture"] for strength in grid["encoding"]
    ]
    curves = [(model, door.curve(model, grid["alpha"], tol=tol), _switch(model, tol)) for model in models]
    rows = [row for own in curves for row in _rows(*own)]
    if plot is not None:
        _draw(curves, plot)
    if plot is None and len(rows) > 1 and not as_json and not as_csv:
        for row in rows:
            echo(_line(row))
    else:
        show(rows, as_json, as_csv, plot, ())


def _line(row: dict[str, Any]) -> str:
    """Return a row in short: both losses, how far to trust each, and the switch."""
    parts = [f"{name}={row[name]:.6g}" for name in ("mixture", "encoding", "alpha")]
    for branch in BRANCHES:
        loss = row[f"loss_{branch}"]
        parts.append(f"loss_{branch}={math.nan if loss is None else loss:.6g} ({row[f'status_{branch}']})")
    alpha_c = row["alpha_c"]
    return "  ".join([*parts, f"alpha_c={math.nan if alpha_c is None else alpha_c:.6g}", f"better={row['better']}"])


def _switch(model: Any, tol: float) -> float | None:
    """Return alpha_c, or None where there is no switch."""
    from attlas import positional as door

    if model.encoding == 0:
        return None
    found = door.switch(model, tol=tol, throw=False)
    return found.value if found.converged else None


def _rows(model: Any, data: Any, alpha_c: float | None) -> list[dict[str, Any]]:
    rows = []
    for j, alpha in enumerate(data["alpha"].values):
        at = data.isel(alpha=j)
        row = {"alpha": float(alpha), "mixture": model.mixture, "encoding": model.encoding}
        for branch in BRANCHES:
            own = at.sel(branch=branch)
            row |= {f"{name}_{branch}": _number(own[name]) for name in _NAMES}
            row[f"status_{branch}"] = str(own["status"].values)
        row["better"] = _better(at)
        rows.append(row | {"alpha_c": alpha_c, "baseline": data.attrs["baseline"]})
    return rows


def _better(at: Any) -> str:
    """Return which branch has the lower loss of those that are there; "unknown" where one of them was not solved."""
    if not at["converged"].where(at["loss"].notnull(), True).all():
        return "unknown"
    there = [branch for branch in BRANCHES if at["present"].sel(branch=branch)]
    return min(there, key=lambda branch: float(at["loss"].sel(branch=branch)), default="none")


def _number(value: Any) -> float | None:
    return None if value.isnull() else float(value)


def _draw(curves: list[tuple[Any, Any, float | None]], target: Path) -> None:
    from attlas.claims.figure import COLOURS, THEORY, panels
    from attlas.claims.positional.kit import COLOUR

    figure, (left, right) = panels(2)
    several = len(curves) > 1
    for i, (model, given, alpha_c) in enumerate(curves):
        data = given.sortby("alpha")
        alphas = data["alpha"].values
        for branch in BRANCHES:
            own = data.sel(branch=branch)
            there = own["present"] & own["converged"]
            sure = own["status"].isin(["exact", "nearly exact"])
            which = f", omega = {model.mixture:g}, c = {model.encoding:g}" if several else ""
            thin = 1.2 if several and branch == "positional" else 2.0
            style: dict[str, Any] = {
                "color": COLOURS[i % len(COLOURS)] if several else COLOUR[branch],
                "linewidth": thin,
            }
            for axis, what in ((left, "loss"), (right, "test")):
                label = f"{branch}{which}" if axis is left else None
                axis.plot(alphas, own[what].where(there), linestyle=":", **style)
                axis.plot(alphas, own[what].where(there & sure), label=label, **style)
        line = THEORY | ({"color": COLOURS[i % len(COLOURS)]} if several else {})
        if alpha_c is not None and alphas[0] <= alpha_c <= alphas[-1]:
            for axis in (left, right):
                axis.axvline(alpha_c, **(line | {"linestyle": ":", "linewidth": 1}))
        right.axhline(data.attrs["baseline"], **(line | {"linestyle": "-.", "linewidth": 1}))
    left.set(xlabel="samples over d", ylabel="loss (dotted: approximate or unstable)", ylim=(0, None))
    right.set(xlabel="samples over d", ylabel="test error (dash-dotted: best by place)", ylim=(0, None))
    left.legend(frameon=False, fontsize=9)
    save(figure, target)


PREDICT: Table = {"positional": positional}
