"""Every learner of a multi-head layer on the same examples with the same budget: who finds it, how well, how fast.

    python studies/recovery_tables.py --seeds 10 --out tables.json

Prints Markdown tables of success (relative error below 1e-3 on fresh examples) with 95 % intervals, median errors and
seconds: planted layers, generic and awkward ones; layers that hide a parity, with controls; one head from queries. Learners
stop by the clock of the machine at hand (`max_seconds`), with one thread: run nothing beside it.
"""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attlas import recovery, tokens
from attlas.claims.recovery.kit.tasks import SUCCESS, counted, examples, oracle_of, query_layer
from attlas.lab.execute import pin_threads
from attlas.numerics import share_interval, stream

METHODS = ("sculpt", "varpro", "lbfgs", "adam")
FRESH = 1000


class Task(NamedTuple):
    """A layer to learn: its kind, heads, tokens, size of the logits, examples and the seconds a learner may take."""

    kind: str
    heads: int
    d: int = 8
    k: int = 4
    scale: float = 3.0
    n: int = 2000
    seconds: float = 6.0

    def __str__(self):
        size = f", s = {self.scale:g}" if self.kind in PLANTED else ""
        return f"{self.kind}: m = {self.heads}, d = {self.d}, k = {self.k}{size}, n = {self.n}, {self.seconds:g} s"


PLANTED = ("generic", "close heads", "parallel values", "one-entry Theta")
LAYERS = (
    Task("generic", 1),
    Task("generic", 2),
    Task("generic", 3),
    Task("generic", 2, scale=30.0),
    Task("close heads", 2, scale=2.0),
    Task("parallel values", 2),
    Task("one-entry Theta", 3, scale=10.0),
    Task("generic", 3, scale=2.0, n=60, seconds=4.0),
    Task("generic", 3, d=16, seconds=12.0),
)
PARITIES = (
    Task("parity", 3, 8, 2, n=1500, seconds=6.0),
    Task("parity", 5, 10, 2, n=1500, seconds=6.0),
    Task("parity", 5, 12, 2, n=2000, seconds=6.0),
    Task("control", 5, 12, 2, n=2000, seconds=6.0),
    Task("parity, full values", 3, 8, 2, n=1500, seconds=6.0),
)
WAYS = ((2, 4, 1), (3, 4, 1), (4, 4, 1), (4, 8, 1), (8, 8, 1), (2, 4, 4), (4, 4, 4), (5, 4, 4), (4, 8, 4), (8, 8, 4))


def layer_of(task, seed):
    """Return the layer of a task: planted, awkward, a parity or its control."""
    if task.kind not in PLANTED:
        parity = recovery.parity_layer(task.heads, task.d, seed)
        if task.kind == "control":
            return recovery.control_layer(parity, seed)
        W = stream(seed, "values").standard_normal(parity.W.shape) / np.sqrt(task.d)
        return parity if task.kind == "parity" else recovery.Layer(parity.Theta, W)
    Theta, W = recovery.planted_layer(task.heads, task.d, stream(seed, "teacher"), task.scale)
    rng = stream(seed, "awkward")
    if task.kind == "close heads":
        Theta = Theta[:1] + 0.1 * Theta
    elif task.kind == "parallel values":
        W = rng.standard_normal((task.heads, 1, 1)) * np.outer(*rng.standard_normal((2, task.d))) / np.sqrt(task.d)
    elif task.kind == "one-entry Theta":
        Theta = np.zeros_like(Theta)
        for head, place in enumerate(rng.choice(task.d**2, task.heads, replace=False)):
            Theta[head].flat[place] = task.scale
    return recovery.Layer(Theta, W)


def measure(task, method, seed):
    """Return the error on fresh examples, the seconds, and for a parity how often its sign is right."""
    truth = layer_of(task, seed)
    data, fresh = (
        examples(truth, tokens.boolean(count, task.k, task.d, stream(seed, name)))
        for name, count in (("data", task.n), ("test", FRESH))
    )
    found = recovery.learn(data.X, data.Y, task.heads, method=method, max_seconds=task.seconds, seed=seed)
    right = recovery.on_slice_accuracy(truth, found.layer, fresh.X) if task.kind == "parity" else None
    return fresh.residual(found.Theta, found.W), found.certificate.seconds, right, found.certificate.met


def query(d, rank, noise, seed):
    """Return the queries that one head took, and the relative error of Theta."""
    truth = query_layer(1, d, 1, seed)
    if rank is not None:
        U, s, V = np.linalg.svd(truth.Theta[0])
        truth = recovery.Layer((U[:, :rank] * s[:rank] @ V[:rank])[None], truth.W)
    found = recovery.learn_from_queries(oracle_of(truth, noise, seed), d, rank=rank, noise=noise, seed=seed)
    error = np.linalg.norm(found.Theta - truth.Theta) / np.linalg.norm(truth.Theta)
    return found.certificate.queries, float(error)


def main():
    options = arguments()
    planted, parities = LAYERS, PARITIES
    if options.quick:
        planted, parities = ([task._replace(d=5, n=300, seconds=0.5)] for task in (LAYERS[1], PARITIES[0]))
    jobs = [
        (task, method, seed)
        for task in (*planted, *parities)
        for method in options.methods
        for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(options.workers, initializer=pin_threads) as pool:
        results = {}
        for job, result in zip(jobs, pool.map(measure, *zip(*jobs, strict=True)), strict=True):
            results.setdefault(job[:2], []).append(result)
            if job[2] == options.seeds - 1:
                print(f"{job[0]}, {job[1]} done", file=sys.stderr)
    print(table("planted layers", planted, options.methods, results), "\n")
    print(table("parities", parities, options.methods, results), "\n")
    print(query_table(options.seeds, (5,) if options.quick else (5, 10, 20, 40)))
    print("\n" + ways_table(options.seeds, WAYS[:1] if options.quick else WAYS))
    if options.out:
        rows = [{"task": task._asdict(), "method": method, "runs": runs} for (task, method), runs in results.items()]
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


def table(title, tasks, methods, results):
    """Return a Markdown table: successes and their interval, median error, seconds and certificates that were met."""
    lines = [f"| {title} | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
    for task in tasks:
        cells = []
        for method in methods:
            errors, seconds, right, met = np.array(results[task, method], dtype=float).T
            hits, low, high = counted(errors, 0.95)
            text = f"{hits}/{len(errors)} ({low:.2f}-{high:.2f}), {np.median(errors):.0e}, {seconds.mean():.1f} s"
            if task.kind == "parity":
                text += f", sign {right.mean():.2f} ({right.min():.2f}-{right.max():.2f})"
            wrong = int(np.sum((met == 1) & (errors >= SUCCESS)))
            cells.append(text + (f", {wrong} certified wrongly" if wrong else ""))
        lines.append(f"| {task} | {' | '.join(cells)} |")
    return "\n".join(lines)


def query_table(seeds, dimensions):
    """Return a Markdown table of one head from queries: exact, with a known rank, with noise."""
    lines = ["| d | queries | d² + d | largest error | rank 2: queries | largest error | noise 1e-4: median error |"]
    lines.append("|---" * 7 + "|")
    for d in dimensions:
        exact, low, noisy = (
            np.array([query(d, rank, noise, seed) for seed in range(seeds)])
            for rank, noise in ((None, 0.0), (2, 0.0), (None, 1e-4))
        )
        lines.append(
            f"| {d} | {exact[:, 0].max():.0f} | {d * d + d} | {exact[:, 1].max():.0e} | {low[:, 0].max():.0f} |"
            f" {low[:, 1].max():.0e} | {np.median(noisy[:, 1]):.1e} |"
        )
    return "\n".join(lines)


def ways_table(seeds, sizes):
    """Return a Markdown table of several heads from queries, the three ways: parameters to 1e-6, worst error, queries."""
    lines = ["| H, d, outputs | isolate (H unknown) | ordinary | copies | 4Hd² - 2H + 1 |", "|---" * 5 + "|"]
    for H, d, outputs in sizes:
        cells = []
        for method in ("isolate", "ordinary", "copies"):
            if method == "copies" and H > 5:
                cells.append("not tried")
                continue
            runs = [several(H, d, outputs, method, seed) for seed in range(seeds)]
            errors = np.array([error for error, _ in runs])
            _, low, high = share_interval(int(np.sum(errors < 1e-6)), seeds, 0.95)
            cells.append(
                f"{np.sum(errors < 1e-6)}/{seeds} ({low:.2f}-{high:.2f}), {errors.max():.0e},"
                f" {np.nanmedian([queries for _, queries in runs]):.0f}"
            )
        lines.append(f"| {H}, {d}, {outputs} | {' | '.join(cells)} | {4 * H * d * d - 2 * H + 1} |")
    return "\n".join(lines)


def several(H, d, outputs, method, seed):
    """Return the error of all parameters (infinite if their number is wrong), and the queries."""
    truth = query_layer(H, d, outputs, seed)
    heads = None if method == "isolate" else H
    found = recovery.learn_from_queries(oracle_of(truth), d, heads=heads, method=method, seed=seed)
    return recovery.parameter_error(found, truth), found.certificate.queries


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds, in five dimensions")
    parser.add_argument("--seeds", type=int, default=10, help="draws of everything (10)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--out", type=Path, help="where to write the numbers, as JSON")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="learners to run (all)")
    options = parser.parse_args()
    if options.out and not options.out.resolve().parent.is_dir():
        parser.error(f"there is no folder {options.out.parent}")
    if options.seeds < 1 or options.workers < 1:
        parser.error("--seeds and --workers must be at least 1")
    return options


if __name__ == "__main__":
    main()
