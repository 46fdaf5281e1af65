"""Commands found by where their files are: a module of this folder names them in a table, and is imported on first use.

``COMMANDS`` holds commands of `attlas` itself, ``PREDICT`` those of `attlas predict`: functions, or a `typer.Typer` of
several, by name. The commands of a door are in the file of its name. Such modules import typer and little else outside
their functions, so that `attlas --help` stays light.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

Table = dict[str, Callable[..., None] | typer.Typer]


class Mounted(TyperGroup):
    """A group of the commands that the modules of this folder name in ``table``."""

    table = "COMMANDS"

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        self.mount()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None."""
        self.mount()
        return super().get_command(ctx, cmd_name)

    def mount(self) -> None:
        """Take the commands of every module, once."""
        if self.commands:
            return
        for commands in tables(self.table).values():
            app = typer.Typer(rich_markup_mode=None)
            for name, command in commands.items():
                if isinstance(command, typer.Typer):
                    app.add_typer(command, name=name)
                else:
                    app.command(name)(command)
            self.commands.update(get_group(app).commands)


def tables(kind: str) -> dict[str, Table]:
    """Return the tables of this name, by the module that has it."""
    import attlas.cli as room

    names = [module.name for module in pkgutil.iter_modules(room.__path__)]
    modules = {name: importlib.import_module(f"{room.__name__}.{name}") for name in names}
    return {name: getattr(module, kind) for name, module in modules.items() if hasattr(module, kind)}
