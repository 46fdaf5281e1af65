"""Ridge regression on arrays in blocks, such as Dask's: sums over blocks are made where the blocks are.

An array of sets (n, tokens, d) in blocks along n is asked for what `dask.array` has: `chunks`, `rechunk`, `map_blocks`,
`persist`, `sum`. The sums G = Phi^T W Phi and B = Phi^T W Y of the primal are added up by the cluster, reduced there to a
tridiagonal matrix, and a second pass leaves each sample out. Features exist one block at a time; only numbers that do not
grow with n come back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.checked_blocks import WANTED, in_blocks
from attlas.features.head_features import HeadFeatures, finite
from attlas.features.ridge import Primal, checked, primal_errors, primal_left_out, primal_sums
from attlas.features.ridge_fit import mean_square
from attlas.features.tridiagonal import Tridiagonal
from attlas.features.weighted_targets import Targets, with_constant

Array = NDArray[Any]
Design = Callable[[Array], HeadFeatures]


class BlockedFit(NamedTuple):
    """What was found, in memory, except for what grows with n.

    Attributes
    ----------
    values : array of shape (p, targets)
    intercept : array of shape (targets,)
    alpha : float
    errors : array of shape (alphas, targets), optional
        Mean squared leave-one-out errors.
    left_out : array in blocks, (n, targets), optional
        Leave-one-out predictions at `alpha`, not computed yet.
    """

    values: Array
    intercept: Array
    alpha: float
    errors: Array | None = None
    left_out: Any = None


def fit_blocks(
    on: Design, width: int, X: Any, Y: Any, alphas: Array, choose: bool, intercept: bool, weight: Any = None
) -> BlockedFit:
    """Solve min_v sum_i w_i (y_i - b - phi_i v)^2 + lam ||v||^2 as `ridge_fit.fit_primal` does, to rounding.

    Parameters
    ----------
    on : callable
        Makes the features of a block of sets, (m, tokens, d): `FiniteHeads.on`. It is sent to the workers.
    width : int
        Features of a set, p.
    X : array in blocks, (n, tokens, d)
    Y : array in blocks, (n, targets)
    alphas : array
        Penalties relative to the weighted mean of |phi_i|^2.
    choose : bool
        Take the best of them by leave-one-out; else there is only one.
    intercept : bool
    weight : array in blocks, (n,), optional
    """
    if not in_blocks(Y) or Y.ndim != 2 or not (weight is None or in_blocks(weight)):
        raise InputError(WANTED)
    if X.shape[0] != Y.shape[0] and not np.isnan([X.shape[0], Y.shape[0]]).any():
        raise InputError(f"X has {X.shape[0]} samples and y has {Y.shape[0]}")
    X, Y, *others = _aligned(X, Y, *([] if weight is None else [weight[:, None]]))
    T, R = Y.shape[2], len(alphas)
    sums = _mapped(X, partial(_sums, on, width), (width + 1, width + T + 1), Y, *others).sum(axis=0)
    state = sums.map_blocks(
        partial(_solved, alphas=np.asarray(alphas), intercept=intercept, width=width),
        chunks=((1,), (width + 1,), (width + R * (T + intercept) + 2 * R + T + 1,)),
        new_axis=0,
        dtype=float,
        meta=np.empty((0, 0, 0)),
    ).persist()
    known = _State.of(np.asarray(state[:, :, width:].compute()), 0, R, T, intercept)
    if not choose:
        if np.isnan(known.primal.values).any():
            raise InputError(f"the Gram matrix is not positive definite at alpha = {alphas[0]:.3g}; raise it")
        return BlockedFit(known.primal.values[0, :, :T], known.mean, float(alphas[0]))
    left_out = _LeftOut(on, width, R, intercept)
    squares = _mapped(X, left_out.squares, (R, T), Y, state, *others).sum(axis=0).compute()
    path = checked(known.primal.penalties, squares / known.total)
    predicted = X.map_blocks(
        partial(left_out.predictions, row=path.best), Y, state, *others,
        chunks=(X.chunks[0], (T,)), drop_axis=1, dtype=float, meta=np.empty((0, 0)),
    )  # fmt: skip
    values = known.primal.values[path.best, :, :T]
    return BlockedFit(values, known.mean, float(alphas[path.best]), path.errors, predicted)


def predict_blocks(on: Design, X: Any, values: Array, intercept: Array) -> Any:
    """Return the predictions (n, targets) of an array in blocks, as one, not computed yet."""
    (X,) = _aligned(X)
    return X.map_blocks(
        partial(_predicted, on, values, intercept),
        chunks=(X.chunks[0], (values.shape[1],)),
        drop_axis=1,
        dtype=float,
        meta=np.empty((0, 0)),
    )


def _aligned(X: Any, *others: Any) -> list[Any]:
    """Return arrays of three axes with the blocks of X along the first, and no others."""
    X = X.rechunk({1: -1, 2: -1})
    try:
        return [X, *(one.rechunk({0: X.chunks[0], 1: -1})[:, None] for one in others)]
    except ValueError as error:
        if not np.isnan([X.shape[0], *(one.shape[0] for one in others)]).any():
            raise
        raise InputError(
            "X, y and weights have blocks of unknown and different sizes; call compute_chunk_sizes() on each"
        ) from error


def _mapped(X: Any, make: Callable[..., Array], shape: tuple[int, int], *others: Any) -> Any:
    """Return `make` of every block, (1, *shape), stacked."""
    chunks = ((1,) * len(X.chunks[0]), (shape[0],), (shape[1],))
    return X.map_blocks(make, *others, chunks=chunks, dtype=float, meta=np.empty((0, 0, 0)))


def _sums(on: Design, width: int, X: Array, Y: Array, weight: Array | None = None) -> Array:
    """Return G beside B, and beneath them the sums of the weighted targets and weights, (1, p + 1, p + targets + 1)."""
    columns, w = with_constant(Y[:, 0], True), None if weight is None else weight[:, 0, 0]
    found = np.zeros((1, width + 1, width + columns.shape[1]))
    if len(X):
        targets = Targets(columns, False, w, np.nan, np.zeros(columns.shape[1]))
        found[0, :-1, :width], found[0, :-1, width:] = primal_sums(on(X).by_rows, targets, width)
        found[0, -1, width:] = columns.sum(0) if w is None else w @ columns
    return found


def _solved(sums: Array, alphas: Array, intercept: bool, width: int) -> Array:
    """Return the `_State` of all penalties as one array, given the sums over all blocks."""
    G, B, totals = sums[:-1, :width], sums[:-1, width:], sums[-1, width:]
    finite(G, "the features")
    if not np.isfinite(sums).all():
        raise InputError("y or its weights have entries that are not finite (NaN or infinite)")
    mean = totals[:-1] / totals[-1] if intercept else np.zeros(len(totals) - 1)
    columns = B[:, :-1] - mean * B[:, -1:]
    if intercept:
        columns = np.concatenate([columns, B[:, -1:]], axis=1)
    primal = Primal.of(G, columns, alphas * mean_square(G, totals[-1]))
    return _State(primal, mean, float(totals[-1])).packed[None]


@dataclass(frozen=True)
class _LeftOut:
    """The second pass over the blocks."""

    on: Design
    width: int
    penalties: int
    intercept: bool

    def squares(self, X: Array, Y: Array, state: Array, weight: Array | None = None) -> Array:
        """Return the sums of squared leave-one-out errors of a block, (1, penalties, targets)."""
        known, targets = self._known(Y, state, weight)
        if not len(X):
            return np.zeros((1, self.penalties, Y.shape[2]))
        return primal_errors(known.primal, targets, self.on(X).by_rows)[0][None]

    def predictions(self, X: Array, Y: Array, state: Array, weight: Array | None = None, row: int = 0) -> Array:
        """Return the leave-one-out predictions of a block, (m, targets)."""
        known, targets = self._known(Y, state, weight)
        if not len(X):
            return np.empty((0, Y.shape[2]))
        rows = self.on(X).by_rows
        leverage = np.concatenate([known.primal.leverages(Phi)[row] for Phi, _ in rows])
        return primal_left_out(known.primal.values[row], leverage, targets, rows)

    def _known(self, Y: Array, state: Array, weight: Array | None) -> tuple["_State", Targets]:
        known = _State.of(state, self.width, self.penalties, Y.shape[2], self.intercept)
        w = None if weight is None else weight[:, 0, 0]
        return known, Targets(Y[:, 0], self.intercept, w, known.total, known.mean)


def _predicted(on: Design, values: Array, intercept: Array, X: Array) -> Array:
    return finite(on(X).times(values), "the features") + intercept if len(X) else np.empty((0, len(intercept)))


class _State(NamedTuple):
    """What the second pass needs to know of the first."""

    primal: Primal
    mean: Array
    total: float

    @property
    def packed(self) -> Array:
        """One array (p + 1, ..): what there is for each feature, and a last row for the rest."""
        p, reduced, values = len(self.primal.reduced.Qt), self.primal.reduced, self.primal.values
        R, _, columns = values.shape
        parts = [reduced.Qt, values.transpose(1, 0, 2).reshape(p, R * columns), reduced.pivots.T, reduced.below.T]
        top = np.concatenate([*parts, np.zeros((p, len(self.mean) + 1))], axis=1)
        last = np.zeros((1, top.shape[1]))
        last[0, -len(self.mean) - 1 :] = [*self.mean, self.total]
        last[0, p : p + R] = self.primal.penalties
        return np.concatenate([top, last])

    @classmethod
    def of(cls, packed: Array, p: int, R: int, T: int, intercept: bool) -> "_State":
        """Undo `packed`; p = 0 if the columns of Q were left out."""
        packed = packed[0]
        top, columns = packed[:-1], T + intercept
        ends = np.cumsum([p, R * columns, R, R])
        Qt, values, pivots, below, _ = np.split(top, ends, axis=1)
        reduced = Tridiagonal(Qt, np.ascontiguousarray(pivots.T), np.ascontiguousarray(below.T))
        penalties = packed[-1, p : p + R]
        shaped = values.reshape(len(top), R, columns).transpose(1, 0, 2)
        return cls(Primal(penalties, reduced, shaped), packed[-1, -T - 1 : -1], float(packed[-1, -1]))
