"""How results are printed: JSON for programs, tables for people."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from attlas.text import printable

if TYPE_CHECKING:
    from attlas.claims.power import Power
    from attlas.claims.verdict import Test
    from attlas.lab import Judged

_COLOURS = {"supported": "green", "refuted": "red", "inconclusive": "yellow", "illustration": "blue", "damaged": "red"}


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line, whatever it quotes: all text that commands print comes through here, or through a table below."""
    typer.echo(printable(text), err=err, nl=nl)


def print_json(value: Any) -> None:
    """Print a value as JSON: numbers that JSON does not have are null."""
    typer.echo(json.dumps(_plain(value), indent=2, default=str, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def brief(entry: "Judged") -> dict[str, Any]:
    """Return what JSON says of a claim."""
    from attlas.claims.tex import plain

    verdict = entry.verdict
    return {
        "claim": entry.claim.id,
        "statement": plain(entry.claim.statement),
        "status": entry.status,
        "points": f"{len(entry.records)}/{entry.planned}",
        "stored": len(entry.records),
        "planned": entry.planned,
        "reason": verdict.reason if verdict else None,
        "strength": verdict.strength if verdict and entry.margin else None,  # none where nothing is decided
        "unit": verdict.unit if verdict and entry.margin else None,
        "numbers": verdict.numbers if verdict else {},
        "tests": [_test(test) for test in verdict.tests] if verdict else [],
        "shipped": entry.shipped,
        "versions": entry.versions,
        "runs": {
            number: {"outcome": each.outcome.value, "strength": each.strength} for number, each in entry.runs.items()
        },
    }


def _test(test: "Test") -> dict[str, Any]:
    low, high = test.estimate.interval()
    return {
        "name": test.name,
        "value": test.estimate.value,
        "low": low,
        "high": high,
        "region": [test.region.low, test.region.high],
        "strength": test.strength,
        "unit": test.unit,
    }


def print_claims(judged: "Sequence[Judged]") -> None:
    """Print a table of claims and their statements, under the titles of their doors."""
    from attlas.claims import door
    from attlas.claims.tex import plain

    rows: list[list[str]] = []
    for key, own in groupby(judged, key=lambda entry: entry.claim.door):
        rows.append([door(key).title, "", "", door(key).question])
        rows += [[e.claim.id, e.status, f"{len(e.records)}/{e.planned}", plain(e.claim.statement)] for e in own]
    _print_table(["claim", "status", "points", "statement"], rows)


def print_verdicts(judged: "Iterable[Judged]", agreement: "Callable[[Judged], str]" = lambda _: "") -> None:
    """Print a table of verdicts and their reasons; with runs and agreement where there is any."""
    from attlas.claims.wording import worded

    rows = []
    for entry in judged:
        why = f"{len(entry.records)} of {entry.planned} points are in the store"
        if entry.verdict:
            why = "; ".join(filter(None, (worded(entry.verdict.reason), entry.mixture)))
        origin = "came with attlas" if entry.shipped else agreement(entry)
        rows.append(
            [
                entry.claim.id,
                entry.status,
                entry.margin,
                entry.repeated,
                origin,
                why,
            ]
        )
    header = ["claim", "verdict", "margin", "runs", "shipped results", "because"]
    kept = [
        i for i, name in enumerate(header) if name not in ("runs", "shipped results") or any(row[i] for row in rows)
    ]
    _print_table([header[i] for i in kept], [[row[i] for i in kept] for row in rows])


def print_power(power: "Power") -> None:
    """Print what a design can decide: its tests, other numbers of seeds, and what becomes of mutations."""
    from attlas.claims.wording import worded

    echo(f"These runs: {power.verdict.outcome.value}: {worded(power.verdict.reason)}\n")
    print_tests(power.tests)
    rows = [
        [f"{design.seeds:g}", "", f"{design.supported:.0%}", f"{design.refuted:.0%}", f"{design.as_measured:.0%}"]
        for design in power.designs
    ]
    header = ["times the seeds", "", "supported if theory is true", "refuted then", "supported if as measured"]
    _print_table(header, rows, sections=False)
    rows = [
        [each.name, each.outcome.value, f"{each.strength:.2g}", "yes" if each.required else ""]
        for each in power.detected
    ]
    if rows:
        _print_table(["mutation", "verdict", "margin", "must be refuted"], rows)


def print_tests(tests: "Sequence[Test]") -> None:
    """Print a table of tests: what was found, where it must be, and how far inside it is."""
    from attlas.claims.wording import worded

    rows = []
    for test in tests:
        low, high = test.estimate.interval()
        found = f"{test.estimate.value:.4g}" + ("" if test.exact else f" ({low:.4g} to {high:.4g})")
        rows.append([worded(test.name), "", found, str(test.region), _margin(test)])
    _print_table(["test", "", "found, 99 %", "must be", "margin"], rows, sections=False)


def _margin(test: "Test") -> str:
    from attlas.claims.verdict import MANY

    if math.isinf(test.strength):  # of a number without scatter, such as a smallest one that must be above 0
        return "inside" if test.strength > 0 else "outside"
    if abs(test.strength) >= MANY:  # of a number that did not scatter in any seed
        return "inside, no scatter" if test.strength > 0 else "outside, no scatter"
    return f"{test.strength:{'.2g' if abs(test.strength) < 100 else '.0f'}} {test.unit}"


def _print_table(header: list[str], rows: list[list[str]], sections: bool = True) -> None:
    """Print rows, coloured by their status; one without a status begins a section."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        section = sections and not row[1]
        if section:
            table.add_section()
        table.add_row(
            *map(printable, row), style=_COLOURS.get(row[1], "bold" if section else "") if sys.stdout.isatty() else ""
        )
    Console(width=None if sys.stdout.isatty() else 150).print(table, markup=False, highlight=False)
