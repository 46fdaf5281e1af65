"""How results are printed: JSON for programs, tables for people."""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from attlas.lab import Judged

_COLOURS = {"supported": "green", "refuted": "red", "inconclusive": "yellow"}


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, default=str))


def brief(entry: "Judged") -> dict[str, Any]:
    """Return what JSON says of a claim."""
    verdict = entry.verdict
    return {
        "claim": entry.claim.id,
        "statement": entry.claim.statement,
        "status": entry.status,
        "points": f"{len(entry.records)}/{entry.planned}",
        "reason": verdict.reason if verdict else None,
        "strength": verdict.strength if verdict else None,
        "unit": verdict.unit if verdict else None,
        "numbers": verdict.numbers if verdict else {},
    }


def print_claims(judged: "Sequence[Judged]") -> None:
    """Print a table of claims and their statements, under the titles of their doors."""
    from attlas.claims import door

    rows: list[list[str]] = []
    for key, own in groupby(judged, key=lambda entry: entry.claim.door):
        rows.append([door(key).title, "", "", door(key).question])
        rows += [[e.claim.id, e.status, f"{len(e.records)}/{e.planned}", e.claim.statement] for e in own]
    _print_table(["claim", "status", "points", "statement"], rows)


def print_verdicts(judged: "Iterable[Judged]") -> None:
    """Print a table of verdicts and their reasons."""
    rows = []
    for entry in judged:
        why = f"{len(entry.records)} of {entry.planned} points are in the store"
        strength = ""
        if entry.verdict:
            why, strength = entry.verdict.reason, f"{entry.verdict.strength:.2g} {entry.verdict.unit}"
        rows.append([entry.claim.id, entry.status, strength, why])
    _print_table(["claim", "verdict", "strength", "because"], rows)


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print rows, coloured by their status; one without a status begins a section."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        if not row[1]:
            table.add_section()
        table.add_row(*row, style=_COLOURS.get(row[1], "" if row[1] else "bold") if sys.stdout.isatty() else "")
    Console(width=None if sys.stdout.isatty() else 150).print(table, markup=False, highlight=False)
