"""`attlas predict features`: the test error of random-feature attention, from theory alone."""

from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.mounted import Table
from attlas.cli.options import parse_values
from attlas.cli.predict import Csv, Json, grid_of, save, show, status_of
from attlas.cli.printing import echo
from attlas.errors import InputError


def features(
    target: Annotated[
        str, typer.Option("--target", help="query2, keys2, corr1, scorr1 (rotated), wcorr11 (weighted), or several.")
    ] = "corr1",
    d: Annotated[str, typer.Option("--d", help="Dimension of a token, or several.")] = "16",
    keys: Annotated[int | None, typer.Option("--keys", min=1, help="Keys in a sequence; d if not given.")] = None,
    n: Annotated[
        str, typer.Option("--n", help="Samples, or a range such as 100:8000:30, evenly spaced in logarithms.")
    ] = "1000",
    heads: Annotated[str, typer.Option("--heads", help="Number of heads, or several; 'infinite'.")] = "infinite",
    bias: Annotated[str, typer.Option("--bias", help="Strength of the query-key bias, or several.")] = "0",
    scoring: Annotated[str, typer.Option("--scoring", help="relu, exp, sigmoid, erf, tanh or relu2.")] = "relu",
    positions: Annotated[float, typer.Option("--positions", help="Weight of a position code on the keys.")] = 0.0,
    learner: Annotated[str, typer.Option("--learner", help="attention, or network.")] = "attention",
    alpha: Annotated[
        str, typer.Option("--alpha", help="Penalty relative to the trace of the kernel, or best.")
    ] = "best",
    noise: Annotated[float, typer.Option("--noise", help="Label noise over the variance of the target.")] = 0.0,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the error against n into FILE.")
    ] = None,
) -> None:
    """Random-feature attention on the sphere: test error over variance (a constant predictor scores 1)."""
    import numpy as np

    from attlas.features import theory

    grid = grid_of(as_json, as_csv, d=d, n=n, bias=bias)
    if ":" in n and min(grid["n"]) > 0:  # learning curves go over decades
        grid["n"] = np.geomspace(grid["n"][0], grid["n"][-1], len(grid["n"])).round(6).tolist()
    counts = [_heads(value) for value in parse_values(heads, "--heads")]
    names = [name.strip() for name in target.split(",")]
    penalty = alpha if alpha == "best" else _number(alpha)
    rows = []
    for dimension in grid["d"]:
        for strength in grid["bias"]:
            learned = theory(
                dimension,
                dimension if keys is None else keys,
                float(strength),
                scoring,
                positions=positions,
                learner=learner,  # type: ignore[arg-type]
            )
            for count in counts:
                found = learned.curve(names, grid["n"], heads=count, alpha=penalty, noise=noise)
                rows += _rows(found, learned, count)
    outside = list(dict.fromkeys(row.pop("outside") for row in rows))
    for sentence in filter(None, outside):
        echo(f"outside the theory: {sentence}", err=True)
    if plot is not None:
        _draw(rows, plot)
    varied = [name for name in ("target", "heads") if len({row[name] for row in rows}) > 1]
    show(rows, as_json, as_csv, plot, (*varied, "d", "bias", "n", "error", "alpha", "deviation"))


def _rows(found: Any, learned: Any, count: Any) -> list[dict[str, Any]]:
    rows = []
    for t, name in enumerate(found.target.values):
        for k, n in enumerate(found.n.values):
            at = found.isel(target=t, n=k)
            rows.append(
                {
                    "target": str(name),
                    "d": learned.d,
                    "keys": learned.keys,
                    "bias": learned.bias,
                    "heads": count,
                    "scoring": str(learned.scoring),
                    "positions": learned.positions,
                    "learner": learned.learner,
                    "noise": float(found.attrs["noise"]),
                    "n": float(n),
                    "error": float(at.error),
                    "mse": float(at.mse),
                    "alpha": float(at.alpha),
                    "ridge": float(at.ridge),
                    "freedom": float(at.freedom),
                    "deviation": float(found.deviation[k]),
                    "status": status_of(bool(at.converged)),
                    "outside": found.attrs["outside"],
                }
            )
    return rows


def _draw(rows: list[dict[str, Any]], target: Path) -> None:
    from attlas.claims.figure import COLOURS, panels

    figure, (axis,) = panels(1, width=6)
    names = ("target", "d", "keys", "bias", "heads")
    curves = list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))
    varied = [k for k in range(len(names)) if len({curve[k] for curve in curves}) > 1]
    for i, curve in enumerate(curves):
        mine = [row for row in rows if tuple(row[name] for name in names) == curve]
        label = ", ".join(str(curve[k]) if k == 0 else f"{names[k]} {curve[k]}" for k in varied) or str(curve[0])
        axis.plot(
            [row["n"] for row in mine], [row["error"] for row in mine], color=COLOURS[i % len(COLOURS)], label=label
        )
    axis.axhline(1, linestyle=":", color="grey", linewidth=1)
    axis.set(xlabel="samples n", ylabel="test error over variance", xscale="log", yscale="log")
    axis.legend(frameon=False, fontsize=9)
    save(figure, target)


def _heads(value: Any) -> Any:
    if isinstance(value, str) and value != "infinite":
        raise InputError(f"--heads: give a number or 'infinite'; got {value!r}")
    return value


def _number(text: str) -> float:
    value, *more = parse_values(text, "--alpha")
    if isinstance(value, str) or more:
        raise InputError(f"--alpha: give one positive number or 'best'; got {text!r}")
    return float(value)


PREDICT: Table = {"features": features}
