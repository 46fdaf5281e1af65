"""How large a layer `learn` finds, how often, and from how many gradients; PyTorch's optimisers beside it on the same data.

    python benchmarks/recovery_reach.py                                   # a minute: few layers, as `make bench` runs it
    python benchmarks/recovery_reach.py --seeds 20 --out reach.jsonl      # half an hour on a quiet machine; resumes
    python benchmarks/recovery_reach.py --table reach.jsonl               # the tables of the documentation

A layer counts as found if its outputs on fresh tokens are right to 1e-6 and, for `learn`, the certificate is met. Layers are
as `torch.nn.MultiheadAttention` starts, their logits `scale` times as large, with biases N(0, 1/4); or trained. Rivals have
the shape of the layer, batches of as many tokens, as many gradients as `learn` may use, and the better of two rates. Seconds
are CPU time of one thread; a product is one of two 1024 x 1024 matrices in single precision, timed before every layer.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas.lab.execute import pin_threads
from attlas.numerics import share_interval, stream
from attlas.recovery import Layer, learn
from attlas.recovery.examples import Examples
from attlas.recovery.factor_fit import factor_fit
from timing import best

FOUND = 1e-6
FRESH = 500
BATCHES, GRADIENTS, RATES = 2000, 1000, (1e-3, 1e-2)  # of the rivals: Adam's batches and rates, gradients of L-BFGS


class Cell(NamedTuple):
    """A kind of layer. `told` is whether the number of heads is; `most` limits the seeds where a layer takes long."""

    d: int
    heads: int = 8
    bias: bool = False
    scale: float = 1.0
    signs: bool = False
    trained: bool = False
    told: bool = True
    k: int = 4
    most: int = 100

    @property
    def n(self) -> int:
        """Examples: 128 tokens for each dimension, 32 times as many outputs as unknowns."""
        return min(128 * self.d // self.k, 6000)

    def __str__(self) -> str:
        own = ("biases", self.bias), ("±1 tokens", self.signs), ("trained", self.trained), ("H not told", not self.told)
        scale = [f"logits x {self.scale:g}"] if self.scale != 1 else []
        return ", ".join([f"d = {self.d}, H = {self.heads}", *scale, *(name for name, has in own if has)])


PLAIN = [Cell(d, bias=bias) for d in (16, 32, 64) for bias in (False, True)]
CELLS = [
    *PLAIN,
    *(Cell(32, scale=scale, bias=True) for scale in (4.0, 16.0, 32.0)),
    *(Cell(32, heads) for heads in (16, 32)),
    Cell(32, signs=True, bias=True),
    Cell(16, 4, told=False),
    Cell(32, told=False, most=5),
    Cell(32, bias=True, trained=True, most=10),
    Cell(64, told=False, most=1),
    *(Cell(128, bias=bias, most=3) for bias in (False, True)),
    *(Cell(256, bias=bias, most=1) for bias in (False, True)),
]
RIVALS = [
    *(Cell(d, bias=True, most=5) for d in (16, 32)),
    Cell(32, scale=16.0, most=5),
    Cell(64, bias=True, most=3),
]
SHORT = [Cell(32, bias=True, most=2), Cell(16, 4, told=False, most=1), Cell(64, most=1)]


def layer_of(cell: Cell, seed: int) -> Layer:
    """Draw a layer."""
    d, rng = cell.d, stream(seed, "teacher", "reach")
    if cell.trained:
        return trained(cell, seed)
    bound = np.sqrt(6 / (4 * d))
    Wq, Wk, Wv = rng.uniform(-bound, bound, (3, d, d))
    Wo = rng.uniform(-1, 1, (d, d)) / np.sqrt(d)
    biases = rng.standard_normal((4, d)) / 2 if cell.bias else (None,) * 4
    return Layer.from_weights(cell.scale * Wq, Wk, Wv, Wo, *biases, heads=cell.heads)


def trained(cell: Cell, seed: int) -> Layer:
    """Train a layer for 1000 batches on a task that is no layer: the way from a token to the nearest other, bent by tanh."""
    X = tokens_of(cell, 4000, stream(seed, "task", "reach"))
    apart = np.sum((X[:, :, None] - X[:, None]) ** 2, axis=3) + 1e9 * np.eye(cell.k)
    nearest = np.take_along_axis(X, np.argmin(apart, axis=2)[:, :, None], axis=1)
    data = Examples.of(X, np.tanh(nearest - X) + 0.5)
    rng = stream(seed, "training", "reach")
    fit = factor_fit(data, cell.heads, cell.d // cell.heads, rng, biases=cell.bias, max_steps=1000, max_polish=0)
    return fit.layer


def tokens_of(cell: Cell, n: int, rng: np.random.Generator) -> Any:
    X = rng.standard_normal((n, cell.k, cell.d))
    return np.sign(X) if cell.signs else X


def measure(cell: Cell, method: str, seed: int) -> dict[str, Any]:
    """Return the error on fresh tokens, whether that counts, CPU seconds, products and gradients."""
    truth = layer_of(cell, seed)
    X, fresh = (tokens_of(cell, n, stream(seed, name, "reach")) for name, n in (("data", cell.n), ("test", FRESH)))
    a = stream(seed, "product").standard_normal((1024, 1024)).astype(np.float32)
    product = best(lambda: a @ a, clock=time.process_time)
    began = time.process_time()
    predict, sure, gradients = METHODS[method](cell, X, truth(X), seed)
    took = time.process_time() - began
    Y = truth(fresh)
    error = float(np.linalg.norm(predict(fresh) - Y) / np.linalg.norm(Y))
    found = bool(error < FOUND and sure)
    return {"error": error, "found": found, "seconds": took, "products": took / product, "gradients": gradients}


Fitted = tuple[Callable[[Any], Any], bool, int]


def by_learn(cell: Cell, X: Any, Y: Any, seed: int) -> Fitted:
    found = learn(X, Y, cell.heads if cell.told else None, bias=cell.bias, seed=seed, max_starts=3)
    return found.layer, found.converged and found.layer.heads == cell.heads, found.steps


def by_adam(cell: Cell, X: Any, Y: Any, seed: int) -> Fitted:
    """Minibatches in single precision at a rate that falls as a cosine; the better of two rates, gradients of both."""
    import torch

    fits = []
    for rate in RATES:
        module, tokens, outputs, loss = _module(cell, X, Y, seed, torch.float32)
        optimiser = torch.optim.Adam(module.parameters(), lr=rate)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, BATCHES)
        rng, batch = stream(seed, "batches"), 500 // cell.k
        for _ in range(BATCHES):
            rows = torch.from_numpy(rng.choice(len(X), batch, replace=False))
            optimiser.zero_grad()
            loss(tokens[rows], outputs[rows]).backward()
            optimiser.step()
            falling.step()
        with torch.no_grad():
            fits.append((float(loss(tokens, outputs)), module))
    module = min(fits, key=lambda fit: fit[0])[1]
    return _predictor(module, torch.float32), True, BATCHES * len(RATES)


def by_lbfgs(cell: Cell, X: Any, Y: Any, seed: int) -> Fitted:
    """All examples in double precision, 30 pairs remembered, the strong Wolfe line search."""
    import torch

    module, tokens, outputs, loss = _module(cell, X, Y, seed, torch.float64)
    optimiser = torch.optim.LBFGS(
        module.parameters(),
        max_iter=GRADIENTS,
        max_eval=GRADIENTS,
        history_size=30,
        line_search_fn="strong_wolfe",
        tolerance_grad=0.0,
        tolerance_change=0.0,
    )
    count = 0

    def closure() -> Any:
        nonlocal count
        count += 1
        optimiser.zero_grad()
        value = loss(tokens, outputs)
        value.backward()
        return value

    optimiser.step(closure)
    return _predictor(module, torch.float64), True, count


def _module(cell: Cell, X: Any, Y: Any, seed: int, dtype: Any) -> Any:
    """Return a fresh module of the layer's shape, the data as tensors, and the relative squared error."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(int(stream(seed, "start", "torch").integers(2**31)))
    module = torch.nn.MultiheadAttention(cell.d, cell.heads, bias=cell.bias, batch_first=True, dtype=dtype)
    tokens, outputs = (torch.from_numpy(each).to(dtype) for each in (X, Y))
    size = (outputs**2).mean()

    def loss(x: Any, y: Any) -> Any:
        return ((module(x, x, x, need_weights=False)[0] - y) ** 2).mean() / size

    return module, tokens, outputs, loss


def _predictor(module: Any, dtype: Any) -> Callable[[Any], Any]:
    import torch

    def predict(X: Any) -> Any:
        with torch.no_grad():
            x = torch.from_numpy(X).to(dtype)
            return module(x, x, x, need_weights=False)[0].double().numpy()

    return predict


METHODS: dict[str, Callable[[Cell, Any, Any, int], Fitted]] = {
    "learn": by_learn,
    "torch's Adam": by_adam,
    "torch's L-BFGS": by_lbfgs,
}


def jobs(cells: list[Cell], rivals: list[Cell], seeds: int) -> Iterator[tuple[Cell, str, int]]:
    """Yield what is to be measured, all cells at one seed before the next, the largest layers last."""
    usual = [cell for cell in cells if cell.most > seeds]
    for seed in range(seeds):
        yield from ((cell, "learn", seed) for cell in usual)
    for cell in (cell for cell in cells if cell not in usual):
        yield from ((cell, "learn", seed) for seed in range(cell.most))
    for cell in rivals:
        yield from ((cell, method, seed) for seed in range(cell.most) for method in METHODS if method != "learn")


def table(rows: list[dict[str, Any]]) -> None:
    """Print a Markdown table: a row for every kind of layer and method."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["cell"], row["method"]), []).append(row)
    print("| layer | examples | by | found | 95 % | median error | gradients | CPU seconds | products |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (cell, method), own in groups.items():
        hits = sum(row["found"] for row in own)
        _, low, high = share_interval(hits, len(own), 0.95)
        middle = {key: np.median([row[key] for row in own]) for key in ("error", "gradients", "seconds", "products")}
        print(
            f"| {cell} | {own[0]['n']} | {method} | {hits} of {len(own)} | {low:.2f} to {high:.2f} | {middle['error']:.0e} |"
            f" {middle['gradients']:.0f} | {middle['seconds']:.1f} | {middle['products']:.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, help="of every cell; the long form")
    parser.add_argument("--out", type=Path, help="a file of results, one a line, that is resumed")
    parser.add_argument("--table", type=Path, help="print the tables of such a file")
    options = parser.parse_args()
    if options.table:
        table(read(options.table))
        return
    pin_threads()
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed: no rivals")
        rivals = []
    else:
        rivals = RIVALS if options.seeds else [SHORT[0]]
    done = read(options.out) if options.out and options.out.exists() else []
    known = {(row["cell"], row["method"], row["seed"]) for row in done}
    for cell, method, seed in jobs(CELLS if options.seeds else SHORT, rivals, options.seeds or 3):
        if (str(cell), method, seed) in known:
            continue
        row = {"cell": str(cell), "method": method, "seed": seed, "n": cell.n, **measure(cell, method, seed)}
        done.append(row)
        if options.out:
            with options.out.open("a", encoding="utf-8") as file:
                print(json.dumps(row), file=file, flush=True)
    table(done)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
