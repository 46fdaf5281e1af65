"""Entry point: parses the command line; what a command needs is imported when it runs."""

import os
import sys
from typing import Annotated

import typer

from attlas.cli.findings import versions
from attlas.cli.mounted import Mounted
from attlas.cli.printing import echo
from attlas.errors import AttlasError
from attlas.extras import extra_of

app = typer.Typer(
    cls=Mounted,
    help="An executable atlas of what attention layers can learn.",
    epilog="Exit codes: 0 done; 1 a point failed or, with --strict, a claim does not hold; 2 usage; 3 damaged store.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line; every foreseen failure is one sentence and an exit code."""
    try:
        app()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        echo(f"attlas: {error.filename or 'the system'}: {error.strerror or error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:  # a command of an extra that is not installed
        extra = extra_of(error.name or "")
        if extra is None:
            raise
        echo(f'attlas: this needs {error.name}: pip install "attlas[{extra}]"', err=True)
        sys.exit(1)
    except AttlasError as error:
        echo(str(error) if error.exit_code > 100 else f"attlas: {error}", err=True)
        sys.exit(error.exit_code)


def _print_version(value: bool) -> None:
    if value:
        echo(versions())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the versions.")
    ] = False,
) -> None:
    """An executable atlas of what attention layers can learn."""
