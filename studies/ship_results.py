"""Adds finished runs of stores, at either tier, to the results that come with attlas; pilots are left out.

python studies/ship_results.py attlas.db more.db
"""

import sys
from pathlib import Path

from attlas import lab
from attlas.claims import find, names
from attlas.lab.plan import SEEDS_PER_RUN
from attlas.lab.shipped import FOLDER, PILOTS
from attlas.store import read

RESULTS = Path(__file__).parents[1] / "src" / "attlas" / FOLDER


def main() -> None:
    found = [record for store in sys.argv[1:] for record in read(store)]
    if not found:
        raise SystemExit("name stores that hold results: python studies/ship_results.py attlas.db")
    RESULTS.mkdir(exist_ok=True)
    for claim in find([name for name in names() if name in {record.claim for record in found}]):
        rows = [*lab.shipped([claim]), *found]
        stored = {r.key: r for r in rows if (r.claim, r.version) == (claim.id, claim.version)}
        runs = {record.seed // SEEDS_PER_RUN for record in stored.values()} & set(range(PILOTS))
        wholes = [[cell.key for cell in lab.plan([claim], tier, run)] for tier in claim.tiers for run in sorted(runs)]
        kept = {key: stored[key] for whole in wholes if all(key in stored for key in whole) for key in whole}
        if kept:
            path = lab.pack(claim, kept.values(), RESULTS)
            print(f"{claim.id}: {len(kept)} results, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
