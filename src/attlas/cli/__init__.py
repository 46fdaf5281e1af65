"""The commands, found by where their files are; each module names those it adds."""

import sys


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from attlas.cli.entry import main as run
    except ModuleNotFoundError as error:
        from attlas.extras import extra_of

        extra = extra_of(error.name or "")
        if extra is None:
            raise
        sys.exit(f'attlas: the commands need {error.name}: pip install "attlas[{extra}]", or "attlas[all]"')
    run()
