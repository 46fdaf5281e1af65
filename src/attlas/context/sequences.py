"""Training sequences from their exact law, at a cost that does not depend on the length of a context."""

from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.context.tasks import TaskSet, draw_tasks, rounded
from attlas.context.theory import positive
from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.numerics import Seed, generator, stream

Array = NDArray[np.float64]
_ROWS = 4096  # sequences at a time: what is needed on the way stays small beside the data


@dataclass(frozen=True)
class Sequences:
    """What a layer is trained on. A context enters only by h = [(d/l) sum y_i x_i; (1/l) sum y_i^2].

    Attributes
    ----------
    X : array of shape (n, d)
        Queries, N(0, I/d).
    H : array of shape (n, d + 1)
        What the contexts say; the last column is their label energy.
    y : array of shape (n,)
        Labels of the queries.
    chosen : array of shape (n,) or None
        Which task each sequence has; None where it has its own.
    tasks : TaskSet
    """

    X: Array = field(repr=False)
    H: Array = field(repr=False)
    y: Array = field(repr=False)
    chosen: NDArray[np.intp] | None = field(repr=False)
    tasks: TaskSet

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return self.tasks.d

    @property
    def n(self) -> int:
        """Number of sequences."""
        return len(self.y)

    @property
    def alpha(self) -> float:
        """Examples of a context over d, as drawn."""
        return self.tasks.alpha

    @property
    def kappa(self) -> float:
        """Tasks over d, as drawn."""
        return self.tasks.kappa

    @property
    def tau(self) -> float:
        """Sequences over d^2, as drawn."""
        return self.n / self.d**2

    @property
    def noise(self) -> float:
        """Variance of the label noise."""
        return self.tasks.noise


def sample(
    d: int,
    alpha: float,
    kappa: float,
    tau: float,
    noise: float = 0.0,
    seed: int = 0,
    spectrum: ArrayLike | None = None,
) -> Sequences:
    """Draw kappa d tasks and n = tau d^2 training sequences, in O(n d) steps whatever the length l = alpha d of a context.

    Given w, with v = |w|^2/d + noise, sigma = v chi^2_l/l and g ~ N(0, I), the exact law is

        h = (sigma/v) w + sqrt(sigma d/l) (g - (1 - sqrt(noise/v)) w (w.g)/|w|^2),      last entry sigma.

    Parameters
    ----------
    d : int
        Dimension of a token.
    alpha, kappa, tau : float
        Examples of a context over d, tasks over d (``inf``: every sequence has its own), sequences over d^2. Numbers are
        rounded, not cut; the result says which alpha, kappa and tau it has.
    noise : float
        Variance of the label noise.
    seed : int
        Tasks, their assignment, contexts, queries and the noise of their labels have streams of their own.
    spectrum : array_like of shape (d,), optional
        Variances of the entries of a task; ones if not given.

    Raises
    ------
    InputError
        If a count rounds to zero, or tau is infinite (`population` is the layer of infinitely many sequences).

    Examples
    --------
    >>> from attlas import context
    >>> task = context.sample(d=10, alpha=2, kappa=0.5, tau=2, noise=0.1, seed=0)
    >>> task.X.shape, task.H.shape, task.tasks.W.shape
    ((200, 10), (200, 11), (5, 10))

    References
    ----------
    The model is that of lu2024asymptotic; the sampler is ours.
    """
    if positive(tau, "tau") == inf:
        raise InputError("tau must be finite to draw sequences; population is the layer of infinitely many")
    tasks = draw_tasks(d, alpha, kappa, noise, seed, spectrum)
    n = rounded(tau, tasks.d**2, "tau")
    chosen = None if tasks.W is None else stream(seed, "assignment").integers(len(tasks.W), size=n)
    return draw_sequences(tasks, n, chosen, seed)


def draw_sequences(tasks: TaskSet, n: int, chosen: NDArray[np.intp] | None, seed: int) -> Sequences:
    """Draw n sequences of the tasks chosen, or of new tasks."""
    X = stream(seed, "queries").standard_normal((n, tasks.d))
    X /= np.sqrt(tasks.d)
    H, y = np.empty((n, tasks.d + 1)), np.empty(n)
    contexts, noise, own = stream(seed, "contexts"), stream(seed, "noise"), stream(seed, "tasks")
    for start in range(0, n, _ROWS):
        rows = slice(start, min(start + _ROWS, n))
        if chosen is None or tasks.W is None:
            W = own.standard_normal((rows.stop - start, tasks.d)) * np.sqrt(tasks.spectrum)
        else:
            W = tasks.W[chosen[rows]]
        H[rows] = read_contexts(W, tasks.noise, tasks.length, contexts)
        y[rows] = np.einsum("nd,nd->n", X[rows], W) + np.sqrt(tasks.noise) * noise.standard_normal(len(W))
    return Sequences(X, H, y, chosen, tasks)


def read_contexts(W: ArrayLike, noise: float, length: int, seed: Seed) -> Array:
    """Draw h (n, d + 1), what linear attention reads of a context, for one context of each task, from its exact law.

    Parameters
    ----------
    W : array of shape (n, d)
        Tasks.
    noise : float
        Variance of the label noise.
    length : int
        Examples of a context, l.
    seed : int or Generator

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> context.read_contexts(np.ones((3, 4)), noise=0.1, length=8, seed=0).shape
    (3, 5)

    References
    ----------
    The formula of `sample`; ours.
    """
    W = array(W, "W", ("n", "d"))
    noise, length, rng = real(noise, "noise", least=0), integer(length, "length"), generator(seed)
    n, d = W.shape
    square = np.maximum(np.einsum("nd,nd->n", W, W), np.finfo(float).tiny)
    v = square / d + noise
    sigma = v * rng.chisquare(length, n) / length
    g = rng.standard_normal((n, d))
    along = np.einsum("nd,nd->n", W, g) / square
    scale = np.sqrt(sigma * d / length)
    g *= scale[:, None]
    g += (sigma / v - scale * (1 - np.sqrt(noise / v)) * along)[:, None] * W
    return np.column_stack([g, sigma])
