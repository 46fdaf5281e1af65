"""What the regressor and the classifier share: heads, a ridge fit of their values, scores, and the importance of tokens."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from attlas.errors import InputError
from attlas.features.base import OnSequences, penalties_of
from attlas.features.blocked_fit import BlockedFit, fit_blocks, predict_blocks
from attlas.features.checked_blocks import first_set, require_sets, weight_blocks
from attlas.features.frozen_heads import Design, Heads, frozen_heads
from attlas.features.head_features import HeadFeatures
from attlas.features.ridge_fit import SOLVERS, RidgeFit
from attlas.features.sequences import sequences
from attlas.features.streamed import StreamFit, Sums
from attlas.features.token_importance import importance_of, is_array, sets_of
from attlas.inputs import choice, flag
from attlas.numerics import Solution

Array = NDArray[Any]


class OnFrozenHeads(OnSequences):
    """An estimator that learns the values of frozen heads; what it stores is documented where it is public."""

    FITTED: ClassVar[tuple[str, ...]] = ("heads_", "coef_", "X_fit_", "dual_coef_", "loo_errors_", "_sums")

    n_heads: Any
    query: Any
    bias: Any
    activation: Any
    positions: Any
    depth: Any
    alpha: Any
    alphas: Any
    fit_intercept: bool
    solver: Any
    random_state: Any
    n_jobs: Any
    intercept_: Any
    coef_: Any

    def kernel(self, X: Any, X2: Any = None) -> Array:
        """Return the Gram matrix of the fitted features between sequences, float64 sums of float32 products."""
        check_is_fitted(self)
        first = self._sequences(X, reset=False)
        if X2 is None:
            return self._heads.on(first, hold=False).gram()
        return self._heads.on(self._sequences(X2, reset=False), hold=False).cross(first)

    def design(self, X: Any, X_test: Any) -> tuple[Design, Array]:
        """Return training sequences as freshly drawn heads see them, and test sequences, checked. Self is not fitted."""
        fresh = clone(self)
        train, test = fresh._sequences(X, reset=True), fresh._sequences(X_test, reset=False)
        return fresh._draw(train).on(train), test

    @np.errstate(over="ignore", invalid="ignore")
    def token_importance(self, sets: Any) -> list[Array] | Array:
        """Return which tokens of a set moved its output, and how: the output minus that of the set without the token.

            importance_j = f({x_1, .., x_k}) - f({x_1, .., x_k} without x_j),

        f the prediction of a regressor, or the `decision_function` of a classifier. Every token is left out in turn, so a
        set of k tokens costs k + 1 predictions.

        Parameters
        ----------
        sets : list of arrays (k_i, d), or array of shape (n, tokens, d)

        Returns
        -------
        list of arrays (k_i,) or (k_i, outputs)
            For an array one array (n, tokens) or (n, tokens, outputs), NaN where a token is missing. A token that cannot be
            left out has no importance, NaN: the query where token 0 is the query, and the only token (or key) of a set.
        """
        check_is_fitted(self)
        sets = list(sets) if isinstance(sets, Iterator) else sets
        kind = output_dtype(self._sequences(sets, reset=False))
        given = sets_of(sets, self.token_dim)
        found = importance_of(self._outputs, given, self.query == "first", bool(self.positions))
        found = [(one[:, 0] if self._single else one).astype(kind) for one in found]
        return np.array(found) if is_array(sets) else found

    def _outputs(self, X: Any) -> Array:
        """Return what is predicted from sequences that were read, (n, outputs), in float64."""
        raise NotImplementedError

    @property
    def _single(self) -> bool:
        """Whether there is one output, whose axis is dropped."""
        raise NotImplementedError

    def _read(self, X: Any) -> Any:
        """Return sequences for a fitted model, checked; their dtype is that of what it says of them."""
        check_is_fitted(self)
        return self._sequences(X, reset=False)

    def _scores(self, X: Any) -> Array:
        """Return what the heads and the intercept say of sequences that were read, (n, outputs)."""
        return np.asarray(self._heads.predict(X, self) + self.intercept_)

    def _draw(self, X: Array) -> Heads:
        flag(self.fit_intercept, "fit_intercept")
        drawn = (self.n_heads, X, self.bias, self.activation, self.random_state, self.positions, self.depth)
        return frozen_heads(*drawn, self.query, self.n_jobs)

    @property
    def _chooses(self) -> bool:
        """Whether the penalty is chosen: `penalties_of` refuses any other word than "loo"."""
        return isinstance(self.alpha, str)

    def _solver_for(self, heads: Heads, n: int) -> str:
        return heads.solver(choice(self.solver, "solver", ("auto", *SOLVERS)), n)

    def _ridge(self, X: Array, Y: Array, weight: Array | None, left_out: bool) -> RidgeFit:
        """Fit the values of fresh heads to Y (n, outputs) and keep them; `left_out` predictions are made if wanted."""
        heads = self._draw(X)
        alphas = penalties_of(self.alpha, self.alphas)
        solver = self._solver_for(heads, len(X))
        chosen = self._chooses
        found = SOLVERS[solver](heads.on(X), Y, alphas, chosen or left_out, self.fit_intercept, weight)
        self._warn(found.unfinished)
        self.intercept_ = np.average(Y, axis=0, weights=weight) if self.fit_intercept else np.zeros(Y.shape[1])
        self._keep(heads, solver, found, found.errors if chosen else None, heads.fitted(X, found.values))
        return found

    def _ridge_blocks(self, X: Any, Y: Any, weight: Any, left_out: bool) -> BlockedFit:
        """Do as `_ridge` does, in the primal, for arrays in blocks: Y (n, outputs), weight (n,) or None."""
        require_sets(X)
        choice(self.solver, "solver", ("auto", "primal"), "'auto' or 'primal' for an array in blocks")
        if isinstance(self.n_heads, str):
            raise InputError(
                "infinitely many heads need all samples in one place; take n_heads=1000 for arrays in blocks"
            )
        weight = None if weight is None else weight_blocks(weight, X)
        one = self._sequences(np.nan_to_num(first_set(X)), reset=True)  # for its shape
        heads: Any = self._draw(one)
        chosen = self._chooses
        alphas = penalties_of(self.alpha, self.alphas)
        found = fit_blocks(
            self._on_block(heads), heads.on(one).width, X, Y, alphas, chosen or left_out, self.fit_intercept, weight
        )
        self.intercept_ = found.intercept
        done = RidgeFit(found.values, found.alpha, found.errors)
        self._keep(heads, "primal", done, found.errors if chosen else None, heads.fitted(one, found.values))
        return found

    def _on_block(self, heads: Any) -> "_OnBlock":
        return _OnBlock(heads, self.token_dim_, self._least)

    def _scores_in_blocks(self, X: Any) -> Any:
        """Return `_scores` of an array in blocks, not computed yet."""
        check_is_fitted(self)
        if "coef_" not in self.__dict__:
            raise InputError("infinitely many heads predict arrays in memory; give X.compute()")
        require_sets(X)
        values = self.coef_.reshape(len(self.coef_), -1)
        return predict_blocks(self._on_block(self._heads), X, values, np.atleast_1d(self.intercept_))

    def _keep(self, heads: Heads, solver: str, found: Any, errors: Array | None, fitted: dict[str, Any]) -> None:
        for name in self.FITTED:  # of an earlier fit
            self.__dict__.pop(name, None)
        self._heads, self.solver_, self.alpha_ = heads, solver, found.alpha
        self.n_iter_, self.status_ = found.steps, found.status
        self.__dict__ |= fitted
        if errors is not None:
            self.loo_errors_ = errors

    def _add(self, X: Array, Y: Array, weight: Array | None, left_out: bool) -> StreamFit:
        """Add a batch to the sums, drawing heads at the first, and solve what they say."""
        chosen = self._chooses
        alphas = penalties_of(self.alpha, self.alphas)
        heads: Any = self._heads if hasattr(self, "_sums") else self._draw(X)
        design = heads.on(X, hold=False)
        sums = getattr(self, "_sums", None) or Sums.empty(design.width, Y.shape[1])
        sums.add(design.by_rows, Y, weight, keep=chosen or left_out)
        found = sums.solve(alphas, chosen, self.fit_intercept, left_out)
        self.intercept_ = sums.mean if self.fit_intercept else np.zeros(Y.shape[1])
        errors = found.errors if chosen else None
        self._keep(heads, "primal", found, errors, heads.fitted(X, found.values) | {"_sums": sums})
        return found

    def _warn(self, unfinished: Iterable[tuple[float, Solution[Array]]]) -> None:
        for alpha, stopped in unfinished:
            warnings.warn(
                f"conjugate gradients stopped after {stopped.steps} steps at a relative residual of"
                f" {stopped.residual:.1e} ({stopped.status}); a larger alpha than {alpha:.1e} needs fewer",
                ConvergenceWarning,
                stacklevel=6,
            )


@dataclass(frozen=True)
class _OnBlock:
    """The features of a block of sets, which is checked where it is."""

    heads: Any
    d: int
    least: int

    def __call__(self, block: Array) -> HeadFeatures:
        """Return them, not held."""
        found: HeadFeatures = self.heads.on(sequences(block, d=self.d, least=self.least, keep=True), hold=False)
        return found


def can_stream(model: Any) -> bool:
    """Return whether a model has `partial_fit`; raise `AttributeError` saying why not."""
    if isinstance(model.n_heads, str) and model.n_heads == "infinite":
        raise AttributeError("partial_fit sums over features, and infinitely many heads have none; take n_heads=1000")
    if isinstance(model.solver, str) and model.solver not in ("auto", "primal"):
        raise AttributeError(f"partial_fit is primal; take solver='primal' or 'auto', not {model.solver!r}")
    if isinstance(getattr(model, "loss", None), str) and model.loss != "ridge":
        raise AttributeError("partial_fit needs loss='ridge': the log loss is no sum over batches")
    return True


def output_dtype(X: Any) -> np.dtype[Any]:
    """Return float32 for float32 input, sequences that were read or an array in blocks, else float64."""
    return np.dtype("float32" if X.dtype == np.float32 else "float64")
