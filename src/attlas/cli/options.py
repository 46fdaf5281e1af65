"""The options that commands share, and how what a person types becomes values."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from attlas.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
StorePath = Annotated[Path, typer.Option("--store", metavar="PATH", help="The file that holds the results.")]
SeedNumber = Annotated[
    int, typer.Option("--seed", min=0, help="Run number; runs with different numbers share no randomness.")
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Worker processes; all cores if not given.")]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="A running Dask scheduler.")
]
Full = Annotated[bool, typer.Option("--full/--quick", help="Paper scale, or under a minute a claim.")]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--sweep",
        metavar="NAME=VALUES",
        help="Sweep a setting: d=50,100 or rho=0.1:1:10. May be repeated.",
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds at each point, instead of the tier's.")]
Claims = Annotated[list[str] | None, typer.Argument(metavar="[CLAIM]...", help="Ids of claims; all if not given.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 unless every claim is supported.")]

STORE = Path("attlas.db")


class ExecutorName(StrEnum):
    """Where to run."""

    serial = "serial"
    processes = "processes"
    dask = "dask"
    slurm = "slurm"


LONGEST = 100_000


def existing(store: Path) -> Path:
    """Return a store to read from. One that is named must exist; without the usual one there are the shipped results."""
    from attlas.store import present

    present(store)  # refuses what can be none
    if store != STORE and not store.exists():
        raise InputError(f"{store}: there is no store here; `attlas run` makes one")
    return store


def tier_of(full: bool) -> Literal["quick", "full"]:
    """Return the tier that --full or --quick asks for."""
    return "full" if full else "quick"


def parse_grid(settings: list[str]) -> dict[str, list[Any]]:
    """Return {"d": [50, 100], ...} from ["d=50,100", ...] or ["d=50", "d=100", ...]; a range is start:stop:count."""
    grid: dict[str, list[Any]] = {}
    for text in settings:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier() or not values:
            raise InputError(f"--set {text!r}: write NAME=VALUE, NAME=V1,V2,... or NAME=START:STOP:COUNT")
        grid.setdefault(name, []).extend(parse_values(values, f"--set {text}"))
    return grid


def parse_values(text: str, where: str) -> list[Any]:
    """Return the values of "3", "0.5", "relu", of a list "2,3,6" or of an even range "0.01:0.25:64" (both ends included)."""
    if "," in text:
        return [value for part in text.split(",") for value in parse_values(part, where)]
    if ":" not in text:
        return [_number(text)]
    parts = [_number(part) for part in text.split(":")]
    if len(parts) != 3 or any(isinstance(part, str) for part in parts) or not isinstance(parts[2], int):
        raise InputError(f"{where}: a range is START:STOP:COUNT, such as 0.01:0.25:64; got {text!r}")
    start, stop, count = parts
    if count < 2:
        raise InputError(f"{where}: a range needs a count of at least 2; got {count}")
    if count > LONGEST:
        raise InputError(f"{where}: a range may have {LONGEST} values at most; got {count}")
    values = [start + (stop - start) * i / (count - 1) for i in range(count)]
    return [int(value) if float(value).is_integer() else value for value in values]


def parse_pairs(pairs: list[str]) -> dict[str, Any]:
    """Return {"queue": "long", ...} from ["queue=long", ...]; directives and prologue may be repeated."""
    found: dict[str, Any] = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--slurm {text!r}: write NAME=VALUE")
        if name in ("directives", "prologue"):
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def _number(text: str) -> Any:
    text = text.strip()
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if not math.isfinite(value):
            raise InputError(f"{text!r} is not a finite number")
        return value
    return text
