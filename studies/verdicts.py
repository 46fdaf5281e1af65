"""How trustworthy the verdicts are: every claim over its runs, the power of its design, and what it refutes.

    python studies/verdicts.py                # from the results that come with attlas, as Markdown; some minutes
    python studies/verdicts.py aim.width --draws 1000 --tier full

For every claim: outcome and strength of each run; how often its design would support it if theory is true, and how often
refute it then (200 resampled runs, estimates moved to where theory expects them); and the mutations that it refutes.
"""

import argparse
from pathlib import Path

from attlas import lab
from attlas.claims import Outcome
from attlas.claims.power import power

LETTERS = {"supported": "S", "refuted": "R", "inconclusive": "I", "illustration": "-", "damaged": "!"}


def runs(entry: lab.Judged) -> str:
    return " ".join(f"{LETTERS[v.outcome.value]}{v.strength:.2g}" for v in entry.runs.values())


def refuted(detected: tuple) -> str:
    """Return the mutations that are refuted, at each size, and those that should be and are not."""
    told = [each.name for each in detected if each.outcome is Outcome.REFUTED]
    missed = [each.name for each in detected if each.required and each.outcome is not Outcome.REFUTED]
    return "; ".join(told) + (f"; MISSED: {'; '.join(missed)}" if missed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("claims", nargs="*")
    parser.add_argument("--tier", default="quick", choices=("quick", "full"))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--store", type=Path, default=Path("no-such-store.db"))
    options = parser.parse_args()
    judged = lab.verdicts(options.claims or None, options.tier, store=options.store, shipped=True, repeats=True)
    print("| claim | runs | supported if true | refuted if true | refutes |\n|---|---|---|---|---|")
    null, alarms = 0, 0.0
    for entry in judged:
        if entry.verdict is None:
            print(f"| {entry.claim.id} | not run | | | |", flush=True)
            continue
        found = power(entry.claim, entry.measurements(), designs=(1.0,), draws=options.draws)
        (design,) = found.designs
        if entry.verdict.tests:
            null, alarms = null + options.draws, alarms + options.draws * design.refuted
        row = [runs(entry), f"{design.supported:.2f}", f"{design.refuted:.3f}", refuted(found.detected)]
        print(f"| {entry.claim.id} | {' | '.join(row)} |", flush=True)
    print(f"\n{alarms:.0f} of {null} resampled runs of true claims are refuted.")


if __name__ == "__main__":
    main()
