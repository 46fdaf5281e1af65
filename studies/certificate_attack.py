"""Attack the certificate: functions that are no layer, and true layers with noise; what is accepted, what is refused.

    python studies/certificate_attack.py --out attack.jsonl          # 15 minutes of one core; run again to resume
    python studies/certificate_attack.py --out attack.jsonl --quick  # one cell of ten

Prints Markdown tables. A kind is a piece that is added to a layer; how far the sum is from every layer ("distance") is
measured without noise, from the truth and from the fit. It is compared with `seen["another head"]` of the certificate's own
test: a false acceptance is a function that is accepted at more than twice that. Intervals (95 %) are those of Clopper
and Pearson.
"""

import argparse
import json
import sys
import time
import zlib
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from attlas import tokens
from attlas.claims.recovery.kit.noises import LAWS
from attlas.claims.recovery.kit.strangers import KINDS, UNSEEN, World, group, piece
from attlas.lab.execute import pin_threads
from attlas.numerics import share_interval, stream
from attlas.recovery import Layer, learn, planted_layer
from attlas.recovery.certificate import EXACT
from attlas.recovery.examples import Examples
from attlas.recovery.residual_test import LEVEL, residual_test
from attlas.recovery.variable_projection import variable_projection

SMALL, MIDDLE, MANY = (1, 4, 3, 200), (2, 4, 4, 400), (1, 4, 3, 1000)  # heads, d, k, n
BINS = (0.0, 0.5, 1.0, 2.0, 3.0, np.inf)  # of the distance over what is seen
CLAIMED = 2.0  # times what is seen: further away no function of a kind is accepted
SPOILED = {  # what has mean zero given the tokens, or nearly so, though people may not call it noise
    "5 % of the outputs permuted": lambda F, rng: permuted(F, 0.05, rng),
    "20 % of the outputs permuted": lambda F, rng: permuted(F, 0.2, rng),
    "rounded to 0.1 of the outputs": lambda F, _: rounded(F, 0.1),
    "rounded to 0.5 of the outputs": lambda F, _: rounded(F, 0.5),
    "rounded to the outputs": lambda F, _: rounded(F, 1.0),
    "noise of 0.1, then rounded to 0.5": lambda F, rng: rounded(F + 0.1 * size(F) * rng.standard_normal(F.shape), 0.5),
    "cut to eight bits": lambda F, _: rounded(F, 2.0**-6),
    "every hundredth output 30 times as large": lambda F, rng: F * np.where(rng.random((len(F), 1, 1)) < 0.01, 30, 1),
    "one sequence of twenty with no output": lambda F, rng: F * (rng.random((len(F), 1, 1)) > 0.05),
}


def size(F):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(F**2)))


def rounded(F, grid):
    """Return outputs on a grid, relative to their size."""
    grid = grid * size(F)
    return np.round(F / grid) * grid


def permuted(F, part, rng):
    """Return outputs of which a part belongs to other sequences."""
    Y, moved = F.copy(), np.flatnonzero(rng.random(len(F)) < part)
    Y[moved] = F[rng.permutation(moved)]
    return Y


def cells():
    """Return all cells of the attack, in an order in which every tenth is a fair sample."""
    kinds = (*KINDS, *UNSEEN)
    pieces = [
        *product(["piece"], kinds, [SMALL], (0.0, 0.1, 0.5), (0.05, 0.2, 1.0), [0]),
        *product(["piece"], kinds, [MIDDLE], (0.01, 0.5), [0.2], [0]),
        *product(["piece"], kinds, [MANY], [0.1], [0.05], [0]),
    ]
    learned = product(["learned piece"], kinds, [SMALL], [0.1], [0.3], [0])
    nulls = [
        *product(["noise"], LAWS, [SMALL], (0.01, 0.1, 0.5), [0.0], range(8)),
        *product(["noise"], LAWS, [MIDDLE], (0.01, 0.1, 0.5), [0.0], range(4)),
        *product(["noise"], LAWS, [MANY], [0.1], [0.0], range(2)),
    ]
    found = product(["learned noise"], LAWS, [SMALL], (0.01, 0.1, 0.5), [0.0], range(2))
    spoiled = product(["spoiled"], SPOILED, [SMALL, MIDDLE], [0.0], [0.0], range(5))
    every = [*pieces, *learned, *nulls, *found, *spoiled]
    return sorted(every, key=lambda cell: zlib.crc32(json.dumps(cell).encode()))


def attacked(part, kind, shape, noise, amount, seed):
    """Return what the test, or `learn`, says of one cell."""
    heads, d, k, n = shape

    def own(name):
        return stream(seed, "attack", name, part, kind, json.dumps([shape, noise, amount]))

    truth = Layer(*planted_layer(heads, d, own("teacher"), 3.0))
    X = tokens.gaussian(n, k, d, own("data"))
    F = G = truth(X)
    if "piece" in part:
        G = F + amount * piece(kind, World(X, truth, own("piece")))
        law = list(LAWS)[int(own("law").integers(len(LAWS)))]
    else:
        law = kind
    Y = SPOILED[kind](F, own("noise")) if part == "spoiled" else G + noise * size(F) * LAWS[law](F, own("noise"))
    data, exact = Examples.of(X, Y), Examples.of(X, G)
    fit = variable_projection(data, truth.Theta, max_steps=60)
    tested = residual_test(data, fit.layer, seed=seed)
    found = {"refused": tested.p_value <= LEVEL and fit.residual > EXACT, "p": tested.p_value, "family": tested.family}
    if part.startswith("learned"):
        certificate = learn(X, Y, heads, seed=seed, max_starts=6).certificate
        found |= {"refused": not certificate.met, "reason": certificate.reason}
    nearest = min(variable_projection(exact, Theta, max_steps=60).residual for Theta in (truth.Theta, fit.Theta))
    distance = nearest * float(np.linalg.norm(G) / np.linalg.norm(Y))
    return found | {"distance": distance, "seen": tested.seen["another head"]}


def share(rows):
    """Return how many of the rows are refused, as cells of a table have it."""
    return f"{sum(r['refused'] for r in rows)} of {len(rows)}" if rows else ""


def interval(rows):
    """Return the share that is refused with its interval; a certificate that cannot tell says neither."""
    rows = [r for r in rows if not r.get("reason", "").startswith("cannot tell")]
    if not rows:
        return "none |"
    hits = sum(r["refused"] for r in rows)
    value, low, high = share_interval(hits, len(rows), 0.95)
    return f"{hits} of {len(rows)} | {value:.1%} ({low:.1%} to {high:.1%})"


def table(found):
    """Print the tables."""
    for part in ("piece", "learned piece"):
        for name, key in (("group", group), ("kind", str)):
            print(f"\n| {part}: {name} | below ½ | ½ to 1 | 1 to 2 | 2 to 3 | above 3 |\n|---|---|---|---|---|---|")
            for label, own in gathered(found, part, key).items():
                print(f"| {label} | {' | '.join(share(list(inside(own, *ends))) for ends in pairwise(BINS))} |")
        own = [r for rows in gathered(found, part, str, KINDS).values() for r in inside(rows, CLAIMED, np.inf)]
        print(f"\nrefused of what is claimed to be seen ({part}): {interval(own)}")
    for cell, result in found:
        if (
            "piece" in cell[0]
            and cell[1] in KINDS
            and not result["refused"]
            and list(inside([result], CLAIMED, np.inf))
        ):
            print(f"false acceptance: {cell} {result}")
    for part in ("learned piece", "learned noise"):
        own = [r["reason"].startswith("cannot tell") for rows in gathered(found, part, str).values() for r in rows]
        print(f"\n{sum(own)} of {len(own)} certificates ({part}) are not met because they cannot tell")
    for part in ("noise", "learned noise", "spoiled"):
        print(f"\n| {part} | refused | share |\n|---|---|---|")
        rows = gathered(found, part, str)
        for label, own in sorted(rows.items()):
            print(f"| {label} | {interval(own)} |")
        print(f"| all | {interval([r for own in rows.values() for r in own])} |")


def gathered(found, part, key, kinds=None):
    """Return the results of a part of the attack by key(kind)."""
    rows = defaultdict(list)
    for (name, kind, *_), result in found:
        if name == part and (kinds is None or kind in kinds):
            rows[key(kind)].append(result)
    return rows


def inside(rows, low, high):
    """Yield the results whose distance from every layer is so many times what is seen."""
    for result in rows:
        if result["distance"] > EXACT and low <= result["distance"] / result["seen"] < high:
            yield result


def main():
    """Run the cells that the file does not hold yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="results as they come; what it holds is not run again")
    parser.add_argument("--quick", action="store_true", help="one cell of ten")
    options = parser.parse_args()
    pin_threads()
    todo = cells()[:: 10 if options.quick else 1]
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    done = {json.dumps(cell): result for cell, result in map(json.loads, lines)}
    began, told = time.monotonic(), 0.0
    with options.out.open("a", encoding="utf-8") as file:
        for number, cell in enumerate(todo, 1):
            if json.dumps(cell) not in done:
                done[json.dumps(cell)] = result = attacked(*cell)
                file.write(json.dumps([cell, result]) + "\n")
                file.flush()
            if time.monotonic() - told > 10 or number == len(todo):
                told = time.monotonic()
                print(f"{number} of {len(todo)} cells, {told - began:.0f} s", file=sys.stderr, flush=True)
    table([(cell, done[json.dumps(cell)]) for cell in todo])


if __name__ == "__main__":
    main()
