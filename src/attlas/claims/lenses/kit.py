"""What each learner of the atlas makes of one softmax teacher: the same examples in, attention on fresh sequences out.

Of two tokens a row of attention is one number, the weight A_aa = sigma(h_aa - h_ab) that a token gives itself. Learners
predict it for both tokens of every fresh sequence; what they know besides X and y is said at each.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas import aim, features
from attlas.layers import attention_indices
from attlas.numerics import stream
from attlas.recovery.examples import Examples
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import variable_projection

Array = NDArray[np.float64]

CHANNEL = aim.Softmax(2)
HEADS = 4  # finite heads, over d: four times as many trained numbers as S has
LEAST_DECAY = 3e-3  # below the threshold the best decay tends to zero; the error changes by a per cent from here on
FITTED = 1e-6  # the loss of a descent that has fitted its data


class LearnerInput(NamedTuple):
    """Examples (n, 2, d), their outputs (n, 2, 2), the teacher's width, fresh sequences, the number of starts, a seed."""

    X: Array
    y: Array
    rho: float
    fresh: Array
    starts: int
    seed: int


class Predictions(NamedTuple):
    """What an algorithm makes of its examples.

    Attributes
    ----------
    attention : dict
        Attention (fresh, 2), or that of several runs (runs, fresh, 2), by learner.
    converged : bool
        Whether the algorithm behind it met its own tolerance.
    settled : bool
        Whether it came near enough to be judged: message passing to a change of a thousandth of V, descent to a fit.
    """

    attention: dict[str, Array]
    converged: bool
    settled: bool


def message_passing(given: LearnerInput) -> Predictions:
    """Return the posterior mean of the attention, as message passing sees it. It knows the prior."""
    found = aim.message_passing(given.X, given.y, CHANNEL, given.rho, tol=1e-5, max_steps=200, throw=False)
    V = float(found.history[-1])
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    spread = gaps(given.fresh, found.value)[..., None] + np.sqrt(3 * V) * nodes  # of h_aa - h_ab: variance 2V + V
    settled = found.residual < 1e-3 * V or V < 1e-6
    return Predictions({"amp": sigmoid(spread) @ (weights / weights.sum())}, found.converged, bool(settled))


def descent(given: LearnerInput) -> Predictions:
    """Return the attention of every run of gradient descent, each a learner, and their mean. They know the width."""
    d = given.X.shape[2]
    found = aim.descend(
        given.X,
        given.y,
        CHANNEL,
        round(given.rho * d),
        inits=given.starts,
        seed=given.seed,
        max_steps=2500,
        throw=False,
    )
    runs = np.array([sigmoid(gaps(given.fresh, S)) for S in found.singles])
    fitted = bool(found.losses.max() < FITTED)
    return Predictions({"single": runs, "averaged": runs.mean(0)}, found.converged, fitted)


def trained(given: LearnerInput) -> Predictions:
    """Return the attention that training with weight decay reaches. It knows the decay that theory finds best."""
    n, _, d = given.X.shape
    decay, start = _best_decay(n / d**2, given.rho), None
    for step in (10 * decay, decay):
        found = aim.minimise(given.X, given.y, CHANNEL, step, start=start, tol=3e-3, max_steps=2000, throw=False)
        start = found.value
    return Predictions({"trained": sigmoid(gaps(given.fresh, found.value))}, found.converged, found.converged)


@cache
def _best_decay(alpha: float, rho: float) -> float:
    return max(aim.best_decay(CHANNEL, alpha, rho).decay, LEAST_DECAY)


def fitted_head(given: LearnerInput) -> Predictions:
    """Return the attention of a head fitted to what the layer puts out, A X. It knows nothing else.

    The teacher takes Tr S from its diagonal, which no x_a^T Theta x_b can. So every token also carries its place, +1 or -1,
    as one more coordinate, whose square is that constant. The search starts near uniform attention; from logits of size one
    it stalls where examples are few.
    """
    X, fresh = placed(given.X), placed(given.fresh)
    start = 0.1 * random_start(1, X.shape[2], stream(given.seed, "start", "varpro"))
    found = variable_projection(Examples.of(X, given.y @ X), start, max_steps=60, tol=1e-6)
    attention, _ = Examples(fresh, fresh, fresh).attend(found.Theta[0])
    return Predictions({"varpro": np.einsum("naa->na", attention)}, found.converged, found.converged)


def random_features(given: LearnerInput) -> Predictions:
    """Return the attention by ridge regression on frozen heads, infinitely many and 4d; leave-one-out chooses the penalty.

    A row is a function of two tokens, A_aa = f(x_a; x_b), so every sequence gives two examples of it: a query and one key,
    divided by sqrt(d), which puts them near the sphere. Values are cut to [0, 1].
    """
    d = given.X.shape[2]
    examples, own = pairs(given.X), np.einsum("naa->na", given.y).reshape(-1)
    sizes: dict[str, Any] = {"kernel": "infinite", "heads": HEADS * d}
    found = {}
    for name, heads in sizes.items():
        model = features.RandomAttentionRegressor(heads, random_state=given.seed).fit(examples, own)
        found[name] = np.clip(model.predict(pairs(given.fresh)), 0, 1).reshape(-1, 2)
    return Predictions(found, True, True)


ALGORITHMS: dict[str, Callable[[LearnerInput], Predictions]] = {
    "amp": message_passing,
    "descent": descent,
    "trained": trained,
    "varpro": fitted_head,
    "features": random_features,
}


def gaps(X: Array, S: Array) -> Array:
    """Return h_aa - h_ab of both tokens, (n, 2)."""
    h = attention_indices(X, S)
    return np.asarray(np.einsum("naa->na", h) - h[:, :1, 1])


def sigmoid(x: Array) -> Array:
    """Return 1/(1 + exp(-x))."""
    from scipy.special import expit

    return np.asarray(expit(x))


def placed(X: Array) -> Array:
    """Return tokens with their place, +1 or -1, as one more coordinate."""
    place = np.broadcast_to(np.array([[1.0], [-1.0]]), (len(X), 2, 1))
    return np.concatenate([X, place], axis=2)


def pairs(X: Array) -> Array:
    """Return (query, key) sequences (2n, 2, d): each token beside the other one, over sqrt(d)."""
    n, _, d = X.shape
    return np.asarray(np.stack([X, X[:, ::-1]], axis=1).reshape(2 * n, 2, d) / np.sqrt(d))
