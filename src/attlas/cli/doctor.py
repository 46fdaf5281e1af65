"""`attlas doctor`: what works here."""

import typer

from attlas.cli.findings import findings, lines, works
from attlas.cli.mounted import Table
from attlas.cli.options import STORE, Json, StorePath
from attlas.cli.printing import echo, print_json


def doctor(as_json: Json = False, store: StorePath = STORE) -> None:
    """Show what works here: versions, BLAS and threads, the store, extras, a browser, Slurm. Exit 1 if the core does not."""
    found = findings(store)
    if as_json:
        print_json({name: {"good": good, "found": text} for name, (good, text) in found.items()})
    else:
        for line in lines(found):
            echo(line)
    if not works(found):
        raise typer.Exit(1)


COMMANDS: Table = {"doctor": doctor}
