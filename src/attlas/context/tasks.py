"""Training tasks, drawn once: what every sequence of a run shares."""

from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.context.moments import Moments, fresh_moments, task_moments
from attlas.context.spectra import eigenvalues
from attlas.context.theory import positive
from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TaskSet:
    """k tasks w in R^d, contexts of `length` examples, labels of noise variance `noise`.

    Attributes
    ----------
    W : array of shape (k, d) or None
        None where every sequence has a task of its own (kappa = inf).
    d, length : int
        Dimension of a token, examples of a context.
    noise : float
        Variance of the label noise.
    spectrum : array of shape (d,)
        Eigenvalues of the covariance that tasks are drawn from; the covariance is diagonal.
    """

    W: Array | None = field(repr=False)
    d: int
    length: int
    noise: float
    spectrum: Array = field(repr=False)

    @property
    def alpha(self) -> float:
        """Examples of a context over d, as drawn."""
        return self.length / self.d

    @property
    def kappa(self) -> float:
        """Tasks over d, as drawn."""
        return inf if self.W is None else len(self.W) / self.d

    def moments(self) -> Moments:
        """Return the exact moments of a sequence of these tasks."""
        return self.fresh() if self.W is None else task_moments(self.W, self.noise, self.length)

    def fresh(self, test_alpha: float | None = None, test_spectrum: ArrayLike | None = None) -> Moments:
        """Return the exact moments of a sequence of a new task, with contexts or tasks of another law if given."""
        length = self.length if test_alpha is None else rounded(test_alpha, self.d, "test_alpha")
        spectrum = self.spectrum if test_spectrum is None else eigenvalues(test_spectrum, "test_spectrum", self.d)
        return fresh_moments(self.d, self.noise, length, spectrum)


def draw_tasks(
    d: int, alpha: float, kappa: float, noise: float, seed: int, spectrum: ArrayLike | None = None
) -> TaskSet:
    """Draw k = kappa d tasks from N(0, diag(spectrum)); `sample` draws the same for the same seed.

    Parameters
    ----------
    d : int
    alpha, kappa : float
        Examples of a context and tasks, over d. Numbers are rounded, not cut; the set says which alpha and kappa it has.
        kappa = inf draws none.
    noise : float
    seed : int
    spectrum : array_like of shape (d,), optional
        Ones if not given.

    Examples
    --------
    >>> from attlas import context
    >>> tasks = context.draw_tasks(d=10, alpha=2, kappa=0.5, noise=0.1, seed=0)
    >>> tasks.W.shape, tasks.length
    ((5, 10), 20)
    """
    d = integer(d, "d")
    c = np.ones(d) if spectrum is None else eigenvalues(spectrum, "spectrum", d)
    length, noise = rounded(alpha, d, "alpha"), real(noise, "noise", least=0)
    if positive(kappa, "kappa") == inf:
        return TaskSet(None, d, length, noise, c)
    k = rounded(kappa, d, "kappa")
    W = stream(seed, "tasks").standard_normal((k, d))
    W *= np.sqrt(c)
    return TaskSet(W, d, length, noise, c)


def rounded(ratio: float, size: int, name: str) -> int:
    """Return ratio * size to the nearest integer, which must be at least 1."""
    wanted = real(ratio, name, above=0) * size
    if wanted > 2**53:
        raise InputError(f"{name} = {ratio:g} is too large: {name} * {size} = {wanted:g} is beyond any count")
    count = round(wanted)
    if count < 1:
        raise InputError(
            f"{name} = {ratio:g} at {name} * {size} = {ratio * size:g} rounds to none; {name} must be at least {1 / size:g}"
        )
    return count
