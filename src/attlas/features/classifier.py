"""Classification on random-feature attention as a scikit-learn estimator."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from attlas.errors import InputError
from attlas.features.base import penalties_of, whole_or_not_at_all
from attlas.features.calibration import Calibration, calibrate, with_common_mean
from attlas.features.checked_blocks import WANTED, in_blocks
from attlas.features.labels import Classes, checked_labels, read_labels
from attlas.features.logistic import fit_log
from attlas.features.ridge_model import OnFrozenHeads, can_stream, output_dtype
from attlas.features.weights import batch_weights, class_weights, sample_weights
from attlas.inputs import choice, described

Array = NDArray[Any]


class RandomAttentionClassifier(ClassifierMixin, OnFrozenHeads):
    """Classification of sets or sequences of tokens by random-feature attention: frozen query-key matrices, trained values.

    For ``loss="ridge"`` the codes t_nc, +1 for the class of sample n and -1 for the others, are fitted by ridge regression

    min_v sum_n w_n (t_nc - s_nc)^2 + lam ||v_c||^2,   s_nc = sum_m <v_mc, phi_m(X_n)> + mean of t_c,

    lam = alpha sum_n w_n K_nn / sum_n w_n, and scores become probabilities by one slope and a shift per class,

    P(c | X) = softmax_c(a s_c + b_c),   a >= 0,

    that have the smallest log loss on the leave-one-out scores of the same fit. For ``loss="log"`` the log loss of
    softmax_c(s_c) itself is minimised, with lam/2 ||v||^2. Two classes have one score, with a sigmoid for the softmax.

    Parameters
    ----------
    n_heads : int or "infinite", default 1000
        "infinite" is the kernel limit, without the noise of finitely many heads; not for softmax, nor for two layers.
    query : {"first", "mean"} or None, default None
        None: every token of a set asks in turn, and the features are averaged. "mean": the mean token asks. "first": token 0
        asks, the others are keys.
    loss : {"ridge", "log"}, default "ridge"
        Ridge is one linear solve for any number of classes. The log loss takes tens to hundreds of steps, each of about the
        cost of a prediction of all samples, and a few factorisations per penalty.
    class_weight : None, "balanced" or dict
        Weights of the classes, times those of samples: by class (1 where it has none), or inversely to their frequencies.
        Probabilities are then those of a world with such frequencies. Not for multi-label problems.
    bias, activation, positions, depth, token_dim, random_state, n_jobs
        As for `RandomAttentionFeatures`.
    alpha : float or "loo", default "loo"
        The relative penalty, or the best of `alphas`: by the squared leave-one-out errors of the codes for ridge; for the
        log loss by the log loss on five held-out folds, or on one fifth of more than 3,000 samples.
    alphas : array_like, optional
        Powers of ten from 1e-6 to 1e3 if not given.
    fit_intercept : bool, default True
    solver : {"auto", "dual", "primal", "cg"}
        As for `RandomAttentionRegressor`. The log loss has no "cg". Conjugate gradients leave out a tenth of the samples,
        on which probabilities are calibrated.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        Sorted. For a multi-label problem, y of zeros and ones (n, labels), the numbers of its columns.
    alpha_ : float
    loo_errors_ : array of shape (alphas, outputs)
        Mean squared leave-one-out errors of the codes, if alpha is "loo". For the log loss held-out log losses (alphas, 1),
        from the largest penalty on; NaN once they have risen twice in a row.
    calibration_ : Calibration or None
        `slope` and `shift`, (outputs,); None for the log loss.
    intercept_ : array of shape (outputs,)
    heads_, coef_ : arrays
        Heads and their values (n_heads (d + 1), outputs); for infinitely many heads `X_fit_` and `dual_coef_`.
    solver_, n_iter_, status_
        As for `RandomAttentionRegressor`; steps of the log loss are counted, too.

    Notes
    -----
    A class has an output of its own, except that two classes share one. Labels of a multi-label problem are learned each on
    its own, with one penalty for all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5, 3))
    >>> y = np.where(X[:, :, 0].mean(1) > 0, "right", "left")
    >>> model = RandomAttentionClassifier(n_heads=100, random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.85), model.predict_proba(X[200:]).shape
    (True, (100, 2))

    References
    ----------
    fu2023random for the features, platt1999probabilistic for the calibration.
    """

    def __init__(
        self,
        n_heads: int | Literal["infinite"] = 1000,
        *,
        query: Literal["first", "mean"] | None = None,
        loss: Literal["ridge", "log"] = "ridge",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        bias: float | ArrayLike = 0.0,
        activation: Any = "relu",
        positions: float = 0.0,
        depth: int = 1,
        alpha: float | Literal["loo"] = "loo",
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        solver: Literal["auto", "dual", "primal", "cg"] = "auto",
        token_dim: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_heads = n_heads
        self.query = query
        self.loss = loss
        self.class_weight = class_weight
        self.bias = bias
        self.activation = activation
        self.positions = positions
        self.depth = depth
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.token_dim = token_dim
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @whole_or_not_at_all
    @np.errstate(over="ignore", invalid="ignore")  # overflow raises an InputError
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the values of the heads.

        Parameters
        ----------
        X : list of arrays (k_i, d), or array of shape (n, tokens, d) or (n, numbers)
            A `dask.array` (n, tokens, d) is fitted where its blocks are, by ridge in the primal; `y` and weights then are,
            too. Labels and scores, n of each, are held here.
        y : array_like of shape (n,), or of zeros and ones (n, labels)
            Labels of any kind that can be sorted.
        sample_weight : array_like of shape (n,), optional
            w_n >= 0. A sample that is left out is left out with all its weight. The penalty does not grow with the weights:
            weights that sum to 1 are as few as one sample, so let them be about 1 on average.
        """
        if in_blocks(X):
            return self._fit_in_blocks(X, y, sample_weight)
        checked = self._sequences(X, reset=True)
        classes, index = read_labels(y, len(checked))
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        weight = self._weights(classes, index, sample_weights(sample_weight, len(index)))
        codes = classes.codes(index)
        if choice(self.loss, "loss", ("ridge", "log"), "'ridge' or 'log'") == "log":
            self._log(checked, codes, classes.kind == "multi-class", weight)
        else:
            found = self._ridge(checked, codes, weight, left_out=True)
            total = float(len(codes) if weight is None else weight.sum())
            self._calibrate(found.left_out, codes, weight, total, classes)
        self._classes, self.classes_ = classes, classes.names
        return self

    def _fit_in_blocks(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if self.loss != "ridge" or self.class_weight is not None:
            raise InputError(
                "arrays in blocks are fitted with loss='ridge' and without class_weight; give sample_weight"
            )
        if not in_blocks(y) or not (sample_weight is None or in_blocks(sample_weight)):
            raise InputError(WANTED)
        labels = y.compute()
        classes, index = read_labels(labels, len(labels))
        codes = classes.codes(index)
        weight = None if sample_weight is None else sample_weights(sample_weight.compute(), len(labels))
        self._weights(classes, index, weight)
        blocks = (y.rechunk({1: -1}) if y.ndim == 2 else y[:, None]).map_blocks(
            partial(_codes_of, classes), chunks=(y.chunks[0], (codes.shape[1],)), dtype=float, meta=np.empty((0, 0))
        )
        found = self._ridge_blocks(X, blocks, sample_weight, left_out=True)
        total = float(len(codes) if weight is None else weight.sum())
        self._calibrate(np.asarray(found.left_out.compute()), codes, weight, total, classes)
        self._classes, self.classes_ = classes, classes.names
        return self

    @available_if(can_stream)
    @whole_or_not_at_all
    @np.errstate(over="ignore", invalid="ignore")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of samples to the ridge fit, in the primal: only sums over them are kept, p^2 numbers.

        Heads are drawn at the first call. At a fixed alpha any batches give the values that `fit` with ``solver="primal"``
        gives on all of them. Probabilities are calibrated on 1,000 samples drawn from all so far, each left out of all
        others; these also choose the penalty for "loo", at the first call and whenever the samples have doubled since.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array_like
            All classes that there will be, at the first call; not needed for y of zeros and ones (n, labels), nor after a
            `fit`, after which it starts anew with the same classes.
        """
        first = not hasattr(self, "_sums")
        known_before = getattr(self, "classes_", None)
        checked = self._sequences(X, reset=first)
        if classes is None and known_before is None and not _is_table(y):
            raise InputError("classes must be given at the first call of partial_fit: all that there will be")
        if isinstance(self.class_weight, str):
            raise InputError("class_weight='balanced' needs all samples at once; give partial_fit a dict of weights")
        known, index = read_labels(y, len(checked), classes if first and classes is not None else known_before)
        if not first and (known.kind != self._classes.kind or not np.array_equal(known.names, self.classes_)):
            raise InputError(f"y is {known.kind}, in earlier batches it was {self._classes.kind}")
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(f"classes differ from those of the first call, {described(self.classes_.tolist())}")
        weight = self._weights(known, index, batch_weights(sample_weight, len(index)), least=1)
        found = self._add(checked, known.codes(index), weight, left_out=True)
        _, columns, kept_weight = self._sums.kept
        self._calibrate(found.left_out, columns[:, :-1], kept_weight, self._sums.weight, known)
        self._classes, self.classes_ = known, known.names
        return self

    @np.errstate(over="ignore", invalid="ignore")
    def decision_function(self, X: Any) -> Array:
        """Return log-odds: of the second of two classes (n,); else (n, classes), up to a constant, or of every label."""
        check_is_fitted(self)
        found = self._told(X, partial(_log_odds, self.calibration_), len(self.intercept_))
        return found[:, 0] if self._single else found

    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X: Any) -> Array:
        """Return the most probable classes (n,); for a multi-label problem zeros and ones (n, labels)."""
        check_is_fitted(self)
        several = self._classes.kind == "multi-label"
        make = partial(_labels_of, self._classes, self.calibration_)
        found = self._told(X, make, len(self.classes_) if several else 1, self.classes_.dtype)
        return found if several else found[:, 0]

    @np.errstate(over="ignore", invalid="ignore")
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities (n, classes) in the order of `classes_`; for a multi-label problem (n, labels), of ones."""
        check_is_fitted(self)
        return self._told(X, partial(_probabilities_of, self._classes, self.calibration_), len(self.classes_))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        found: Any = self.predict_proba(X)
        if in_blocks(X):
            return found.map_blocks(np.log, dtype=found.dtype)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of samples, weighted if wanted, that get their own label; all of them in a multi-label problem.

        This is `sklearn.metrics.accuracy_score`, for labels of any kind that `fit` takes.
        """
        found = np.asarray(self.predict(X))
        labels = checked_labels(y, len(found))
        if labels.shape != found.shape:
            raise InputError(f"y must have shape {found.shape}, as the labels that are predicted; got {labels.shape}")
        right = np.asarray(labels == found).reshape(len(found), -1).all(1)
        return float(np.average(right, weights=batch_weights(sample_weight, len(found))))

    def _told(self, X: Any, make: Callable[[Array], Array], width: int, dtype: Any = None) -> Any:
        """Return what `make` says of scores, (n, width), in the precision of X; for an array in blocks not computed yet."""
        if not in_blocks(X):
            checked = self._read(X)
            return make(self._scores(checked)).astype(dtype or output_dtype(checked), copy=False)
        scores, kind = self._scores_in_blocks(X), dtype or output_dtype(X)
        # the cast is in the block: Dask takes it that blocks are of the type they are said to be, and would leave it out
        cast = partial(_made, make, kind)
        return scores.map_blocks(cast, chunks=(scores.chunks[0], (width,)), dtype=kind, meta=np.empty((0, 0), kind))

    def _outputs(self, X: Any) -> Array:
        return _log_odds(self.calibration_, self._scores(X))

    @property
    def _single(self) -> bool:
        return self._classes.kind == "binary"

    def _weights(self, classes: Classes, index: Array, weight: Array | None, least: int = 2) -> Array | None:
        """Return the weights of samples, of which at least this many classes must have some."""
        if classes.kind == "multi-label":
            if self.class_weight is not None:
                raise InputError("class_weight is for one class per sample; weigh multi-label samples by sample_weight")
            return weight
        found = class_weights(self.class_weight, classes.names, index, weight, least)
        counted = np.unique(index if found is None else index[found > 0])
        if len(counted) < least:
            only = described(classes.names[counted[:1]].tolist()[0])
            raise InputError(f"only the class {only} has samples of positive weight; a classifier needs two classes")
        return found

    def _calibrate(
        self, left_out: Array | None, codes: Array, weight: Array | None, total: float, classes: Classes
    ) -> None:
        scores = np.zeros_like(codes) if left_out is None else left_out  # None: one sample so far
        if left_out is not None and self.fit_intercept and self.solver_ != "cg":  # whose held-out samples share a mean
            scores = with_common_mean(left_out, codes, weight, self.intercept_, total)
        self.calibration_: Calibration | None = calibrate(scores, codes, weight, classes.kind == "multi-class")

    def _log(self, X: Array, codes: Array, exclusive: bool, weight: Array | None) -> None:
        heads = self._draw(X)
        solver = self._solver_for(heads, len(X))
        if solver == "cg":
            raise InputError(
                "loss='log' has no conjugate gradients, and at these sizes a factorisation is large;"
                " take loss='ridge', fewer heads, or ask for solver='primal'"
            )
        alphas = penalties_of(self.alpha, self.alphas)
        found = fit_log(heads.on(X), solver, codes, exclusive, alphas, self._chooses, self.fit_intercept, weight)
        if not found.solution.converged:
            warnings.warn(
                f"the log loss at alpha = {found.alpha:.1e} stopped after {found.steps} steps ({found.status});"
                " a larger alpha needs fewer",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.intercept_, self.calibration_ = found.intercept, None
        self._keep(heads, solver, found, found.errors, heads.fitted(X, found.values))


def _codes_of(classes: Classes, block: Array) -> Array:
    labels = block if classes.kind == "multi-label" else block[:, 0]
    return classes.codes(read_labels(labels, len(labels), classes.names)[1] if len(block) else labels.astype(int))


def _made(make: Callable[[Array], Array], dtype: Any, scores: Array) -> Array:
    return make(scores).astype(dtype, copy=False)


def _log_odds(calibration: Calibration | None, scores: Array) -> Array:
    return scores if calibration is None else calibration(scores)


def _labels_of(classes: Classes, calibration: Calibration | None, scores: Array) -> Array:
    found = classes.predict(_log_odds(calibration, scores))
    return found if found.ndim == 2 else found[:, None]


def _probabilities_of(classes: Classes, calibration: Calibration | None, scores: Array) -> Array:
    return classes.probabilities(_log_odds(calibration, scores))


def _is_table(y: Any) -> bool:
    """Return whether labels are zeros and ones (n, labels), which name their classes themselves."""
    try:
        return np.shape(y)[1:] not in ((), (1,))
    except ValueError:  # rows of different length: `read_labels` says what is wrong with them
        return True
