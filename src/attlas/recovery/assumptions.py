"""Which assumption an oracle breaks: a few queries whose answers every attention layer would give alike."""

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.oracle import CountingOracle

Array = NDArray[np.float64]

_EXACT = 1e-6  # relative: what rounding does not explain
_COPIES = 5  # of every token; the sequence is then as long as the longest of a certificate


def broken_assumption(ask: CountingOracle, d: int, noise: float, bias: bool, rng: np.random.Generator) -> str:
    """Return a clause that says what is wrong with the oracle, or nothing if these eleven queries do not show it.

    Asked of every layer: the same answer twice; no output for a zero token, if there is no output bias; linear in a single
    token; blind to the order of the tokens before the last; the same if every token stands there many times; attention that
    is uniform for a zero token, if there is no key bias. The first that fails is named.
    """
    x, y, z = rng.standard_normal((3, d))
    zero = np.zeros(d)
    asked = [[x, y, z], [x, y, z], [zero], [x], [2 * x], [z], [x + z], [x, y, z], [y, x, z], [x, zero]]
    asked.append([x] * _COPIES + [y] * _COPIES + [z] * _COPIES)
    answers = ask.many([np.array(each) for each in asked])
    first, again, nothing, one, twice, other, both, given, swapped, pair, copied = answers
    size = max(float(np.linalg.norm(each)) for each in answers)
    level = max(_EXACT, 20 * noise) * max(size, 1e-300)

    def apart(left: Array, right: Array) -> bool:
        return float(np.linalg.norm(left - right)) > level

    more = apart(twice - nothing, 2 * (one - nothing)) or apart(both + nothing, one + other)
    objections = (
        (
            apart(first, again),
            f"the oracle answers the same query differently, by {_relative(first, again):.1e}: give noise=",
        ),
        (
            not bias and apart(nothing, 0 * nothing),
            "a zero token has an output: there is an output bias; give bias=True",
        ),
        (
            more,
            "the answer to a single token is not linear in it: there is more than attention, such as a norm, a ReLU or keys"
            " that are no tokens",
        ),
        (
            apart(given, swapped),
            "the order of earlier tokens matters: there are positions, which are to be added to the tokens first",
        ),
        (
            apart(given, copied),
            f"{_COPIES} copies of every token have another answer: the length matters, as where attention sees few tokens"
            " only or its scale depends on their number",
        ),
        (
            not bias and apart(pair, one / 2),
            "a zero token does not attend to all alike: there are key biases (give bias=True), or something is added to the"
            " attention, such as a residual connection",
        ),
    )
    return next((clause for broken, clause in objections if broken), "")


def _relative(first: Array, second: Array) -> float:
    return float(np.linalg.norm(first - second) / max(float(np.linalg.norm(first)), 1e-300))
