"""The commands, found by where their files are; each module names those it adds."""

import sys
from pathlib import Path


def main() -> None:
    """Run the command line; where it cannot be loaded, say which extras the command needs, and what works without."""
    try:
        from attlas.cli.entry import main as run
    except ModuleNotFoundError as error:
        from attlas.extras import extra_of

        if extra_of(error.name or "") is None:
            raise
        _without(error.name or "", sys.argv[1:])
    else:
        run()


def _without(missing: str, arguments: list[str]) -> None:
    """Do what the core alone can do: give the versions, and say what works here. For all else, name the extras."""
    from attlas.cli.findings import findings, lines, versions, works
    from attlas.extras import COMMANDS
    from attlas.text import printable

    command = next(iter(arguments), "")
    if command == "--version":
        sys.stdout.write(f"{versions()}\n")
    elif command == "doctor" and len(arguments) == 1:
        found = findings(Path("attlas.db"))
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines(found)))
        sys.exit(0 if works(found) else 1)
    else:
        extras = ",".join(("lab", *COMMANDS.get(command, ())))
        what = f"`attlas {command}` needs" if command in COMMANDS else "the commands need"
        sys.exit(f'attlas: {what} {missing}: pip install "attlas[{extras}]", or "attlas[all]"')
