"""`attlas predict softmax | linear | hardmax`: the best error any learner can reach."""

from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.mounted import Table
from attlas.cli.predict import Csv, Json, grid_of, save, show, status_of
from attlas.errors import InputError

Tokens = Annotated[str, typer.Option("--tokens", help="Tokens in a sequence, or a range.")]
Rho = Annotated[str, typer.Option("--rho", help="Width of the teacher over d, or a range such as 0.1:2:20.")]
Alpha = Annotated[str, typer.Option("--alpha", help="Samples over d^2, or a range such as 0.01:0.25:64.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw mse against alpha into FILE.")]
Diagram = Annotated[
    Path | None,
    typer.Option(
        "--diagram", metavar="FILE", help="Draw mse over alpha and rho, or alpha and tokens, both ranges, into FILE."
    ),
]


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
    grid = grid_of(as_json, as_csv, tokens=tokens, rho=rho, alpha=alpha)
    if diagram is not None:
        _draw_diagram(channel, grid, diagram)
        if plot is None and not as_json and not as_csv:
            return
    rows = [row for T in grid["tokens"] for row in _rows(channel(T), grid["rho"], grid["alpha"])]
    if plot is not None:
        _draw(rows, plot)
    show(rows, as_json, as_csv, plot, ("tokens", "rho", "alpha", "mse", "output_mse"))


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
                    "explained": float(data["explained"].values[i, j]),
                    "output_mse": channel.bayes_error(V, 1 + float(rho)),
                    "threshold": threshold,
                    "status": status_of(bool(data["converged"].values[i, j])),
                }
            )
    return rows


def _draw_diagram(channel: Any, grid: dict[str, list[Any]], target: Path) -> None:
    from attlas import aim, report

    channels = [channel(T) for T in grid["tokens"]]
    if len(grid["alpha"]) < 2 or (len(channels) < 2) == (len(grid["rho"]) < 2):
        raise InputError(
            "--diagram needs two ranges, --alpha and either --rho or --tokens, such as --alpha 0.01:0.25:64 --rho 0.1:2:20"
        )
    found = aim.phase_diagram(channels if len(channels) > 1 else channels[0], grid["alpha"], grid["rho"])
    save(report.diagram(found), target)


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
    save(figure, target)


PREDICT: Table = {"softmax": softmax, "linear": linear, "hardmax": hardmax}
