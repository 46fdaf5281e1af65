"""The attention-indexed model: its teacher, and tasks to learn it from."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas import tokens
from attlas.aim.channels import Channel, complete
from attlas.errors import InputError
from attlas.inputs import integer, numbers, real, size
from attlas.numerics import Seed, generator, stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What a learner is given, and the teacher it should find.

    Attributes
    ----------
    X : array of shape (n, T, d)
    y : array of shape (n, T, T)
    S : array of shape (d, d)
        The teacher; (L, d, d) for a channel of L layers.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    S: Array = field(repr=False)


def sample(channel: Channel, d: int, alpha: float, rho: ArrayLike, seed: int) -> Task:
    """Draw a teacher and n = alpha d^2 sequences with their outputs.

    Parameters
    ----------
    channel : Channel
    d : int
    alpha : float
        Samples over d^2; n is rounded, and at least 1.
    rho : float
        Width over d; for several layers also one for each.
    seed : int
        The teacher, the data and the noise have streams of their own.

    Examples
    --------
    >>> from attlas import aim
    >>> task = aim.sample(aim.Softmax(tokens=2), d=10, alpha=0.2, rho=0.5, seed=0)
    >>> task.X.shape, task.y.shape, task.S.shape
    ((20, 2, 10), (20, 2, 2), (10, 10))
    """
    known = complete(channel)
    n = max(1, size(round(real(alpha, "alpha", above=0) * integer(d, "d") ** 2), "n = alpha d^2"))
    size(float(n) * known.tokens * d, "the tokens of all samples, alpha d^3,")
    X = tokens.gaussian(n, known.tokens, d, stream(seed, "data"))
    rhos = widths(rho, known.layers)
    if known.layers == 1:
        S = teacher(d, rhos[0], stream(seed, "teacher"))
    else:
        names = ("first", "second", *map(str, range(3, known.layers + 1)))[: known.layers]
        S = np.stack([teacher(d, r, stream(seed, "teacher", own)) for r, own in zip(rhos, names, strict=True)])
    return Task(X, known.respond(X, S, stream(seed, "noise")), S)


def widths(rho: ArrayLike, layers: int) -> Array:
    """Return the width of every layer, from one number or one for each."""
    if layers == 1:
        return np.array([real(rho, "rho", above=0)])
    values = numbers(rho, "rho", above=0)
    if values.shape not in ((), (layers,)):
        raise InputError(f"rho must be a number, or one for each of the {layers} layers; got shape {values.shape}")
    return np.array(np.broadcast_to(values, layers))


def teacher(d: int, rho: float, seed: Seed) -> Array:
    """Draw the query-key matrix S = W W^T / sqrt(r d), W of shape (d, r) with N(0, 1) entries, r = rho d.

    Its moments: E S = sqrt(r/d) I and E Tr S^2 / d = 1 + r/d + 1/d, so that Q = 1 + rho as d grows.

    Parameters
    ----------
    d : int
    rho : float
        Width r/d; r is rounded to the nearest integer and must be at least 1.
    seed : int or numpy.random.Generator

    Returns
    -------
    array of shape (d, d)
        Symmetric and positive semidefinite.

    Examples
    --------
    >>> from attlas import aim
    >>> S = aim.teacher(6, rho=0.5, seed=0)
    >>> S.shape, bool((S == S.T).all())
    ((6, 6), True)

    References
    ----------
    boncoraglio2025bayes, the prior of the model.
    """
    width = size(round(real(rho, "rho", above=0) * integer(d, "d")), "r = rho d")
    size(float(width) * d, "the entries of W, rho d^2,")
    if width < 1:
        raise InputError(f"rho = {rho:g} at d = {d} leaves a width of zero; rho must be at least {0.5 / d:g}")
    W = generator(seed).standard_normal((d, width))
    W /= (width * d) ** 0.25
    return np.asarray(W @ W.T)
