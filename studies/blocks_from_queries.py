"""Whole blocks from value queries: how many are recovered, how well, from how many queries; and where it stops.

    python studies/blocks_from_queries.py --blocks 20

Prints three Markdown tables. A block counts as found if it is certified and its largest error on 40 fresh queries (standard
normal tokens, one to twelve of them) is below 1e-6, or a thousand times the noise. Heads, neurons and residuals are not
told; noise is.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

from attlas import recovery
from attlas.lab.execute import pin_threads
from attlas.numerics import stream

SIZES = (  # H, d, h, outputs, r_a, r_g
    (1, 4, 4, 4, 1, 1),
    (1, 4, 4, 4, 0, 0),
    (1, 4, 4, 1, 1, 0),
    (1, 8, 16, 8, 1, 1),
    (1, 8, 16, 1, 1, 0),
    (1, 12, 4, 1, 1, 0),
    (1, 12, 32, 12, 1, 1),
    (2, 4, 4, 1, 1, 0),
    (2, 4, 32, 4, 1, 1),
    (2, 8, 16, 8, 1, 1),
    (2, 8, 16, 8, 0, 0),
    (2, 8, 16, 1, 1, 0),
    (2, 12, 32, 12, 1, 1),
    (4, 8, 16, 8, 0, 1),
    (4, 8, 16, 1, 0, 0),
)
NOISY = ((1, 4, 4, 4, 1, 1), (1, 4, 8, 1, 1, 0), (1, 8, 16, 8, 1, 1), (2, 6, 12, 6, 1, 1))


def drawn(size, seed):
    """Return a random block of one of the sizes."""
    H, d, h, outputs, r_a, r_g = size
    return recovery.planted_block(
        H, d, h, seed, d_out=outputs, attention_residual=bool(r_a), network_residual=bool(r_g)
    )


def spoiled(kind, seed):
    """Return a block with two heads, d = 6 and twelve neurons that is special in one way."""
    return KINDS[kind](drawn((2, 6, 12, 6, 1, 1), seed))


def scaled(factor):
    """Return the change of a block that multiplies all Theta."""
    return lambda block: replace(block, Theta=factor * block.Theta)


def apart(gap):
    """Return the change of a block that makes its two Theta differ by a gap."""
    return lambda block: replace(block, Theta=block.Theta[0] + gap * np.stack([0 * block.Theta[1], block.Theta[1]]))


def fewer_neurons(block):
    """Return the block with a neuron that never switches, one that nobody hears, and two with one hyperplane."""
    A, a0, B = block.A.copy(), block.a0.copy(), block.B.copy()
    A[0], B[:, 1], A[3], a0[3] = 0.0, 0.0, -2 * A[2], -2 * a0[2]
    return replace(block, A=A, a0=a0, B=B)


def singular_without_residual(block):
    """Return the block without residual around attention, its values opposite in one output."""
    W = block.W.copy()
    W[1, :, 0] = -W[0, :, 0]
    return replace(block, W=W, attention_residual=False)


def singular_with_residual(block):
    """Return the block with values that undo the residual of one direction."""
    W, v = block.W.copy(), np.ones(6) / np.sqrt(6)
    W[0] -= np.outer(v, v @ (np.eye(6) + W.sum(0)))
    return replace(block, W=W)


KINDS = {
    "Θ times 3": scaled(3),
    "Θ times 0.1": scaled(0.1),
    "Θ times 0.01": scaled(0.01),
    "heads of rank 3": lambda block: replace(block, Theta=block.Theta @ np.diag([1.0, 1, 1, 0, 0, 0])),
    "a₀ times 20": lambda block: replace(block, a0=20 * block.a0),
    "dead, silent and opposite neurons": fewer_neurons,
    "equal Θ": apart(0.0),
    "Θ apart by 0.1": apart(0.1),
    "Θ apart by 0.01": apart(0.01),
    "Θ apart by 0.001": apart(0.001),
    "ΣW singular, r_a = 0": singular_without_residual,
    "I + ΣW singular, r_a = 1": singular_with_residual,
}


def rounded(block):
    """Return the block as an oracle in single precision."""
    return lambda X: block(X.astype(np.float32)).astype(np.float32)


def noisy(block, noise, seed):
    """Return the block with relative noise on its answers."""
    rng = stream(seed, "noise")

    def oracle(X):
        answer = block(X)
        return answer + noise * np.sqrt(np.mean(answer**2)) * rng.standard_normal(answer.shape)

    return oracle


def outcome(oracle, block, seed, noise=0.0):
    """Return whether it was certified, its largest error on fresh queries, queries and seconds of the processor."""
    began = time.process_time()
    found = recovery.learn_block_from_queries(oracle, block.d, noise=noise, seed=seed)
    seconds = time.process_time() - began
    rng = stream(seed, "fresh")
    fresh = [rng.standard_normal((1 + k % 12, block.d)) for k in range(40)]
    answers = np.array([block(X) for X in fresh])
    error = np.inf
    if found.block is not None:
        missed = np.array([found.block(X) for X in fresh]) - answers
        error = float(np.linalg.norm(missed, axis=1).max() / np.sqrt(np.mean(np.sum(answers**2, axis=1))))
    return found.certificate.met, error, found.certificate.queries, seconds, found.certificate.reason


def row(name, rows, small=1e-6):
    """Return a line of a table."""
    met = [one for one in rows if one[0] and one[1] < small]
    lies = sum(one[0] and one[1] > 10 * small for one in rows)
    errors = [one[1] for one in met] or [np.nan]
    queries = [one[2] for one in rows]
    found = f"{len(met)} of {len(rows)}" + (f", {lies} certified but wrong" if lies else "")
    return (
        f"| {name} | {found} | {np.median(errors):.0e}, {max(errors):.0e} |"
        f" {np.median(queries):.0f}, {max(queries)} | {np.mean([one[3] for one in rows]):.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=5000)
    options = parser.parse_args()
    pin_threads()
    seeds = range(options.seed, options.seed + options.blocks)
    head = "found | error: median, largest | queries: median, largest | CPU s |\n|---|---|---|---|---|"
    print(f"| H, d, h, outputs, r_a, r_g | {head}", flush=True)
    for size in SIZES:
        rows = [outcome(drawn(size, seed), drawn(size, seed), seed) for seed in seeds]
        print(row(", ".join(map(str, size)), rows), flush=True)
        for reason in (one[4] for one in rows if not one[0]):
            print(f"<!-- {reason} -->", flush=True)
    print(f"\n| kind | {head}", flush=True)
    seeds = seeds[: max(1, options.blocks // 2)]
    for kind in KINDS:
        rows = [outcome(spoiled(kind, seed), spoiled(kind, seed), seed) for seed in seeds]
        print(row(kind, rows), flush=True)
    print(f"\n| noise: H, d, h, outputs, r_a, r_g | {head}", flush=True)
    for size in NOISY:
        blocks = [drawn(size, seed) for seed in seeds]
        for noise in (1e-12, 1e-9, 1e-8, 1e-7):
            rows = [outcome(noisy(b, noise, s), b, s, noise) for b, s in zip(blocks, seeds, strict=True)]
            print(row(f"{noise:g}: {', '.join(map(str, size))}", rows, max(1e-6, 1000 * noise)), flush=True)
        rows = [outcome(rounded(b), b, s, 1e-7) for b, s in zip(blocks, seeds, strict=True)]
        print(row(f"single precision: {', '.join(map(str, size))}", rows, 1e-4), flush=True)


if __name__ == "__main__":
    main()
