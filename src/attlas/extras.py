"""What comes with which extra of attlas, so that who lacks it is told its name."""

EXTRAS = {
    "lab": ("typer", "rich", "dask", "distributed"),
    "report": ("matplotlib", "jinja2", "markupsafe", "latex2mathml"),
    "explorer": ("dash", "plotly", "flask", "waitress"),
    "export": ("pyarrow", "h5netcdf", "h5py"),
    "slurm": ("dask_jobqueue",),
}


def extra_of(module: str) -> str | None:
    """Return the extra that brings a module, or None if none does."""
    return next((name for name, modules in EXTRAS.items() if module.split(".", maxsplit=1)[0] in modules), None)
