"""What claims about recovery share: planted tasks, learners with budgets in steps, and how successes are counted."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from attlas import layers, tokens
from attlas.numerics import share_interval, stream
from attlas.recovery import Layer, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.search import gradient_search, random_start
from attlas.recovery.variable_projection import best_of

SUCCESS = 1e-3  # relative error on fresh examples
LEARNERS = ("varpro", "lbfgs", "adam")


def planted(law: Literal["boolean", "gaussian"], heads: int, d: int, k: int, scale: float, n: int, seed: int) -> Any:
    """Return the layer, n examples to learn from and 500 fresh ones."""
    truth = Layer(*planted_layer(heads, d, stream(seed, "teacher"), scale))
    draw = tokens.boolean if law == "boolean" else tokens.gaussian
    parts = (draw(count, k, d, stream(seed, name)) for name, count in (("data", n), ("test", 500)))
    return truth, *(examples(truth, X) for X in parts)


def examples(layer: Layer, X: Any) -> Examples:
    """Return the layer's outputs on X as examples."""
    return Examples.of(X, layers.multi_head_attention(X, layer.Theta, layer.W))


def learned(
    learner: str, data: Examples, heads: int, seed: int, adam_steps: int, starts: int = 3, steps: int = 60
) -> Layer:
    """Return what a learner makes of the data: the best in training of its starts, or of Adam's only one.

    A start has `steps` of variable projection, or 500 iterations of L-BFGS, or `adam_steps` batches of 128.
    """
    d = data.X.shape[2]
    if learner != "varpro":
        rng = stream(seed, "start", learner)
        method: Literal["lbfgs", "adam"] = "lbfgs" if learner == "lbfgs" else "adam"
        fit = gradient_search(
            data, heads, method, rng, np.inf, max_starts=starts if learner == "lbfgs" else 1, adam_steps=adam_steps
        )
        return Layer(fit.Theta, fit.W)
    begin = (random_start(heads, d, stream(seed, "start", "varpro", str(number))) for number in range(starts))
    fit = best_of(data, begin, max_steps=steps)
    return Layer(fit.Theta, fit.W)


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
