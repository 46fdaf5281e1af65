"""Commands that show the atlas: as a site on disk, as a page to play with."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.claims import rerun
from attlas.cli.mounted import Table
from attlas.cli.options import (
    STORE,
    Claims,
    Full,
    Json,
    SeedNumber,
    Seeds,
    StorePath,
    Sweep,
    existing,
    parse_grid,
    tier_of,
)
from attlas.cli.printing import print_json
from attlas.errors import InputError


def report(
    claims: Claims = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the site.")] = Path("site"),
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    settings: Sweep = None,
    seeds: Seeds = None,
) -> None:
    """Write the site: every claim with its verdict, figure and numbers. With claims and --set, a page for that sweep."""
    from attlas import lab
    from attlas.report import write, write_sweep

    tier, other = tier_of(full), tier_of(not full)
    existing(store)
    if bool(claims) != bool(settings or seeds):
        raise InputError(
            "name claims together with --set or --seeds, for a page of that sweep; or neither, for the site"
        )
    if claims:
        grid = parse_grid(settings or [])
        swept = lab.verdicts(claims, tier, store=store, seed=seed, grid=grid, seeds=seeds)
        pages = [write_sweep(e, out, tier, seed, rerun(e.claim.id, tier, seed, settings, seeds)) for e in swept]
        if as_json:
            print_json({"pages": [str(page) for page in pages]})
        for page in () if as_json else pages:
            typer.echo(f"The sweep is at {page.resolve().as_uri()}")
        return
    if not store.exists():
        typer.echo(f"attlas: no store {store}: the site shows the results that came with attlas", err=True)
    judged = lab.verdicts(None, tier, store=store, seed=seed, shipped=True, repeats=True)
    page = write(judged, out, tier, seed, other=lab.verdicts(None, other, store=store, seed=seed, shipped=True))
    if as_json:
        print_json({"page": str(page)})
    else:
        typer.echo(f"The atlas is at {page.resolve().as_uri()}")


def explore(
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Where to listen. Others than 127.0.0.1 let other machines in, without a password."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8050,
    store: StorePath = STORE,
    full: Full = False,
    seed: SeedNumber = 0,
) -> None:
    """Serve the page to play with, on this machine, until Ctrl-C."""
    from attlas.explorer import serve

    serve(store, host, port, tier_of(full), seed, typer.echo)


COMMANDS: Table = {"report": report, "explore": explore}
