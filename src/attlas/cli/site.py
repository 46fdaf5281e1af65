"""Commands that show the atlas: as a site on disk, as a page to play with."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

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
    Workers,
    existing,
    parse_grid,
    tier_of,
)
from attlas.cli.printing import echo, print_json
from attlas.errors import InputError
from attlas.extras import require


def report(
    claims: Claims = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the site.")] = Path("site"),
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    settings: Sweep = None,
    seeds: Seeds = None,
    address: Annotated[
        str,
        typer.Option(
            "--address", metavar="URL", help="Where the site will be, for cards that other sites show of a link."
        ),
    ] = "",
    workers: Workers = None,
) -> None:
    """Write the site: every claim with its verdict, figure and numbers. With claims and --set, a page for that sweep."""
    require("report")  # before anything is judged, which takes a while
    from attlas import lab
    from attlas.report import write, write_sweep
    from attlas.report.site import base

    tier, other = tier_of(full), tier_of(not full)
    existing(store)
    if bool(claims) != bool(settings or seeds):
        raise InputError(
            "name claims together with --set or --seeds, for a page of that sweep; or neither, for the site"
        )
    if claims and address:
        raise InputError("--address is of the whole site; leave it out for the page of a sweep")
    base(address)  # refused before anything is judged
    if claims:
        grid = parse_grid(settings or [])
        swept = lab.verdicts(claims, tier, store=store, seed=seed, grid=grid, seeds=seeds)
        pages = [write_sweep(e, out, tier, seed, rerun(e.claim.id, tier, seed, settings, seeds)) for e in swept]
        if as_json:
            print_json({"pages": [str(page) for page in pages]})
        for page in () if as_json else pages:
            echo(f"The sweep is at {page.resolve().as_uri()}")
        return
    if not store.exists():
        echo(f"attlas: no store {store}: the site shows the results that came with attlas", err=True)
    _, count = lab.choose("processes", workers, None)
    options: Any = {"store": store, "seed": seed, "shipped": True, "workers": count}
    # the other tier first, of which only verdicts are kept: the results of both would not fit in a gigabyte
    beside = [replace(e, records=()) for e in lab.verdicts(None, other, **options)]
    judged = lab.verdicts(None, tier, repeats=True, **options)
    page = write(judged, out, tier, seed, other=beside, address=address, workers=count)
    if as_json:
        print_json({"page": str(page)})
    else:
        echo(f"The atlas is at {page.resolve().as_uri()}")


def explore(
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on. Any but 127.0.0.1 lets other machines in, without a password."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 picks a free one.")] = 8050,
    store: StorePath = STORE,
    full: Full = False,
    seed: SeedNumber = 0,
) -> None:
    """Serve the explorer on this machine until Ctrl-C."""
    require("explore")
    from attlas.explorer import serve

    serve(store, host, port, tier_of(full), seed, echo)


COMMANDS: Table = {"report": report, "explore": explore}
