"""The attention-indexed model: its teacher, and tasks to learn it from."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas import tokens
from attlas.aim.channels import Channel, Deep
from attlas.errors import InputError
from attlas.inputs import integer, numbers, real
from attlas.layers import attention_indices, deep_attention
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
        The teacher; (2, d, d) for two layers.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    S: Array = field(repr=False)


def sample(channel: Channel | Deep, d: int, alpha: float, rho: Any, seed: int) -> Task:
    """Draw a teacher and n = alpha d^2 sequences with their outputs.

    Parameters
    ----------
    channel : Channel or Deep
    d : int
    alpha, rho : float
        Samples over d^2 (n is rounded, at least 1) and width over d; for `Deep` also one width for each layer.
    seed : int
        The teacher, the data and the noise have streams of their own.
    """
    n = max(1, round(real(alpha, "alpha", above=0) * integer(d, "d") ** 2))
    X = tokens.gaussian(n, channel.tokens, d, stream(seed, "data"))
    if isinstance(channel, Deep):
        streams = (stream(seed, "teacher", layer) for layer in ("first", "second"))
        layers = np.stack([teacher(d, r, own) for r, own in zip(widths(rho), streams, strict=True)])
        return Task(X, deep_attention(X, layers, channel.beta, channel.skip), layers)
    S = teacher(d, rho, stream(seed, "teacher"))
    return Task(X, channel.output(attention_indices(X, S), stream(seed, "noise")), S)


def widths(rho: ArrayLike) -> Array:
    """Return the widths of two layers, from one number or two."""
    values = numbers(rho, "rho", above=0)
    if values.shape not in ((), (2,)):
        raise InputError(f"rho must be a number, or one for each of the two layers; got shape {values.shape}")
    return np.array(np.broadcast_to(values, 2))


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

    References
    ----------
    boncoraglio2025bayes, the prior of the model.
    """
    width = round(real(rho, "rho", above=0) * integer(d, "d"))
    if width < 1:
        raise InputError(f"rho = {rho:g} at d = {d} leaves a width of zero; rho must be at least {0.5 / d:g}")
    W = generator(seed).standard_normal((d, width))
    W /= (width * d) ** 0.25
    return np.asarray(W @ W.T)
