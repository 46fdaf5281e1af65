"""`attlas predict`: the theory at a point or along a range, as text, JSON, CSV or a picture. Doors add what they predict."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.mounted import Mounted, Table, tables
from attlas.cli.options import parse_values
from attlas.cli.printing import echo, print_json
from attlas.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects, one for each point.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


class Predictions(Mounted):
    """What can be predicted, under the titles of the doors."""

    table = "PREDICT"

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of every door below its title."""
        from attlas.claims import door

        found = sorted(tables(self.table).items(), key=lambda item: door(item[0]).order)
        for key, names in found:
            with formatter.section(door(key).title):
                formatter.write_dl(
                    [(name, self.get_command(ctx, name).get_short_help_str(limit=100)) for name in names]
                )


COMMANDS: Table = {
    "predict": typer.Typer(
        cls=Predictions,
        help="Compute what theory predicts, at a point or along a range.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
}


def grid_of(as_json: bool, as_csv: bool, **texts: str) -> dict[str, list[Any]]:
    """Return the values of every option, numbers or ranges, or refuse what cannot be shown before it is computed."""
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other")
    grid = {name: parse_values(text, f"--{name}") for name, text in texts.items()}
    for name, values in grid.items():
        if any(isinstance(value, str) for value in values):
            raise InputError(f"--{name}: give a number or a range START:STOP:COUNT; got {values[0]!r}")
    return grid


def show(rows: list[dict[str, Any]], as_json: bool, as_csv: bool, plot: Path | None, short: tuple[str, ...]) -> None:
    """Print the rows: as JSON, as CSV, one in full, or several in short; nothing of several if they were drawn."""
    single = len(rows) == 1
    if as_json:
        print_json(rows)
    elif as_csv:
        text = io.StringIO()
        writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        echo(text.getvalue(), nl=False)
    elif single:
        for key, value in rows[0].items():
            echo(f"{key:10s} {'none' if value is None else value}")
    elif plot is None:
        for row in rows:
            echo("  ".join(f"{key}={_short(row[key])}" for key in short))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def status_of(converged: bool) -> str:
    """Return how a row says whether its numbers solve their equations."""
    from attlas.numerics import Status

    return (Status.CONVERGED if converged else Status.OUT_OF_STEPS).value


def save(figure: Any, target: Path) -> None:
    """Write a figure to a file, as .png if its name has no ending."""
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}")
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file, such as {target / 'curve.png'}")
    target = target if target.suffix else target.with_suffix(".png")
    try:
        figure.savefig(target, dpi=150)
    except ValueError as error:
        raise InputError(f"{target}: {error}") from error
    echo(f"drawn to {target}", err=True)
