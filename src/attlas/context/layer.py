"""A layer of linear attention in its reduced form, and its exact errors."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.context.tasks import TaskSet
from attlas.inputs import array
from attlas.numerics import Solution

Array = NDArray[np.float64]


class Errors(NamedTuple):
    """Errors of a layer, all with the label noise in them.

    Attributes
    ----------
    icl : float
        On new tasks, exact.
    idg : float
        On fresh sequences of the tasks that it was trained on, exact.
    training : float
        Mean square of the residuals on the training sequences.
    """

    icl: float
    idg: float
    training: float


@dataclass(frozen=True)
class Layer(Solution[Array]):
    """The layer y_hat = x^T Gamma h.

    Attributes
    ----------
    value, Gamma : array of shape (d, d + 1)
        (d, d) without the column of the label energy.
    tasks : TaskSet
        What it was trained on.
    ridge : float
    training : float
        Mean square of the residuals on the training sequences.
    solver : str
        How it was fitted.
    residual : float
        Of the normal equations, relative to their right-hand side.
    """

    tasks: TaskSet = field(kw_only=True)
    ridge: float = field(kw_only=True)
    training: float = field(kw_only=True)
    solver: str = field(kw_only=True)

    @property
    def Gamma(self) -> Array:
        """The matrix of the layer."""
        return self.value

    def errors(self, *, test_alpha: float | None = None, test_spectrum: ArrayLike | None = None) -> Errors:
        """Return the exact errors of the layer; new tasks with contexts or of a spectrum of their own, if given."""
        fresh = self.tasks.fresh(test_alpha, test_spectrum)
        return Errors(fresh.error(self.value), self.tasks.moments().error(self.value), self.training)

    def predict(self, X: ArrayLike, H: ArrayLike) -> Array:
        """Return the labels (n,) of queries X (n, d) whose contexts say H (n, d + 1)."""
        d, width = self.value.shape
        X, H = array(X, "X", ("n", "d"), (None, d)), array(H, "H", ("n", "d + 1"), (None, d + 1))
        return np.asarray(np.einsum("nj,nj->n", X @ self.value, H[:, :width]))
