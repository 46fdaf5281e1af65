"""`attlas predict`: the theory at a point or along a range, as text, JSON, CSV or a picture."""

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.options import parse_values
from attlas.errors import InputError

predict_app = typer.Typer(
    help="Predict the Bayes-optimal error of learning an attention layer, and what training reaches.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Tokens = Annotated[str, typer.Option("--tokens", help="Tokens in a sequence, or a range.")]
Rho = Annotated[str, typer.Option("--rho", help="Width of the teacher over d, or a range such as 0.1:2:20.")]
Alpha = Annotated[str, typer.Option("--alpha", help="Samples over d^2, or a range such as 0.01:0.25:64.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: one object, or a list for ranges.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw mse against alpha into FILE.")]
Diagram = Annotated[
    Path | None,
    typer.Option(
        "--diagram", metavar="FILE", help="Draw mse over alpha and rho, or alpha and tokens, both ranges, into FILE."
    ),
]


@predict_app.command()
def softmax(
    tokens: Tokens = "2",
    rho: Rho = "0.5",
    alpha: Alpha = "0.1",
    beta: Annotated[float, typer.Option("--beta", help="Inverse temperature.")] = 1.0,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
    diagram: Diagram = None,
) -> None:
    """Softmax attention, without noise."""
    from attlas import aim

    _predict(lambda T: aim.Softmax(T, beta), tokens, rho, alpha, as_json, as_csv, plot, diagram)


@predict_app.command()
def linear(
    tokens: Tokens = "1",
    rho: Rho = "0.5",
    alpha: Alpha = "0.1",
    noise: Annotated[float, typer.Option("--noise", help="Variance of the noise on each index.")] = 0.0,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
    diagram: Diagram = None,
) -> None:
    """The indices themselves, with noise; one token is a quadratic network."""
    from attlas import aim

    _predict(lambda T: aim.Linear(T, noise), tokens, rho, alpha, as_json, as_csv, plot, diagram)


@predict_app.command()
def hardmax(
    tokens: Tokens = "2",
    rho: Rho = "0.5",
    alpha: Alpha = "0.1",
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
    diagram: Diagram = None,
) -> None:
    """Hardmax attention: the largest index of each row."""
    from attlas import aim

    _predict(aim.Hardmax, tokens, rho, alpha, as_json, as_csv, plot, diagram)


@predict_app.command()
def trained(
    channel: Annotated[str, typer.Option("--channel", help="softmax or linear.")] = "softmax",
    tokens: Tokens = "2",
    rho: Rho = "0.5",
    alpha: Alpha = "0.1",
    decay: Annotated[
        str, typer.Option("--decay", help="Weight decay, or a range such as 0.001:1:20; 0 is its limit.")
    ] = "0.01",
    noise: Annotated[float, typer.Option("--noise", help="Variance of the noise on each index (linear).")] = 0.0,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw error and rank against alpha, beside Bayes.")
    ] = None,
    diagram: Annotated[
        Path | None,
        typer.Option("--diagram", metavar="FILE", help="Draw error and rank over alpha and decay, both ranges."),
    ] = None,
) -> None:
    """What training with weight decay reaches: test and training error, rank, trace, beside the Bayes error.

    The objective is the sum over samples of (1/4) ||indices - those of the teacher||^2, plus decay d Tr S.
    """
    from attlas import aim

    if channel not in ("softmax", "linear"):
        raise InputError(f"--channel must be softmax or linear; the theory is derived for no other; got {channel!r}")
    if channel == "softmax" and noise:
        raise InputError("--noise is for --channel linear; softmax outputs have none")
    grid = _grid(as_json, as_csv, tokens=tokens, rho=rho, alpha=alpha, decay=decay)
    channels = [aim.Softmax(T) if channel == "softmax" else aim.Linear(T, noise) for T in grid["tokens"]]
    if diagram is not None:
        if len(channels) > 1 or len(grid["rho"]) > 1:
            raise InputError("--diagram is over alpha and decay: give one --tokens and one --rho")
        _save(aim.trained_diagram(channels[0], grid["alpha"], grid["decay"], grid["rho"][0]), diagram)
        if plot is None and not as_json and not as_csv:
            return
    rows = [row for c in channels for r in grid["rho"] for row in _trained_rows(c, r, grid["alpha"], grid["decay"])]
    if plot is not None:
        _draw_trained(rows, plot)
    _show(rows, as_json, as_csv, plot, ("tokens", "rho", "alpha", "decay", "mse", "rank", "bayes"))


def _trained_rows(channel: Any, rho: float, alphas: list[float], decays: list[float]) -> list[dict[str, Any]]:
    from attlas import aim

    data = aim.trained_curve(channel, alphas, decays, rho)
    bayes = aim.curve(channel, alphas, rho)["mse"].values[0]
    names = ("mse", "training", "rank", "trace", "overlap")
    return [
        {"alpha": alpha, "rho": rho, "tokens": channel.tokens, "decay": decay}
        | {name: float(data[name].values[i, j]) for name in names}
        | {"bayes": float(bayes[j]), "status": _solved(float(data["residual"].values[i, j]))}
        for i, decay in enumerate(decays)
        for j, alpha in enumerate(alphas)
    ]


def _solved(residual: float) -> str:
    from attlas.aim.trained import RESIDUAL
    from attlas.numerics import Status

    return (Status.CONVERGED if residual < RESIDUAL else Status.OUT_OF_STEPS).value


def _draw_trained(rows: list[dict[str, Any]], target: Path) -> None:
    from attlas.claims.figure import COLOURS, THEORY, panels

    figure, (left, right) = panels(2)
    curves = list(dict.fromkeys((row["tokens"], row["rho"], row["decay"]) for row in rows))
    tasks = list(dict.fromkeys(curve[:2] for curve in curves))
    several = len(tasks) > 1
    for i, curve in enumerate(curves):
        mine = [row for row in rows if (row["tokens"], row["rho"], row["decay"]) == curve]
        alphas, colour = [row["alpha"] for row in mine], COLOURS[i % len(COLOURS)]
        which = f", T = {curve[0]}, rho = {curve[1]:g}" if several else ""
        left.plot(alphas, [row["mse"] for row in mine], color=colour, label=f"decay {curve[2]:.3g}{which}")
        right.plot(alphas, [row["rank"] for row in mine], color=colour)
        if curve[:2] in tasks:
            tasks.remove(curve[:2])
            style = {"color": colour} if several else {"color": THEORY["color"]}
            left.plot(alphas, [row["bayes"] for row in mine], linestyle="--", label=f"Bayes{which}", **style)
    left.set(xlabel="samples over d²", ylabel="error of the query-key matrix", ylim=(0, None))
    right.set(xlabel="samples over d²", ylabel="rank over d", ylim=(0, 1))
    left.legend(frameon=False, fontsize=9)
    _save(figure, target)


def _grid(as_json: bool, as_csv: bool, **texts: str) -> dict[str, list[Any]]:
    """Return the values of every option, numbers or ranges, or refuse what cannot be shown before it is computed."""
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other")
    grid = {name: parse_values(text, f"--{name}") for name, text in texts.items()}
    for name, values in grid.items():
        if any(isinstance(value, str) for value in values):
            raise InputError(f"--{name}: give a number or a range START:STOP:COUNT; got {values[0]!r}")
    return grid


def _show(rows: list[dict[str, Any]], as_json: bool, as_csv: bool, plot: Path | None, short: tuple[str, ...]) -> None:
    """Print the rows: as JSON, as CSV, one in full, or several in short; nothing of several if they were drawn."""
    single = len(rows) == 1
    if as_json:
        typer.echo(json.dumps(rows[0] if single else rows, indent=2))
    elif as_csv:
        text = io.StringIO()
        writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        typer.echo(text.getvalue(), nl=False)
    elif single:
        for key, value in rows[0].items():
            typer.echo(f"{key:10s} {'none' if value is None else value}")
    elif plot is None:
        for row in rows:
            typer.echo("  ".join(f"{key}={row[key]:.6g}" for key in short))


def _predict(
    channel: Any,
    tokens: str,
    rho: str,
    alpha: str,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
    diagram: Path | None,
) -> None:
    """Compute every combination and show it."""
    grid = _grid(as_json, as_csv, tokens=tokens, rho=rho, alpha=alpha)
    if diagram is not None:
        _draw_diagram(channel, grid, diagram)
        if plot is None and not as_json and not as_csv:
            return
    rows = [row for T in grid["tokens"] for row in _rows(channel(T), grid["rho"], grid["alpha"])]
    if plot is not None:
        _draw(rows, plot)
    _show(rows, as_json, as_csv, plot, ("tokens", "rho", "alpha", "mse", "output_mse"))


def _rows(channel: Any, rhos: list[float], alphas: list[float]) -> list[dict[str, Any]]:
    from attlas import aim

    data = aim.curve(channel, alphas, rhos)
    rows = []
    for i, rho in enumerate(rhos):
        threshold = aim.recovery_threshold(channel, float(rho))
        for j, alpha in enumerate(alphas):
            V = float(data["mse"].values[i, j])
            rows.append(
                {
                    "alpha": alpha,
                    "rho": rho,
                    "tokens": channel.tokens,
                    "mse": V,
                    "overlap": float(data["overlap"].values[i, j]),
                    "output_mse": channel.bayes_error(V, 1 + float(rho)),
                    "threshold": threshold,
                    "status": _status(channel, V, float(alpha), float(rho)),
                }
            )
    return rows


def _status(channel: Any, V: float, alpha: float, rho: float) -> str:
    """Return whether V is a fixed point of the state evolution, by putting it in."""
    from attlas import aim
    from attlas.numerics import Status

    if V == 0 or alpha == 0:
        return Status.CONVERGED.value
    image = float(aim.mmse(1 / (2 * alpha * channel.information(V, 1 + rho)), rho))
    return (Status.CONVERGED if abs(image - V) < 1e-8 else Status.OUT_OF_STEPS).value


def _draw_diagram(channel: Any, grid: dict[str, list[Any]], target: Path) -> None:
    from attlas import aim

    channels = [channel(T) for T in grid["tokens"]]
    _save(aim.phase_diagram(channels if len(channels) > 1 else channels[0], grid["alpha"], grid["rho"]), target)


def _draw(rows: list[dict[str, Any]], target: Path) -> None:
    from attlas.claims.figure import COLOURS, THEORY, panels

    figure, (axis,) = panels(1, width=6)
    curves = sorted({(row["tokens"], row["rho"]) for row in rows})
    for i, (T, rho) in enumerate(curves):
        mine = [row for row in rows if (row["tokens"], row["rho"]) == (T, rho)]
        colour = COLOURS[i % len(COLOURS)]
        axis.plot([r["alpha"] for r in mine], [r["mse"] for r in mine], color=colour, label=f"T = {T}, rho = {rho:g}")
        if mine[0]["threshold"] is not None and mine[0]["threshold"] <= max(r["alpha"] for r in mine):
            axis.axvline(mine[0]["threshold"], linestyle=":", **(THEORY | {"color": colour}))
    axis.set(xlabel="samples over d²", ylabel="error of the query-key matrix, V", ylim=(0, None))
    axis.legend(frameon=False, fontsize=9)
    _save(figure, target)


def _save(figure: Any, target: Path) -> None:
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}")
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file, such as {target / 'curve.png'}")
    target = target if target.suffix else target.with_suffix(".png")
    try:
        figure.savefig(target, dpi=150)
    except ValueError as error:
        raise InputError(f"{target}: {error}") from error
    typer.echo(f"drawn to {target}", err=True)
