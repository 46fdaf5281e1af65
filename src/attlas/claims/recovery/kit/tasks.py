"""What claims about recovery share: planted tasks, learners with budgets in steps, and how successes are counted."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from attlas import layers, tokens
from attlas.numerics import share_interval, stream
from attlas.recovery import Layer, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.search import gradient_search, random_start
from attlas.recovery.variable_projection import best_of

SUCCESS = 1e-3  # relative error on fresh examples


class Budget(NamedTuple):
    """Starts, steps of variable projection and iterations of L-BFGS from each, and batches of Adam."""

    starts: int = 3
    steps: int = 60
    adam_steps: int = 10_000
    lbfgs_steps: int = 500


def _varpro(data: Examples, heads: int, seed: int, budget: Budget) -> Fit:
    streams = (stream(seed, "start", "varpro", str(number)) for number in range(budget.starts))
    return best_of(data, (random_start(heads, data.X.shape[2], rng) for rng in streams), max_steps=budget.steps)


def _lbfgs(data: Examples, heads: int, seed: int, budget: Budget) -> Fit:
    return gradient_search(
        data, heads, "lbfgs", stream(seed, "start", "lbfgs"), max_starts=budget.starts, max_steps=budget.lbfgs_steps
    )


def _adam(data: Examples, heads: int, seed: int, budget: Budget) -> Fit:
    return gradient_search(data, heads, "adam", stream(seed, "start", "adam"), max_steps=budget.adam_steps)


Name = Literal["varpro", "lbfgs", "adam"]
# a learner is a function of examples, the number of heads, a seed and a budget; its best start in training counts
LEARNERS: dict[Name, Callable[[Examples, int, int, Budget], Fit]] = {"varpro": _varpro, "lbfgs": _lbfgs, "adam": _adam}


def planted(law: Literal["boolean", "gaussian"], heads: int, d: int, k: int, scale: float, n: int, seed: int) -> Any:
    """Return the layer, n examples to learn from and 500 fresh ones."""
    truth = Layer(*planted_layer(heads, d, stream(seed, "teacher"), scale))
    draw = tokens.boolean if law == "boolean" else tokens.gaussian
    parts = (draw(count, k, d, stream(seed, name)) for name, count in (("data", n), ("test", 500)))
    return truth, *(examples(truth, X) for X in parts)


def examples(layer: Layer, X: Any) -> Examples:
    """Return the layer's outputs on X as examples."""
    return Examples.of(X, layers.multi_head_attention(X, layer.Theta, layer.W))


def counted(errors: Sequence[float], level: float) -> tuple[int, float, float]:
    """Return how many errors are successes, and the interval of their share."""
    hits = int(np.sum(np.asarray(errors) < SUCCESS))
    return hits, *share_interval(hits, len(errors), level)[1:]


def query_layer(heads: int, d: int, outputs: int, seed: int) -> Layer:
    """Return a layer with Theta entries N(0, 4/d) and values N(0, 1/d)."""
    return Layer(*planted_layer(heads, d, stream(seed, "teacher"), 2 * np.sqrt(d), d_out=outputs))


def oracle_of(layer: Layer, noise: float = 0.0, seed: int = 0) -> Any:
    """Return the function that a person with queries sees: the last token's output, with noise relative to its size."""
    rng = stream(seed, "noise")

    def oracle(X: Any) -> Any:
        answer = layer(X[None])[0, -1]
        return answer + noise * np.sqrt(np.mean(answer**2)) * rng.standard_normal(answer.shape) if noise else answer

    return oracle
