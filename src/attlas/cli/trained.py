"""`attlas predict trained`: what training with weight decay reaches."""

from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.aim import Alpha, Rho, Tokens
from attlas.cli.mounted import Table
from attlas.cli.predict import Csv, Json, grid_of, save, show, status_of
from attlas.errors import InputError


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
    grid = grid_of(as_json, as_csv, tokens=tokens, rho=rho, alpha=alpha, decay=decay)
    channels = [aim.Softmax(T) if channel == "softmax" else aim.Linear(T, noise) for T in grid["tokens"]]
    if diagram is not None:
        if len(channels) > 1 or len(grid["rho"]) > 1:
            raise InputError("--diagram is over alpha and decay: give one --tokens and one --rho")
        if len(grid["alpha"]) < 2 or len(grid["decay"]) < 2:
            raise InputError("--diagram needs two ranges, such as --alpha 0.01:0.25:64 --decay 0.001:1:20")
        from attlas import report

        save(report.diagram(aim.trained_diagram(channels[0], grid["alpha"], grid["rho"][0], grid["decay"])), diagram)
        if plot is None and not as_json and not as_csv:
            return
    rows = [row for c in channels for r in grid["rho"] for row in _rows(c, r, grid["alpha"], grid["decay"])]
    if plot is not None:
        _draw(rows, plot)
    show(rows, as_json, as_csv, plot, ("tokens", "rho", "alpha", "decay", "mse", "rank", "bayes"))


def _rows(channel: Any, rho: float, alphas: list[float], decays: list[float]) -> list[dict[str, Any]]:
    from attlas import aim

    data = aim.trained_curve(channel, alphas, rho, decays)
    bayes = aim.curve(channel, alphas, rho)["mse"].values[0]

    names = ("mse", "training", "rank", "trace", "overlap")
    return [
        {"alpha": alpha, "rho": rho, "tokens": channel.tokens, "decay": decay}
        | {name: float(data[name].values[i, j]) for name in names}
        | {"bayes": float(bayes[j]), "status": status_of(bool(data["converged"].values[i, j]))}
        for i, decay in enumerate(decays)
        for j, alpha in enumerate(alphas)
    ]


def _draw(rows: list[dict[str, Any]], target: Path) -> None:
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
    save(figure, target)


PREDICT: Table = {"trained": trained}
