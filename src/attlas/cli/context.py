"""`attlas predict context`: what a trained layer of linear attention reaches on new and on training tasks."""

from math import inf, isfinite, nan
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.mounted import Table
from attlas.cli.predict import Csv, Json, grid_of, save, show, status_of
from attlas.errors import InputError

_NAMES = ("alpha", "kappa", "tau", "ridge", "noise")
_LABELS = {
    "alpha": "examples of a context over d, alpha",
    "kappa": "training tasks over d, kappa",
    "tau": "training sequences over d², tau",
    "ridge": "ridge",
    "noise": "label noise",
}


def context(
    alpha: Annotated[str, typer.Option("--alpha", help="Examples of a context over d, or a range 0.5:10:40.")] = "2",
    kappa: Annotated[str, typer.Option("--kappa", help="Training tasks over d, a range, or inf.")] = "1",
    tau: Annotated[str, typer.Option("--tau", help="Training sequences over d^2, a range, or inf.")] = "2",
    ridge: Annotated[str, typer.Option("--ridge", help="Ridge, a range, or best (for new tasks).")] = "0.05",
    noise: Annotated[str, typer.Option("--noise", help="Variance of the label noise, or a range.")] = "0.1",
    test_alpha: Annotated[
        float | None, typer.Option("--test-alpha", help="Examples of a test context over d, if different.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw both errors along the longest range, with Bayes."),
    ] = None,
    diagram: Annotated[
        Path | None,
        typer.Option("--diagram", metavar="FILE", help="Draw both errors over two ranges, such as --kappa and --tau."),
    ] = None,
) -> None:
    """Linear attention in context: error on new tasks (icl), on training tasks (idg), training error, beside Bayes.

    Ridge regression with penalty (n/d) ridge |Gamma|^2 beside the sum of squares. Predicting zero costs 1 + noise.
    """
    from attlas import context as door

    grid = _grid(as_json, as_csv, alpha=alpha, kappa=kappa, tau=tau, ridge=ridge, noise=noise)
    ranges = [name for name in _NAMES if grid[name] != "best" and len(grid[name]) > 1]
    if diagram is not None and (len(ranges) != 2 or any(inf in grid[name] for name in ranges)):
        raise InputError("--diagram needs two ranges of finite values, such as --kappa 0.1:4:40 --tau 0.1:4:40")
    if plot is not None and not ranges:
        raise InputError("--plot needs a range, such as --kappa 0.1:4:40")
    if not ranges and grid["ridge"] != "best":
        door.theory(*(grid[name][0] for name in _NAMES), test_alpha=test_alpha)  # one point says why there is no number
    data = door.curve(**{name: grid[name] for name in _NAMES}, test_alpha=test_alpha)
    if diagram is not None:
        from attlas import report

        save(report.diagram(data.squeeze()), diagram)
        if plot is None and not as_json and not as_csv:
            return
    rows = _rows(data, test_alpha)
    if plot is not None:
        _draw(rows, sorted(ranges, key=lambda name: -len(grid[name])), plot)
    if as_json:  # JSON knows no infinity
        rows = [{name: "inf" if value == inf else value for name, value in row.items()} for row in rows]
    show(rows, as_json, as_csv, plot, (*_NAMES, "icl", "idg", "bayes"))


def _grid(as_json: bool, as_csv: bool, **texts: str) -> dict[str, Any]:
    """Return the values of every option; kappa and tau may be infinite, and the ridge "best"."""
    words: dict[tuple[str, str], Any] = {("kappa", "inf"): [inf], ("tau", "inf"): [inf], ("ridge", "best"): "best"}
    special = {name: words[name, text] for name, text in texts.items() if (name, text) in words}
    return grid_of(as_json, as_csv, **{name: text for name, text in texts.items() if name not in special}) | special


def _rows(data: Any, test_alpha: float | None) -> list[dict[str, Any]]:
    from attlas import context as door

    tuned = "best_ridge" in data
    rows = []
    for place in data["icl"].stack(row=data["icl"].dims)["row"].values:
        at = dict(zip(data["icl"].dims, place, strict=True))
        here = data.sel(at)
        row = {name: float(here["best_ridge"] if tuned and name == "ridge" else here[name]) for name in _NAMES}
        row |= {name: float(here[name]) for name in ("icl", "idg", "training", "effective")}
        row["bayes"], known = row["noise"], True  # contexts without end tell the task
        if test_alpha != inf:
            found = door.ridge_in_context(row["alpha"] if test_alpha is None else test_alpha, row["noise"])
            row["bayes"], known = found.value, found.converged
        rows.append(row | {"status": status_of(bool(here["converged"]) and known)})
    return rows


def _draw(rows: list[dict[str, Any]], ranges: list[str], target: Path) -> None:
    from attlas.claims.figure import COLOURS, THEORY, panels

    figure, (axis,) = panels(1, width=6.4)
    x, *others = ranges
    curves = list(dict.fromkeys(tuple(row[name] for name in others) for row in rows))
    for i, curve in enumerate(curves):
        mine = [row for row in rows if tuple(row[name] for name in others) == curve]
        places, colour = [row[x] for row in mine], COLOURS[i % len(COLOURS)]
        which = ", ".join(f"{name} {value:.3g}" for name, value in zip(others, curve, strict=True))
        which = f", {which}" if which else ""
        for name, label, style in (("icl", "new tasks", "-"), ("idg", "training tasks", "--")):
            values = [row[name] if isfinite(row[name]) else nan for row in mine]
            axis.plot(places, values, linestyle=style, color=colour, label=f"{label}{which}")
        if i == 0 or "alpha" in others or "noise" in others:
            axis.plot(places, [row["bayes"] for row in mine], linestyle=":", **(THEORY | {"color": colour}))
    axis.plot([], [], linestyle=":", color=THEORY["color"], label="Bayes, new tasks")
    top = 2 * max(1 + row["noise"] for row in rows)
    highest = max((row[name] for row in rows for name in ("icl", "idg") if isfinite(row[name])), default=top)
    axis.set(xlabel=_LABELS[x], ylabel="error", ylim=(0, min(1.05 * highest, 2 * top)))
    axis.legend(frameon=False, fontsize=9)
    save(figure, target)


PREDICT: Table = {"context": context}
