"""PyTorch modules read, written and recovered: errors, time, memory and queries, by size, biases, mask, rank and precision.

    python studies/torch_layers.py             some minutes on one core
    python studies/torch_layers.py --quick     two small rows

It needs PyTorch. Every row runs in a process of its own with one thread. Modules have twice PyTorch's starting weights for
queries and keys and normal biases of variance 1/4. *There and back* is the largest difference of outputs, relative, between
the module and `to_torch(from_torch(module))`, in its precision. Examples are outputs of the module for sequences of normal
tokens; heads, rank, mask and biases are told for examples, biases for queries. Time is CPU time in seconds and, in brackets,
in products of two 2048 x 2048 float64 matrices (G) timed in the same process; memory is the growth of the resident set.
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

from attlas import recovery
from attlas.numerics import stream


class Case(NamedTuple):
    """Dimension, heads, tokens, biases, mask, precision, number of examples."""

    d: int
    heads: int
    k: int
    bias: bool
    mask: str = "none"
    precision: str = "float64"
    n: int = 400


CASES = [
    Case(8, 2, 4, False),
    Case(8, 2, 4, True),
    Case(8, 2, 4, True, "causal"),
    Case(8, 2, 6, True, "padding"),
    Case(8, 2, 4, True, "none", "float32"),
    Case(8, 8, 4, True, n=600),
    Case(16, 4, 4, True, n=800),
    Case(16, 4, 4, True, "causal", n=800),
    Case(16, 4, 4, True, "none", "float32", n=800),
    Case(32, 8, 4, False, n=2000),
    Case(32, 8, 4, True, n=2000),
    Case(32, 8, 16, True, n=1000),
    Case(64, 8, 4, False, n=2000),
    Case(64, 8, 4, True, n=2000),
]
QUICK = [Case(6, 2, 4, True, "causal", n=150), Case(6, 2, 4, True, "none", "float32", n=150)]
HEADER = (
    "| d, H, k | biases | mask | precision | there and back | examples | error | s (G) | MB"
    " | queries | error | s (G) | MB |"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small rows")
    parser.add_argument("--case", help="one row, as JSON, in this process")
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        sys.exit('this study needs PyTorch: pip install "attlas[torch]"')
    if options.case:
        print(json.dumps(row(Case(*json.loads(options.case)))))
        return
    print("\n".join([HEADER, "|---" * 13 + "|"]), flush=True)
    for case in QUICK if options.quick else CASES:
        command = [sys.executable, __file__, "--case", json.dumps(case)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            sys.exit(done.stderr)
        print(line(case, json.loads(done.stdout)), flush=True)


@threadpool_limits.wrap(limits=1)
def row(case):
    """Return what one row of the table says: there and back, from examples, from queries."""
    import torch

    torch.set_num_threads(1)
    module = drawn(torch, case)
    truth = recovery.from_torch(module, causal=case.mask == "causal")
    X = stream(0, "data").standard_normal((case.n, case.k, case.d))
    padding = mask = None
    if case.mask == "padding":
        padding = np.arange(case.k) >= stream(0, "lengths").integers(2, case.k + 1, case.n)[:, None]
    if case.mask == "causal":
        mask = torch.triu(torch.ones(case.k, case.k, dtype=torch.bool), 1)

    def outputs(which):
        tokens = torch.tensor(X, dtype=getattr(torch, case.precision))
        hidden = None if padding is None else torch.tensor(padding)
        with torch.no_grad():
            found = which(tokens, tokens, tokens, key_padding_mask=hidden, attn_mask=mask, need_weights=False)[0]
        return found.double().numpy()

    Y = outputs(module)
    back = np.abs(outputs(truth.to_torch(dtype=case.precision)) - Y).max() / np.abs(Y).max()
    small = truth if case.d <= 8 else recovery.Layer(truth.Theta[:, :4, :4], truth.W[:, :4, :4])
    recovery.learn_from_queries(lambda x: small(x[None])[0, -1], small.d, heads=None)  # imports
    rank = case.d // case.heads
    told = {"bias": case.bias, "causal": case.mask == "causal", "padding": padding, "rank": rank}
    examples = measured(lambda: recovery.learn(X, Y, case.heads, **told))
    queries = measured(lambda: recovery.learn_from_queries(module, case.d, heads=None, bias=case.bias))
    return {
        "back": float(back),
        "gemm": product(),  # last, so that its memory is not in the way
        "examples": summary(examples, truth),
        "queries": summary(queries, truth) | {"asked": queries[0].certificate.queries},
    }


def drawn(torch, case):
    """Return a module with twice the usual weights of queries and keys, and biases."""
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, case.precision)
    module = torch.nn.MultiheadAttention(case.d, case.heads, bias=case.bias, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            scale = 0.5 if name.endswith("bias") else 1 / np.sqrt(case.d)
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
            if name == "in_proj_weight":
                parameter[: 2 * case.d] *= 2**0.5
    return module.to(kind).eval()


def measured(work):
    """Return what this returns, its CPU seconds and the megabytes it adds to the largest resident set."""
    before, start = resident(), time.process_time()
    found = work()
    return found, time.process_time() - start, resident() - before


def summary(found, truth):
    result, seconds, megabytes = found
    error = recovery.parameter_error(result.canonical(), truth.canonical())
    return {"met": result.certificate.met, "error": error, "seconds": seconds, "megabytes": megabytes}


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def product():
    """Return CPU seconds of a product of two 2048 x 2048 matrices, the best of three."""
    a = np.random.default_rng(0).standard_normal((2048, 2048))
    times = []
    for _ in range(3):
        start = time.process_time()
        a @ a
        times.append(time.process_time() - start)
    return min(times)


def line(case, found):
    def part(one):
        error = f"{one['error']:.0e}" if one["met"] else f"not certified ({one['error']:.0e})"
        return f"{error} | {one['seconds']:.2g} ({one['seconds'] / found['gemm']:.2g}) | {one['megabytes']:.0f}"

    start = f"| {case.d}, {case.heads}, {case.k} | {'yes' if case.bias else 'no'} | {case.mask} | {case.precision}"
    examples, queries = found["examples"], found["queries"]
    return f"{start} | {found['back']:.0e} | {case.n} | {part(examples)} | {queries['asked']} | {part(queries)} |"


if __name__ == "__main__":
    main()
