"""Ridge regression on frozen heads, solved in the dual, in the primal, or by conjugate gradients."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.conjugate_gradients import Nystrom, conjugate_gradients
from attlas.features.frozen_heads import Design
from attlas.features.head_features import HeadFeatures, finite
from attlas.features.ridge import (
    Path,
    Primal,
    checked,
    dual_solutions,
    factor,
    path_of,
    primal_errors,
    primal_left_out,
    primal_sums,
    solve,
)
from attlas.features.weighted_targets import Targets
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
    left_out : array of shape (n, targets), optional
        Predictions of each sample, intercept included, by the fit at `alpha` to all other samples. Conjugate gradients
        predict a held-out tenth of the samples and leave NaN elsewhere. None if the penalty was not to be chosen.
    """

    values: Array
    alpha: float
    errors: Array | None = None
    steps: int = 0
    status: Status = Status.CONVERGED
    unfinished: tuple[tuple[float, Solution[Array]], ...] = ()
    left_out: Array | None = None


class Solver(Protocol):
    """A way to solve min_v sum_i w_i (y_i - b - phi_i v)^2 + lam ||v||^2, lam = alpha sum(w_i |phi_i|^2)/sum(w_i)."""

    def __call__(
        self, design: Any, Y: Array, alphas: Array, choose: bool, intercept: bool, weight: Array | None = None
    ) -> RidgeFit:
        """Solve it.

        Parameters
        ----------
        design : Design
        Y : array of shape (n, targets)
        alphas : array
            Penalties relative to the mean of |phi_i|^2.
        choose : bool
            Take the best of them by leave-one-out; else there is only one.
        intercept : bool
            Learn Y minus its weighted mean b.
        weight : array of shape (n,), optional
            Not negative; all 1 if not given. Weights that are integers count as repeated samples, except that
            leave-one-out leaves out all repetitions of a sample.
        """


def fit_dual(
    design: Design, Y: Array, alphas: Array, choose: bool, intercept: bool, weight: Array | None = None
) -> RidgeFit:
    """Factorise the n x n Gram matrix. Arguments as for `Solver`."""
    targets = Targets.all(Y, intercept, weight)
    K = design.gram()
    A = targets.product(K)
    penalties = alphas * mean_square(A, targets.total)
    if not choose:
        dual = solve(factor(A, penalties[0]), targets.weighted)
        return RidgeFit(design.values(targets.dual(dual)), float(alphas[0]))
    found = list(dual_solutions(K, A, targets, penalties))
    path = path_of(targets, penalties, (one and one.missed for one in found))
    best: Any = found[path.best]
    values = design.values(targets.dual(best.coefficients))
    return RidgeFit(values, float(alphas[path.best]), path.errors, left_out=Y - targets.missed(best.missed))


def fit_primal(
    design: HeadFeatures, Y: Array, alphas: Array, choose: bool, intercept: bool, weight: Array | None = None
) -> RidgeFit:
    """Factorise the p x p Gram matrix of the features. Arguments as for `Solver`."""
    targets = Targets.all(Y, intercept, weight)
    G, B = primal_sums(design.by_rows, targets, design.width)
    penalties = alphas * mean_square(finite(G, "the features"), targets.total)
    if not choose:
        return RidgeFit(targets.solution(solve(factor(G, penalties[0]), B)), float(alphas[0]))
    primal = Primal.of(G, B, penalties)
    squares, leverages = primal_errors(primal, targets, design.by_rows)
    path = checked(penalties, squares / targets.total)
    values = primal.values[path.best]
    left_out = primal_left_out(values, leverages[path.best], targets, design.by_rows)
    return RidgeFit(targets.solution(values), float(alphas[path.best]), path.errors, left_out=left_out)


def fit_cg(
    design: HeadFeatures, Y: Array, alphas: Array, choose: bool, intercept: bool, weight: Array | None = None
) -> RidgeFit:
    """Factorise neither matrix. A penalty is chosen on a tenth of the samples, held out. Arguments as for `Solver`."""
    targets = Targets.all(Y, intercept, weight)
    held = _HeldOut.of(design, targets, alphas) if choose else None
    best, errors = (0, None) if held is None else (held.path.best, held.path.errors)
    alpha = float(alphas[best])
    found = _Preconditioned(design, targets.root).solve(targets.solution(targets.weighted), alpha)
    tried = [] if held is None else held.tried
    unfinished = tuple((a, s) for a, s in [*tried, (alpha, found)] if not s.converged)

    values = design.values(targets.dual(found.value))
    left_out = None if held is None else held.predicted(best, Y.shape)
    return RidgeFit(values, alpha, errors, found.steps, found.status, unfinished, left_out)


@dataclass(frozen=True)
class _HeldOut:
    """A tenth of the samples, predicted from the others at each penalty, and how the solutions ended."""

    test: NDArray[np.intp]
    path: Path
    predictions: list[Array]
    tried: list[tuple[float, Solution[Array]]]

    @classmethod
    def of(cls, design: HeadFeatures, targets: Targets, alphas: Array) -> "_HeldOut":
        order = stream(0, "held out").permutation(len(targets.Y))
        if targets.weight is not None:
            order = order[targets.weight[order] > 0]
        test, train = np.split(order, [max(len(order) // 10, 1)])
        others, unseen = targets.alone(train), replace(design, X=design.X[test])
        known = _Preconditioned(replace(design, X=design.X[train]), others.root)
        wanted = others.solution(others.weighted)
        tried = [(float(alpha), known.solve(wanted, alpha)) for alpha in alphas]
        predictions = [
            unseen.times(known.features.values(others.dual(found.value))) + others.mean for _, found in tried
        ]
        held = targets.alone(test)
        errors = np.array([held.sum_square(one - held.Y) for one in predictions]) / held.total
        return cls(test, Path(alphas, errors), predictions, tried)

    def predicted(self, row: int, shape: tuple[int, ...]) -> Array:
        """Return the predictions at one penalty, NaN elsewhere."""
        found = np.full(shape, np.nan)
        found[self.test] = self.predictions[row]
        return found


SOLVERS: dict[str, Solver] = {"dual": fit_dual, "primal": fit_primal, "cg": fit_cg}


class _Preconditioned:
    """Features times sqrt(w), and a preconditioner of their Gram matrix from `RANK` of its columns."""

    def __init__(self, features: HeadFeatures, root: Array | None) -> None:
        n = len(features.X)
        self.features, self.root = features, None if root is None else root[:, None]
        chosen = stream(0, "preconditioner").permutation(n)
        chosen = chosen[:RANK] if root is None else chosen[root[chosen] > 0][:RANK]
        columns, trace = np.zeros((n, len(chosen))), 0.0
        for block in self._blocks():
            columns += block @ block[chosen].T
            trace += float(np.einsum("ij,ij->", block, block, dtype=float))
        self.scale = trace / (n if root is None else float(root @ root))
        self.nystrom = Nystrom.of(finite(columns, "the features"), chosen)

    def solve(self, Y: Array, alpha: float) -> Solution[Array]:
        """Return the dual coefficients."""
        return conjugate_gradients(
            self._product, Y, alpha * self.scale, self.nystrom, tol=TOL, max_steps=MAX_STEPS, throw=False
        )

    def _product(self, V: Array) -> Array:
        found = np.zeros((len(self.features.X), V.shape[1]))
        for block in self._blocks():
            found += block @ (block.T @ V)
        return found

    def _blocks(self) -> Iterator[Array]:
        for block in self.features.by_heads:
            yield block if self.root is None else block * self.root.astype(block.dtype)


def mean_square(K: Array, n: float) -> float:
    """Return tr(K)/n, the mean squared length of the features of a sequence: the unit of relative penalties."""
    scale = float(np.trace(K)) / n
    if scale <= 0:
        raise InputError("all features are zero: no head is active on these tokens; take more heads")
    return scale
