"""Commands about results: write them to other formats, check the file that holds them."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.mounted import Table
from attlas.cli.options import STORE, Claims, Json, StorePath
from attlas.cli.printing import echo, print_json

store_app = typer.Typer(help="Check, repair, copy and merge stores.", no_args_is_help=True, rich_markup_mode=None)


def export(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="results.csv, results.parquet or results.nc")],
    claims: Claims = None,
    as_json: Json = False,
    store: StorePath = STORE,
) -> None:
    """Write results to CSV, Parquet or NetCDF, by the ending of FILE."""
    from attlas import store as room
    from attlas.claims import find

    names = [claim.id for claim in find(claims)] if claims else None
    count = room.export(room.read(store, names), target)
    files = [target] if target.exists() else sorted(target.parent.glob(f"{target.stem}.*-v*.nc"))
    if as_json:
        print_json(
            {"file": str(target), "results": count} | ({"files": list(map(str, files))} if files != [target] else {})
        )
    else:
        echo(f"{count} results written to {', '.join(map(str, files))}")


@store_app.command()
def check(as_json: Json = False, store: StorePath = STORE) -> None:
    """Verify every result in a store; exit 3 if any is damaged."""
    from attlas.store import check as examine

    health = examine(store)
    if as_json:
        print_json({"good": health.good, **vars(health)})
    else:
        for entry in health.damaged:
            note = " (an earlier copy of it is intact)" if entry["recoverable"] else ""
            echo(f"damaged: {entry['claim'] or 'a result'} {entry['key']}: {entry['why']}{note}")
        for line in health.structure:
            echo(f"damaged file: {line}")
        ending = (
            "" if health.good else "; `attlas store repair` keeps these, `attlas run` then computes the others again"
        )
        count = f"{len(health.damaged)} damaged" if health.good or health.damaged else "an unknown number lost"
        echo(f"{store}: {health.intact} results are intact, {count}{ending}")
    if not health.good:
        raise typer.Exit(3)


@store_app.command()
def repair(as_json: Json = False, store: StorePath = STORE) -> None:
    """Rebuild a damaged store from its intact results; the damaged file is set aside."""
    from attlas.store import repair as rebuild

    done = rebuild(store)
    if as_json:
        print_json({"file": str(store), "repaired": done})
    else:
        echo(done or f"{store}: every result is intact, nothing to repair")


@store_app.command()
def copy(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="A store, which a run may be writing to.")],
    target: Annotated[Path, typer.Argument(metavar="TO", help="The file of the copy, which must not exist.")],
    as_json: Json = False,
) -> None:
    """Write a consistent copy of a store, every result verified; `cp` would leave out what is in the log beside it."""
    from attlas.store import copy as write

    count = write(source, target)
    if as_json:
        print_json({"file": str(target), "results": count})
    else:
        echo(f"{count} results copied to {target}")


@store_app.command()
def merge(
    target: Annotated[Path, typer.Argument(metavar="STORE", help="The store that is added to.")],
    sources: Annotated[list[Path], typer.Argument(metavar="OTHER...", help="Stores whose results are added.")],
    as_json: Json = False,
) -> None:
    """Add the results of other stores, such as other machines', to one; every seal is checked first."""
    from attlas.store import merge as join

    found = join(target, sources)
    if as_json:
        print_json({"file": str(target), **vars(found)})
        return
    echo(f"{found.added} results added to {target}, {found.same} were there already")
    if found.differing:
        echo(
            f"attlas: {len(found.differing)} results differ in their bits (other machines or versions?);"
            f" those of {target} are kept",
            err=True,
        )


COMMANDS: Table = {"export": export, "store": store_app}
