"""How trustworthy the verdicts are: every claim over its runs, the power of its design, and what it refutes.

    python studies/verdicts.py --out docs/error_rates.csv     # from the results that come with attlas; some minutes
    python studies/verdicts.py aim.width --out docs/error_rates.csv     # one row anew, the others as they are
    python studies/verdicts.py aim.width --draws 1000 --tier full

For every claim: outcome and strength of each run; how often its design would support it if theory is true, and how often
refute it then (the seeds of all runs together, resampled to as many as one run has, estimates moved to where theory expects
them); the smallest size of every mutation that all runs refute; and what the full tier says, and the core hours it took.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attlas import lab
from attlas.claims import Measurement, Outcome, Verdict, names
from attlas.claims.power import detect, power

LETTERS = {"supported": "S", "refuted": "R", "inconclusive": "I", "illustration": "-", "damaged": "!"}
HEADER = [
    "claim",
    "version",
    "runs",
    "supported if true",
    "refuted if true",
    "refutes",
    "misses",
    "full tier",
    "core hours",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("claims", nargs="*")
    parser.add_argument("--tier", default="quick", choices=("quick", "full"))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--store", type=Path, default=Path("no-such-store.db"))
    parser.add_argument("--out", type=Path, help="write a CSV file instead of a Markdown table")
    options = parser.parse_args()
    judged = lab.verdicts(options.claims or None, options.tier, store=options.store, shipped=True, repeats=True)
    large = {e.claim.id: e for e in lab.verdicts(options.claims or None, "full", store=options.store, shipped=True)}
    rows, null, alarms = [], 0, 0.0
    for entry in judged:
        if entry.verdict is None:
            continue
        row, refuted = assessed(entry, options)
        row += at_full_tier(large[entry.claim.id])
        rows.append(row)
        if refuted is not None:
            null, alarms = null + options.draws, alarms + options.draws * refuted
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"\n{alarms:.0f} of {null} resampled runs of true claims are refuted.")
    if options.out:
        write(options.out, rows, keep=bool(options.claims))


def write(path: Path, rows: Sequence[Sequence[str]], keep: bool) -> None:
    """Write the table, in the order of the claims; with `keep`, rows of other claims stay as they are."""
    known: dict[str, Sequence[str]] = {}
    if keep and path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            known = {row[0]: row for row in list(csv.reader(file))[1:]}
    known |= {row[0]: row for row in rows}
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *(known[name] for name in names() if name in known)])


def at_full_tier(entry: lab.Judged) -> list[str]:
    """Return outcome and strength of the full tier, and its core hours; nothing where it was not run."""
    if entry.verdict is None:
        return ["", ""]
    return [summary({0: entry.verdict}), f"{sum(record.seconds for record in entry.records) / 3600:.2f}"]


def assessed(entry: lab.Judged, options: argparse.Namespace) -> tuple[list[str], float | None]:
    """Return the row of a claim, and the share of null runs that refute it; None where nothing is tested."""
    claim, numbers = entry.claim, list(entry.runs)
    runs = [
        lab.verdicts([claim.id], options.tier, store=options.store, seed=number, shipped=True)[0].measurements()
        for number in numbers
    ]
    row = [claim.id, str(claim.version), summary(entry.runs)]
    if not claim.tiers[options.tier].decides or not entry.verdict or not entry.verdict.tests:
        return [*row, "", "", "", ""], None
    if all(test.exact for test in entry.verdict.tests):
        return [*row, "no scatter", "no scatter", *mutated(claim, runs)], None
    pooled = [measurement for run in runs for measurement in run]
    (design,) = power(claim, pooled, designs=(1 / len(runs),), draws=options.draws).designs
    return [*row, f"{design.supported:.2f}", f"{design.refuted:.3f}", *mutated(claim, runs)], design.refuted


def summary(runs: Mapping[int, Verdict]) -> str:
    """Return the outcomes of runs with their strengths, such as "S4.1 I2.3"."""
    return " ".join(f"{LETTERS[verdict.outcome.value]}{verdict.strength:.2g}" for verdict in runs.values())


def mutated(claim: Any, runs: Sequence[Sequence[Measurement[Any]]]) -> tuple[str, str]:
    """Return the smallest size of each mutation that every run refutes, and what some run should refute and does not."""
    found = [detect(claim, run) for run in runs]
    refuted, missed = {}, []
    for number, one in enumerate(found[0]):
        every = sum(run[number].outcome is Outcome.REFUTED for run in found)
        kind = next(m.name for m in claim.mutations if m.label(one.size) == one.name)
        if every == len(runs):
            refuted.setdefault(kind, one.name)
        elif one.required:
            missed.append(f"{one.name} ({every} of {len(runs)} runs)")
    return "; ".join(refuted.values()), "; ".join(missed)


if __name__ == "__main__":
    main()
