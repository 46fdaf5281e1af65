"""Contexts as they are: examples and labels, drawn one by one. `sample` draws only what linear attention reads of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array, integer, real
from attlas.numerics import Seed, generator

Array = NDArray[np.float64]


def draw_contexts(tasks: ArrayLike, length: int, noise: float, seed: Seed) -> tuple[Array, Array]:
    """Draw a context for every task: x ~ N(0, I/d), y = x.w + sqrt(noise) N(0, 1).

    Parameters
    ----------
    tasks : array of shape (n, d)
    length : int
        Examples of a context, l.
    noise : float
    seed : int or Generator

    Returns
    -------
    X : array of shape (n, l, d)
    y : array of shape (n, l)

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> X, y = context.draw_contexts(np.ones((2, 4)), length=8, noise=0.1, seed=0)
    >>> X.shape, y.shape
    ((2, 8, 4), (2, 8))
    """
    w = array(tasks, "tasks", ("n", "d"))
    length, noise = integer(length, "length"), real(noise, "noise", least=0)
    rng = generator(seed)
    n, d = w.shape
    X = rng.standard_normal((n, length, d)) / np.sqrt(d)
    y = np.einsum("nld,nd->nl", X, w) + np.sqrt(noise) * rng.standard_normal((n, length))
    return X, y


def task_errors(estimates: ArrayLike, tasks: ArrayLike, noise: float) -> Array:
    """Return the errors of estimated tasks, exact in the query: noise + |w_hat - w|^2/d for each.

    Parameters
    ----------
    estimates, tasks : array of shape (n, d)
    noise : float

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> context.task_errors(np.zeros((1, 4)), np.ones((1, 4)), noise=0.1).tolist()
    [1.1]
    """
    w = array(tasks, "tasks", ("n", "d"))
    found = array(estimates, "estimates", ("n", "d"), w.shape)
    return np.asarray(real(noise, "noise", least=0) + np.mean((found - w) ** 2, axis=1))
