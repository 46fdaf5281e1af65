"""Ridge regression on frozen heads, solved in the dual, in the primal, or by conjugate gradients."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.conjugate_gradients import Nystrom, conjugate_gradients
from attlas.features.frozen_heads import Design
from attlas.features.head_features import HeadFeatures, finite
from attlas.features.ridge import Path, dual_path, factor, primal_path, solve
from attlas.numerics import Solution, Status, stream

Array = NDArray[Any]

RANK = 300  # of the preconditioner
MAX_STEPS = 1000
TOL = 1e-6  # of conjugate gradients, on the relative residual


class RidgeFit(NamedTuple):
    """What a solver found.

    Attributes
    ----------
    values : array
        What predictions are made of: `Design.values`.
    alpha : float
        The relative penalty used.
    errors : array of shape (alphas, targets), optional
        What it was chosen by.
    steps : int
    status : Status
        How the solution at `alpha` ended.
    unfinished : tuple
        (alpha, Solution) of whatever did not converge, on the way or at last.
    """

    values: Array
    alpha: float
    errors: Array | None
    steps: int = 0
    status: Status = Status.CONVERGED
    unfinished: tuple[tuple[float, Solution[Array]], ...] = ()


def fit_dual(design: Design, Y: Array, alphas: Array, choose: bool, intercept: bool) -> RidgeFit:
    """Factorise the n x n Gram matrix.

    Parameters
    ----------
    design : Design
    Y : array of shape (n, targets)
    alphas : array
        Penalties relative to tr(K)/n.
    choose : bool
        Take the best of them by leave-one-out; else there is only one.
    intercept : bool
        Learn Y minus its mean.
    """
    K = design.gram()
    scale = mean_square(K, len(Y))
    path = dual_path(K, Y, alphas * scale, intercept) if choose else None
    alpha, errors = _chosen(alphas, path)
    return RidgeFit(design.values(solve(factor(K, alpha * scale), _centred(Y, intercept))), alpha, errors)


def fit_primal(design: HeadFeatures, Y: Array, alphas: Array, choose: bool, intercept: bool) -> RidgeFit:
    """Factorise the p x p Gram matrix of the features. Arguments as for `fit_dual`."""
    p, centred = design.width, _centred(Y, intercept)
    G, B = np.zeros((p, p)), np.zeros((p, Y.shape[1]))
    for Phi, part in design.by_rows:
        G += Phi.T @ Phi
        B += Phi.T @ centred[part]
    scale = mean_square(finite(G, "the features"), len(Y))
    path = primal_path(G, Y, design.by_rows, alphas * scale, intercept) if choose else None
    alpha, errors = _chosen(alphas, path)
    return RidgeFit(solve(factor(G, alpha * scale), B), alpha, errors)


def fit_cg(design: HeadFeatures, Y: Array, alphas: Array, choose: bool, intercept: bool) -> RidgeFit:
    """Factorise neither matrix. A penalty is chosen on a tenth of the samples, held out. Arguments as for `fit_dual`."""
    path, tried = _held_out_path(design, Y, alphas, intercept) if choose else (None, [])
    alpha, errors = _chosen(alphas, path)
    found = _Preconditioned(design).solve(_centred(Y, intercept), alpha)
    unfinished = tuple((a, s) for a, s in [*tried, (alpha, found)] if not s.converged)
    return RidgeFit(design.values(found.value), alpha, errors, found.steps, found.status, unfinished)


def _held_out_path(
    design: HeadFeatures, Y: Array, alphas: Array, intercept: bool
) -> tuple[Path, list[tuple[float, Solution[Array]]]]:
    """Return the errors of all penalties on a tenth of the samples, and how their solutions ended."""
    test, train = np.split(stream(0, "held out").permutation(len(Y)), [max(len(Y) // 10, 1)])
    known, unseen = _Preconditioned(replace(design, X=design.X[train])), replace(design, X=design.X[test])
    mean = Y[train].mean(0) if intercept else 0.0
    tried = [(float(alpha), known.solve(Y[train] - mean, alpha)) for alpha in alphas]
    predicted = [unseen.times(known.features.values(found.value)) + mean for _, found in tried]
    return Path(alphas, np.array([np.mean((one - Y[test]) ** 2, axis=0) for one in predicted])), tried


SOLVERS: dict[str, Callable[[Any, Array, Array, bool, bool], RidgeFit]] = {
    "dual": fit_dual,
    "primal": fit_primal,
    "cg": fit_cg,
}


class _Preconditioned:
    """Features, and a preconditioner of their Gram matrix from `RANK` of its columns."""

    def __init__(self, features: HeadFeatures) -> None:
        n = len(features.X)
        chosen = stream(0, "preconditioner").permutation(n)[:RANK]
        columns, trace = np.zeros((n, len(chosen))), 0.0
        for block in features.by_heads:
            columns += block @ block[chosen].T
            trace += float(np.einsum("ij,ij->", block, block, dtype=float))
        self.features, self.scale = features, trace / n
        self.nystrom = Nystrom.of(finite(columns, "the features"), chosen)

    def solve(self, Y: Array, alpha: float) -> Solution[Array]:
        """Return the dual coefficients."""
        return conjugate_gradients(
            self._product, Y, alpha * self.scale, self.nystrom, tol=TOL, max_steps=MAX_STEPS, throw=False
        )

    def _product(self, V: Array) -> Array:
        found = np.zeros((len(self.features.X), V.shape[1]))
        for block in self.features.by_heads:
            found += block @ (block.T @ V)
        return found


def mean_square(K: Array, n: int) -> float:
    """Return tr(K)/n, the mean squared length of the features of a sequence: the unit of relative penalties."""
    scale = float(np.trace(K)) / n
    if scale <= 0:
        raise InputError("all features are zero: no head is active on these tokens; take more heads")
    return scale


def _chosen(alphas: Array, path: Path | None) -> tuple[float, Array | None]:
    return (float(alphas[0]), None) if path is None else (float(alphas[path.best]), path.errors)


def _centred(Y: Array, intercept: bool) -> Array:
    return Y - Y.mean(0) if intercept else Y
