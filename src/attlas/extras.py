"""What comes with which extra of attlas, so that who lacks it is told its name."""

from importlib import util

EXTRAS = {
    "lab": ("typer", "rich", "dask", "distributed"),
    "report": ("matplotlib", "jinja2", "markupsafe", "latex2mathml"),
    "explorer": ("dash", "plotly", "flask", "waitress"),
    "export": ("pyarrow", "h5netcdf", "h5py"),
    "slurm": ("dask_jobqueue",),
}
COMMANDS = {"report": ("report",), "explore": ("explorer", "report"), "export": ("export",)}  # beside "lab"


def require(command: str) -> None:
    """Raise `ModuleNotFoundError` for the first module that a command needs and that is not there, before it works."""
    for extra in COMMANDS[command]:
        for module in EXTRAS[extra]:
            if not _found(module):
                advice = f'`attlas {command}` needs {module}: pip install "attlas[{extra}]"'
                raise ModuleNotFoundError(advice, name=module)


def _found(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def extra_of(module: str) -> str | None:
    """Return the extra that brings a module, or None if none does."""
    return next((name for name, modules in EXTRAS.items() if module.split(".", maxsplit=1)[0] in modules), None)
