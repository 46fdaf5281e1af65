"""The Bayes learner of the training tasks: it knows the k tasks of training and weighs them by the context."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array, real

Array = NDArray[np.float64]
_BLOCK = 4_000_000  # numbers held at once


def discrete_bayes(X: ArrayLike, y: ArrayLike, tasks: ArrayLike, noise: float) -> Array:
    """Return the posterior mean of the task of each context, if it is one of `tasks`, all equally likely.

        w_hat = sum_j p_j w_j,   p_j ~ exp(-|y - X w_j|^2 / (2 noise))

    The smallest energy is taken from all before the exponential: small noise does no harm. The query enters linearly, so
    noise + |w_hat - w|^2/d is the error exactly (`task_errors`). As good as possible on training tasks, and on new ones
    worse than predicting 0 once d is large (`freezing`).

    Parameters
    ----------
    X : array of shape (n, l, d)
    y : array of shape (n, l)
    tasks : array of shape (k, d)
    noise : float
        Variance of the noise of labels.

    Returns
    -------
    array of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> known = np.eye(3)  # three tasks
    >>> X, y = context.draw_contexts(known[[0, 2]], length=60, noise=0.01, seed=0)
    >>> context.discrete_bayes(X, y, known, noise=0.01).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    References
    ----------
    raventos2023pretraining, called dMMSE there.
    """  # fmt: skip
    X = array(X, "X", ("n", "l", "d"))
    n, length, d = X.shape
    y = array(y, "y", ("n", "l"), (n, length))
    known = array(tasks, "tasks", ("k", "d"), (None, d))
    noise = real(noise, "noise", above=0)
    block = max(1, _BLOCK // (length * len(known)))
    return np.concatenate([_block(X[i : i + block], y[i : i + block], known, noise) for i in range(0, n, block)])


def _block(X: Array, y: Array, tasks: Array, noise: float) -> Array:
    energy = np.sum((y[:, :, None] - X @ tasks.T) ** 2, axis=1) / (2 * noise)
    weight = np.exp(energy.min(axis=1, keepdims=True) - energy)
    return np.asarray((weight / weight.sum(axis=1, keepdims=True)) @ tasks)
