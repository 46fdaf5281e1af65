"""How much is gained by choosing what to ask: designs against random sequences, by the Fisher bound and by refits.

    python studies/optimal_design.py --layers 12 --out design.jsonl     # resumes; ten minutes or less
    python studies/optimal_design.py --table design.jsonl

Two heads, d = 5, four Gaussian tokens, absolute noise of 5 % of the outputs of random sequences. Of 1500 sequences 120 are
asked: the first ones; those with the largest shares of information; the greedy D-optimal ones, by the true layer and by a
guess from 40 random answers, which are among the 120; random ones with tokens half, twice and four times as large.
The refits are least squares from random starts. Errors are those of Theta and W, relative to random sequences.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from attlas.lab.execute import pin_threads
from attlas.numerics import stream
from attlas.recovery import Layer, design, fisher, information, parameter_error, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import best_of

HEADS, D, K, POOL, ASKED, FIRST = 2, 5, 4, 1500, 120, 40
NOISE = 0.05
DRAWS = 4
WAYS = ("random", "largest shares", "D-optimal", "D-optimal, by a guess", "tokens x 1/2", "tokens x 2", "tokens x 4")


def fitted(X, Y, sigma, seed):
    """Fit from random starts, until one ends at the noise."""
    done = 1.1 * sigma * np.sqrt(Y.size) / np.linalg.norm(Y)
    starts = (random_start(HEADS, D, stream(seed, "start", str(i))) for i in range(12))
    return best_of(Examples.of(X, Y), starts, done=done, max_steps=100).layer


def asked(way, truth, pool, sigma, seed):
    """Return the sequences that a way of choosing asks."""
    if way == "largest shares":
        return pool[np.argsort(information(truth, pool))[-ASKED:]]
    if way == "D-optimal":
        return pool[design(truth, pool, ASKED)]
    if way == "D-optimal, by a guess":
        first = pool[:FIRST]
        answers = truth(first) + sigma * stream(seed, "noise", "guess").standard_normal((FIRST, K, D))
        rows = design(fitted(first, answers, sigma, seed), pool[FIRST:], ASKED - FIRST)
        return np.concatenate([first, pool[FIRST:][rows]])
    scale = {"tokens x 1/2": 0.5, "tokens x 2": 2.0, "tokens x 4": 4.0}.get(way, 1.0)
    return scale * pool[:ASKED]


def measure(seed):
    """Return the bound and the errors of refits for every way of choosing, on one layer."""
    truth = Layer(*planted_layer(HEADS, D, stream(seed, "teacher", "design"), 2.0))
    pool = stream(seed, "pool", "design").standard_normal((POOL, K, D))
    sigma = NOISE * float(np.std(truth(pool)))
    found = {}
    for way in WAYS:
        X = asked(way, truth, pool, sigma, seed)
        bound = fisher(truth, X, sigma)
        errors = []
        for draw in range(DRAWS):
            Y = truth(X) + sigma * stream(seed, "noise", str(draw)).standard_normal((ASKED, K, D))
            errors.append(parameter_error(fitted(X, Y, sigma, seed), truth))
        found[way] = {
            "Theta": bound.Theta_error,
            "W": bound.W_error,
            "refits": float(np.sqrt(np.mean(np.square(errors)))),
        }
    return found


def table(rows):
    """Print geometric means over layers, relative to random sequences, with standard errors."""
    print("| asked | bound on Θ | bound on W | refits |")
    print("|---|---|---|---|")
    for way in WAYS:
        cells = []
        for key in ("Theta", "W", "refits"):
            logs = np.log([row[way][key] / row["random"][key] for row in rows])
            error = np.std(logs, ddof=1) / np.sqrt(len(logs)) if len(logs) > 1 else np.nan
            cells.append(f"{np.exp(logs.mean()):.2f} ± {np.exp(logs.mean()) * error:.2f}")
        print(f"| {way} | {' | '.join(cells)} |")
    plain = [np.median([row["random"][key] for row in rows]) for key in ("Theta", "W", "refits")]
    print(
        f"\nRandom sequences, median relative errors: {', '.join(f'{value:.3f}' for value in plain)}; {len(rows)} layers."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    pin_threads()
    source = options.table or options.out
    rows = [json.loads(line) for line in source.read_text().splitlines()] if source and source.exists() else []
    for seed in range(len(rows), options.layers if options.table is None else 0):
        rows.append(measure(seed))
        if options.out:
            with options.out.open("a", encoding="utf-8") as file:
                print(json.dumps(rows[-1]), file=file)
    table(rows)


if __name__ == "__main__":
    main()
