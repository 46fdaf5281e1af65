"""How long a fit on sets takes and how much memory, by the number of sets, tokens and heads.

    python studies/set_sizes.py             about six minutes on one core
    python studies/set_sizes.py --large     with 200,000 sets of eight tokens

Every row runs in a process of its own with one thread. Time is CPU time of `RandomAttentionClassifier` (two classes, ten
penalties by leave-one-out), in seconds and in products of 2048 x 2048 float32 matrices (G) timed in the same process, since
seconds are those of one machine. Memory is the largest resident set minus that before the sets were made.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from attlas.features import RandomAttentionClassifier
from attlas.numerics import stream


class Case(NamedTuple):
    """Sets, fewest and most tokens in a set, their dimension, heads, and which token is the query."""

    n: int
    tokens: tuple[int, int]
    d: int
    heads: int
    query: str | None = None


CASES = [
    Case(1_000, (8, 8), 8, 300),
    Case(1_000, (8, 8), 8, 1000),
    Case(5_000, (8, 8), 8, 300),
    Case(50_000, (8, 8), 8, 300),
    Case(50_000, (8, 8), 8, 300, "first"),
    Case(1_000, (1, 100), 8, 300),
    Case(1_000, (1, 1000), 8, 300, "mean"),
    Case(100, (1000, 1000), 8, 300),
]
LARGE = [Case(200_000, (8, 8), 8, 300, "first")]
QUICK = [Case(100, (8, 8), 4, 20), Case(60, (1, 30), 4, 20, "mean")]


def main():
    options = arguments()
    if options.case:
        n, tokens, *others = json.loads(options.case)
        print(json.dumps(measure(Case(n, tuple(tokens), *others))))
        return
    lines = ["| sets | tokens | d | heads | query | solver | fit, s (G) | predict, s (G) | memory, MB | the sets, MB |"]
    print("\n".join([*lines, "|---" * 10 + "|"]))
    for case in QUICK if options.quick else CASES + LARGE * options.large:
        command = [sys.executable, __file__, "--case", json.dumps(case)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            sys.exit(done.stderr)
        print(line(case, json.loads(done.stdout)), flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small rows")
    parser.add_argument("--large", action="store_true", help="with 200,000 sets")
    parser.add_argument("--case", help="one row, as JSON, in this process")
    return parser.parse_args()


@threadpool_limits.wrap(limits=1)
def measure(case):
    """Return CPU seconds of a matrix product, of a fit and of predictions, megabytes of both and of X, and the solver."""
    rng = stream(0, "sizes")
    small = Case(40, (4, 4), case.d, 4, case.query)
    RandomAttentionClassifier(small.heads, query=small.query).fit(*drawn(small, rng)).predict(drawn(small, rng)[0])
    before = resident()
    sets, labels = drawn(case, rng)
    model = RandomAttentionClassifier(case.heads, query=case.query, random_state=0)
    fit = seconds(lambda: model.fit(sets, labels))
    predict = seconds(lambda: model.predict(sets))
    memory = resident() - before
    size = sum(one.nbytes for one in sets) / 1e6
    matrix = rng.standard_normal((2048, 2048), dtype=np.float32)  # last, since it needs memory, too
    return {
        "product": min(seconds(lambda: matrix @ matrix) for _ in range(3)),
        "fit": fit,
        "predict": predict,
        "memory": memory,
        "sets": size,
        "solver": model.solver_,
    }


def drawn(case, rng):
    """Return sets of Gaussian tokens, float32, and whether their first entries agree in sign with a token of the set."""
    low, high = case.tokens
    counts = rng.integers(low, high + 1, case.n) + (case.query == "first")
    sets = [rng.standard_normal((k, case.d), dtype=np.float32) / np.float32(np.sqrt(case.d)) for k in counts]
    return sets, np.array([float(one[0] @ one.mean(0)) > 0.5 / len(one) for one in sets])


def seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def resident():
    """Return the largest resident set so far, in megabytes; Linux counts kilobytes, macOS bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)


def line(case, found):
    low, high = case.tokens
    tokens = f"{low}" if low == high else f"{low} to {high}"
    query = {None: "every token", "mean": "their mean", "first": "the first"}[case.query]
    times = [f"{short(found[what])} ({short(found[what] / found['product'])})" for what in ("fit", "predict")]
    parts = [f"{case.n:,}", tokens, case.d, case.heads, query, found["solver"], *times, f"{found['memory']:.0f}"]
    return f"| {' | '.join(map(str, parts))} | {found['sets']:.0f} |"


def short(number):
    return f"{number:.2g}" if number < 100 else f"{number:.0f}"


if __name__ == "__main__":
    main()
