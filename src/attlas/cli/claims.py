"""Commands about claims: list them, show one, run them, judge them."""

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli.mounted import Table
from attlas.cli.options import (
    STORE,
    Claims,
    ExecutorName,
    Full,
    Json,
    Scheduler,
    SeedNumber,
    Seeds,
    StorePath,
    Strict,
    Sweep,
    Workers,
    existing,
    parse_grid,
    parse_pairs,
    tier_of,
)
from attlas.cli.printing import brief, echo, print_claims, print_json, print_power, print_tests, print_verdicts
from attlas.errors import InputError

_SETTINGS = 24  # that are listed


def list_claims(full: Full = False, as_json: Json = False, store: StorePath = STORE, seed: SeedNumber = 0) -> None:
    """List every claim, door by door: its statement, its points and its status."""
    from attlas import lab

    judged = lab.verdicts(None, tier_of(full), store=existing(store), seed=seed, shipped=True)
    if as_json:
        print_json([brief(entry) for entry in judged])
    else:
        print_claims(judged)


def show(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="Id of a claim.")],
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    workers: Workers = None,
    settings: Sweep = None,
    seeds: Seeds = None,
) -> None:
    """Show one claim: source, settings, cost, verdict and the numbers that decided it."""
    from attlas import lab
    from attlas.claims.tex import plain
    from attlas.claims.wording import worded
    from attlas.lab.progress import duration
    from attlas.store import canonical

    tier, grid = tier_of(full), parse_grid(settings or [])
    options: Any = {"grid": grid, "seeds": seeds}
    (entry,) = lab.verdicts([claim], tier, store=existing(store), seed=seed, shipped=True, repeats=True, **options)
    cells = lab.plan([entry.claim], tier, seed, **options)
    left, anew = (lab.expect(cells, store, workers, fresh=fresh) for fresh in (False, True))
    points = Counter(canonical(cell.point) for cell in cells)
    details = brief(entry) | {
        "source": entry.claim.source,
        "version": entry.claim.version,
        "settings": [json.loads(point) for point in points],
        "seeds": list(points.values()),
        "seconds_left": round(left.seconds, 1),
        "reproduce": {"points": anew.planned, "seconds": round(anew.seconds, 1), "memory": anew.memory},
        "rerun": rerun(entry.claim.id, tier, seed, settings, seeds),
    }
    if as_json:
        print_json(details)
        return
    echo(
        f"{entry.claim.id} (version {entry.claim.version})\n{plain(entry.claim.statement)}\nSource: {entry.claim.source}"
    )
    where = "came with attlas" if entry.shipped else "in the store"
    echo(f"\n{tier}: {len(details['settings'])} settings, {entry.planned} points; {where}: {details['points']}")
    shown = list(zip(details["settings"], details["seeds"], strict=True))
    for point, count in shown[:_SETTINGS]:
        said = ", ".join(f"{name}={value}" for name, value in point.items())
        echo(f"  {said} ({count} seed{'s' if count > 1 else ''})")
    if len(shown) > _SETTINGS:
        echo(f"  and {len(shown) - _SETTINGS} more: --json has them all")
    for title, sentence in (("Design", entry.claim.design), ("Would not see", entry.claim.unseen)):
        if sentence:
            echo(f"{title}: {sentence}")
    origin = " (results that came with attlas)" if entry.shipped else ""
    echo(f"\nVerdict{origin}: {entry.status}" + (f": {worded(entry.verdict.reason)}" if entry.verdict else ""))
    if entry.margin:
        echo(f"Margin: {entry.margin}")
    if entry.repeated:
        echo(f"Repeated: {entry.repeated}")
    if entry.mixture:
        echo(f"Note: {entry.mixture}")
    if entry.verdict:
        print_tests(entry.verdict.tests)
        tested = {test.name + part for test in entry.verdict.tests for part in ("", " ±", ", low", ", high")}
        for name, value in entry.verdict.numbers.items():
            if name not in tested:
                echo(f"  {worded(name)}: {value:.6g}")
    echo(f"\nRun it: {details['rerun']} (about {details['seconds_left']} s)")
    echo(
        f"To reproduce it from nothing: {anew.planned} points, about {duration(anew.seconds)},"
        f" {anew.memory / 1e6:.0f} MB of memory"
    )


def rerun(claim: str, tier: str, seed: int, settings: list[str] | None = None, seeds: int | None = None) -> str:
    """Return the command that computes a claim, or a sweep of it."""
    swept = "".join(f" --set {shlex.quote(text)}" for text in settings or ())
    return f"attlas run {claim} --{tier} --seed {seed}{swept}" + (f" --seeds {seeds}" if seeds else "")


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
        typer.Option("--executor", help="Where to run; if not given, the other options decide."),
    ] = None,
    settings: Sweep = None,
    seeds: Seeds = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            "--slurm",
            metavar="NAME=VALUE",
            help="Setting of the Slurm jobs: queue, account, walltime, memory, interface, directives, prologue.",
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="Independent repetitions, with run numbers from --seed on.")
    ] = 1,
    point_timeout: Annotated[
        float | None,
        typer.Option(
            "--point-timeout",
            metavar="SECONDS",
            help="Stop a point after this many seconds; if not given, an hour plus 100 times its claim's estimate.",
        ),
    ] = None,
    same_versions: Annotated[
        bool,
        typer.Option("--same-versions", help="Refuse to add to results of other versions of attlas, numpy or scipy."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, without running it.")] = False,
    strict: Strict = False,
) -> None:
    """Run claims; what the store already holds is not computed again. Ctrl-C loses nothing."""
    from attlas import lab

    tier, grid, jobs = tier_of(full), parse_grid(settings or []), parse_pairs(slurm or [])
    chosen: Any = executor.value if executor else None
    if jobs and chosen != "slurm":
        raise InputError("--slurm goes with --executor slurm")
    if scheduler and workers:
        raise InputError("--workers does not go with --scheduler, which has workers of its own")
    if chosen == "serial" and workers not in (None, 1):
        raise InputError(f"--executor serial is one worker; got --workers {workers}")
    if dry_run:  # it refuses what a run would
        from attlas.claims import find
        from attlas.store import check_path

        lab.choose(chosen, workers, scheduler)
        lab.check_timeout(point_timeout)
        check_path(store)
        cells = lab.plan(find(claims), tier, seed, grid, seeds, runs)
        if same_versions:
            lab.check_versions(cells, store)
        expected = lab.expect(cells, store, workers, chosen)
        script = lab.job_script(lab.slurm_settings(jobs)) if chosen == "slurm" else None
        _print_expected(expected, script, store, as_json)
        return
    summary = lab.run(
        claims,
        tier,
        store=store,
        seed=seed,
        runs=runs,
        workers=workers,
        executor=chosen,
        scheduler=scheduler,
        slurm=jobs,
        grid=grid,
        seeds=seeds,
        point_timeout=point_timeout,
        same_versions=same_versions,
    )
    judged = lab.verdicts(claims, tier, store=store, seed=seed, grid=grid, seeds=seeds, repeats=True)
    if as_json:
        counts = {
            name: getattr(summary, name) for name in ("planned", "found", "computed", "elsewhere", "repaired", "mixed")
        }
        print_json(counts | {"failed": summary.failed, "verdicts": [brief(entry) for entry in judged]})
    else:
        echo(f"{summary.computed} points computed, {summary.found} were in {store} already", err=True)
        print_verdicts(judged, lambda entry: lab.agreement(entry, tier, seed))
    if summary.failed:
        echo(f"attlas: {len(summary.failed)} points failed; run the same command again to retry them", err=True)
    if summary.failed or (strict and not all(entry.holds for entry in judged)):
        raise typer.Exit(1)


def verdicts(
    claims: Claims = None,
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    strict: Strict = False,
    settings: Sweep = None,
    seeds: Seeds = None,
) -> None:
    """Print the verdict of every claim: from your store or, where that has no results, from those that come with attlas."""
    from attlas import lab

    tier = tier_of(full)
    options: Any = {"grid": parse_grid(settings or []), "seeds": seeds}
    judged = lab.verdicts(claims, tier, store=existing(store), seed=seed, shipped=True, repeats=True, **options)
    if as_json:
        print_json([brief(entry) for entry in judged])
    else:
        print_verdicts(judged, lambda entry: lab.agreement(entry, tier, seed))
    if strict and not all(entry.holds for entry in judged):
        raise typer.Exit(1)


def power(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="Id of a claim.")],
    full: Full = False,
    as_json: Json = False,
    store: StorePath = STORE,
    seed: SeedNumber = 0,
    remeasure: Annotated[
        bool, typer.Option("--remeasure", help="Also run broken learners; each takes as long as a run.")
    ] = False,
) -> None:
    """Show what the design of a claim can decide, from stored runs: how often a true one is supported, what is refuted."""
    from dataclasses import asdict

    from attlas import lab
    from attlas.claims.power import power as compute
    from attlas.lab.progress import progress

    (entry,) = lab.verdicts([claim], tier_of(full), store=existing(store), seed=seed, shipped=True)
    if entry.verdict is None:
        command = f"attlas run {claim} --{tier_of(full)} --seed {seed}"
        raise InputError(
            f"{len(entry.records)} of {entry.planned} points of that run are stored; `{command}` makes the rest"
        )
    with progress(4, 0) as show:
        found = compute(entry.claim, entry.measurements(), remeasure=remeasure, progress=lambda e: show.note(e.text))
    if as_json:
        told = {
            "designs": [asdict(each) for each in found.designs],
            "mutations": [asdict(each) for each in found.detected],
        }
        print_json(brief(entry) | told)
    else:
        print_power(found)


def _print_expected(expected: Any, script: str | None, store: Path, as_json: bool) -> None:
    from attlas.lab.progress import duration

    if as_json:
        print_json(vars(expected) | {"job_script": script})
        return
    echo(f"{expected.planned} points, {expected.found} of them in {store} already")
    echo(f"expected: about {duration(expected.seconds)}, {expected.memory / 1e6:.0f} MB of memory")
    if script:
        echo(script)


COMMANDS: Table = {"list": list_claims, "show": show, "run": run, "verdicts": verdicts, "power": power}
