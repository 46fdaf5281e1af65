"""Entry point: parses the command line; what a command needs is imported when it runs."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas import __version__
from attlas.cli.options import (
    STORE,
    Claims,
    ExecutorName,
    Full,
    Json,
    Scheduler,
    SeedNumber,
    StorePath,
    UnusedScheduler,
    UnusedSeed,
    UnusedWorkers,
    Workers,
    parse_grid,
    parse_pairs,
)
from attlas.cli.predict import predict_app
from attlas.cli.recovery import recover
from attlas.errors import AttlasError, InputError

app = typer.Typer(
    help="An executable atlas of what attention layers can learn.",
    epilog="Exit codes: 0 done; 1 a point failed or, with --strict, a claim does not hold; 2 usage; 3 damaged store.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
store_app = typer.Typer(help="Look after a store.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(predict_app, name="predict")
app.add_typer(store_app, name="store")
app.command()(recover)


def main() -> None:
    """Run the command line; every foreseen failure is one sentence and an exit code."""
    try:
        app()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        typer.echo(f"attlas: {error.filename or 'the system'}: {error.strerror or error}", err=True)
        sys.exit(2)
    except AttlasError as error:
        typer.echo(str(error) if error.exit_code > 100 else f"attlas: {error}", err=True)
        sys.exit(error.exit_code)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"attlas {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """An executable atlas of what attention layers can learn."""


@app.command("list")
def list_claims(
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    workers: UnusedWorkers = None,
    scheduler: UnusedScheduler = None,
) -> None:
    """List every claim: its statement, its points and how it stands."""
    judged = _judged(None, full, store, seed)
    if as_json:
        _print_json([_brief(entry) for entry in judged])
        return
    _print_table(
        ["claim", "status", "points", "statement"],
        [[e.claim.id, e.status, f"{len(e.records)}/{e.planned}", e.claim.statement] for e in judged],
    )


@app.command()
def show(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="Id of a claim.")],
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    workers: Workers = None,
    scheduler: UnusedScheduler = None,
) -> None:
    """Show one claim: source, settings, cost, verdict and the numbers that decided it."""
    from attlas import lab

    (entry,) = _judged([claim], full, store, seed)
    tier = _tier(full)
    expected = lab.expect(lab.plan([entry.claim], tier, seed), store, workers)
    details = _brief(entry) | {
        "source": entry.claim.source,
        "version": entry.claim.version,
        "settings": [point.model_dump() for point in entry.claim.tiers[tier].points],
        "seeds": entry.claim.tiers[tier].seeds,
        "seconds_left": round(expected.seconds, 1),
        "rerun": f"attlas run {entry.claim.id} --{tier} --seed {seed}",
    }
    if as_json:
        _print_json(details)
        return
    typer.echo(
        f"{entry.claim.id} (version {entry.claim.version})\n{entry.claim.statement}\nSource: {entry.claim.source}"
    )
    typer.echo(
        f"\n{tier}: {len(details['settings'])} points x {details['seeds']} seeds; in the store: {details['points']}"
    )
    for point in details["settings"]:
        typer.echo("  " + ", ".join(f"{name}={value}" for name, value in point.items()))
    typer.echo(f"\nVerdict: {entry.status}" + (f": {entry.verdict.reason}" if entry.verdict else ""))
    for name, value in (entry.verdict.numbers if entry.verdict else {}).items():
        typer.echo(f"  {name}: {value:.6g}")
    typer.echo(f"\nRun it: {details['rerun']} (about {details['seconds_left']} s)")


@app.command()
def run(
    claims: Claims = None,
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    workers: Workers = None,
    scheduler: Scheduler = None,
    executor: Annotated[
        ExecutorName | None,
        typer.Option("--executor", help="Where to run; chosen from the other options if not given."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUES", help="Sweep a setting: d=50,100 or rho=0.1:1:10. May be repeated."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Seeds at each point, instead of the tier's.")
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            "--slurm",
            metavar="NAME=VALUE",
            help="Setting of the Slurm jobs: queue, account, walltime, memory, interface, directives, prologue.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, do nothing.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 unless every claim is supported.")] = False,
) -> None:
    """Run claims; what the store already holds is not computed again. Ctrl-C loses nothing."""
    from attlas import lab

    tier, grid = _tier(full), parse_grid(settings or [])
    chosen: Any = executor.value if executor else None
    if slurm and chosen != "slurm":
        raise InputError("--slurm goes with --executor slurm")
    if dry_run:
        _dry_run(claims, full, as_json, store, seed, workers, chosen, grid, seeds, parse_pairs(slurm or []))
        return
    summary = lab.run(
        claims,
        tier,
        store=store,
        seed=seed,
        workers=workers,
        executor=chosen,
        scheduler=scheduler,
        slurm=parse_pairs(slurm or []),
        grid=grid,
        seeds=seeds,
    )
    judged = lab.verdicts(claims, tier, store=store, seed=seed, grid=grid, seeds=seeds)
    if as_json:
        counts = {name: getattr(summary, name) for name in ("planned", "found", "computed", "elsewhere", "mended")}
        _print_json(counts | {"failed": summary.failed, "verdicts": [_brief(entry) for entry in judged]})
    else:
        typer.echo(f"{summary.computed} points computed, {summary.found} were in {store} already", err=True)
        _print_verdicts(judged)
    if summary.failed:
        typer.echo(f"attlas: {len(summary.failed)} points failed; the same command tries them again", err=True)
    if summary.failed or (strict and not all(entry.holds for entry in judged)):
        raise typer.Exit(1)


@app.command()
def verdicts(
    claims: Claims = None,
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    workers: UnusedWorkers = None,
    scheduler: UnusedScheduler = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 unless every claim is supported.")] = False,
) -> None:
    """Print the verdict of every claim, from what the store holds."""
    judged = _judged(claims, full, store, seed)
    if as_json:
        _print_json([_brief(entry) for entry in judged])
    else:
        _print_verdicts(judged)
    if strict and not all(entry.holds for entry in judged):
        raise typer.Exit(1)


@app.command()
def export(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="results.csv, results.parquet or results.nc")],
    claims: Claims = None,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: UnusedSeed = 0,
    workers: UnusedWorkers = None,
    scheduler: UnusedScheduler = None,
) -> None:
    """Write results to CSV, Parquet or NetCDF, by the ending of FILE."""
    from attlas import store as room
    from attlas.claims import find

    names = [claim.id for claim in find(claims)] if claims else None
    count = room.export(room.read(store, names), target)
    if as_json:
        _print_json({"file": str(target), "results": count})
    else:
        typer.echo(f"{count} results written to {target}")


@app.command()
def report(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the site.")] = Path("site"),
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    workers: UnusedWorkers = None,
    scheduler: UnusedScheduler = None,
) -> None:
    """Write the site: every claim with its verdict, figure and numbers."""
    from attlas.report import write

    page = write(_judged(None, full, store, seed), out, _tier(full), seed)
    if as_json:
        _print_json({"page": str(page)})
    else:
        typer.echo(f"The atlas is at {page.resolve().as_uri()}")


@app.command()
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
    workers: UnusedWorkers = None,
    scheduler: UnusedScheduler = None,
) -> None:
    """Serve the page to play with, on this machine, until Ctrl-C."""
    from attlas.explorer import serve

    serve(store, host, port, _tier(full), seed, typer.echo)


@store_app.command("check")
def check_store(
    as_json: Json = False,
    store: StorePath = STORE,
    seed: UnusedSeed = 0,
    workers: UnusedWorkers = None,
    scheduler: UnusedScheduler = None,
) -> None:
    """Verify every result in a store; exit 3 if any is damaged."""
    from attlas.store import check

    health = check(store)
    if as_json:
        _print_json({"good": health.good, **vars(health)})
    else:
        for entry in health.damaged:
            note = " (an earlier copy of it is whole)" if entry["recoverable"] else ""
            typer.echo(f"damaged: {entry['claim'] or 'a result'} {entry['key']}: {entry['why']}{note}")
        for line in health.structure:
            typer.echo(f"damaged file: {line}")
        ending = "" if health.good else "; `attlas run` keeps these and computes the others again"
        count = f"{len(health.damaged)} damaged" if health.good or health.damaged else "an unknown number lost"
        typer.echo(f"{store}: {health.whole} results are whole, {count}{ending}")
    if not health.good:
        raise typer.Exit(3)


def _judged(claims: list[str] | None, full: bool, store: Path, seed: int) -> list[Any]:
    from attlas import lab

    return lab.verdicts(claims, _tier(full), store=store, seed=seed)


def _tier(full: bool) -> Any:
    return "full" if full else "quick"


def _dry_run(
    claims: list[str] | None,
    full: bool,
    as_json: bool,
    store: Path,
    seed: int,
    workers: int | None,
    executor: Any,
    grid: dict[str, list[Any]],
    seeds: int | None,
    slurm: dict[str, Any],
) -> None:
    from attlas import lab
    from attlas.claims import find
    from attlas.lab.progress import duration

    expected = lab.expect(lab.plan(find(claims), _tier(full), seed, grid, seeds), store, workers, executor)
    script = lab.job_script(lab.slurm_settings(slurm)) if executor == "slurm" else None
    if as_json:
        _print_json(vars(expected) | {"job_script": script})
        return
    typer.echo(f"{expected.planned} points, {expected.found} of them in {store} already")
    typer.echo(f"expected: about {duration(expected.seconds)}, {expected.memory / 1e6:.0f} MB of memory")
    if script:
        typer.echo(script)


def _brief(entry: Any) -> dict[str, Any]:
    verdict = entry.verdict
    return {
        "claim": entry.claim.id,
        "statement": entry.claim.statement,
        "status": entry.status,
        "points": f"{len(entry.records)}/{entry.planned}",
        "reason": verdict.reason if verdict else None,
        "margin": verdict.margin if verdict else None,
        "unit": verdict.unit if verdict else None,
        "numbers": verdict.numbers if verdict else {},
    }


def _print_verdicts(judged: list[Any]) -> None:
    rows = []
    for entry in judged:
        why = (
            entry.verdict.reason
            if entry.verdict
            else f"{len(entry.records)} of {entry.planned} points are in the store"
        )
        margin = f"{entry.verdict.margin:.2g} {entry.verdict.unit}" if entry.verdict else ""
        rows.append([entry.claim.id, entry.status, margin, why])
    _print_table(["claim", "verdict", "margin", "because"], rows)


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    colours = {"supported": "green", "refuted": "red", "inconclusive": "yellow"}
    table = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row, style=colours.get(row[1], "") if sys.stdout.isatty() else "")
    Console(width=None if sys.stdout.isatty() else 150).print(table, markup=False, highlight=False)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, default=str))
