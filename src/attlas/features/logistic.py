"""Logistic regression on frozen heads, of two or more classes or of labels on their own, with a penalty chosen on folds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import expit, log_expit, log_softmax, softmax

from attlas.errors import InputError
from attlas.features.descent import Curvature, Loss, Objective, descend, scores_of, weighted_gram
from attlas.features.head_features import finite
from attlas.features.ridge import factor
from attlas.numerics import Solution, Status, stream

Array = NDArray[Any]

FOLDS = 5
MANY = 3000  # samples; from here on one of the folds chooses the penalty
TOL, ROUGH = 1e-8, 1e-4  # of the last fit, and while the penalty is chosen
MAX_STEPS = 1000
TIED = 1e-4  # nats per sample: among penalties so close to the best the largest is taken


class LogFit(NamedTuple):
    """What was found: `values`, `intercept` (outputs,), the penalty `alpha`, and the held-out log losses (alphas, 1)."""

    values: Array
    intercept: Array
    alpha: float
    errors: Array | None
    solution: Solution[Array]

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self.solution.steps

    @property
    def status(self) -> Status:
        """How it ended."""
        return self.solution.status


def fit_log(
    design: Any,
    solver: str,
    codes: Array,
    exclusive: bool,
    alphas: Array,
    choose: bool,
    intercept: bool,
    weight: Array | None = None,
) -> LogFit:
    """Minimise sum_n w_n loss_n + lam/2 |v|^2, lam = alpha sum_n w_n K_nn / sum_n w_n.

    Parameters
    ----------
    design : Design
    solver : {"dual", "primal"}
        Whether there is a coefficient per sample or a value per feature.
    codes : array of shape (n, outputs)
        +1 for what a sample is and -1 for what it is not.
    exclusive : bool
        Exactly one of them is +1: the loss is that of a softmax; else the sum of those of sigmoids.
    alphas : array
        Relative penalties.
    choose : bool
        Take the one of the smallest log loss on held-out folds, the largest within `TIED` of it; else there is only one.
    intercept : bool
    weight : array of shape (n,), optional
    """
    w = np.ones(len(codes)) if weight is None else weight
    problem = _Problem.of(design, solver, codes, exclusive, intercept, w)
    alpha, errors = float(alphas[0]), None
    if choose:
        errors = _held_out(problem, alphas)
        alpha = float(np.max(alphas[errors <= np.nanmin(errors) + TIED]))
    found = problem.fit(problem.under(w), alpha * problem.scale, None, TOL, MAX_STEPS)
    values, b = found.value[:-1], found.value[-1]
    if solver == "dual":
        # the factor L of K = L L^T took the place of Phi: v = Phi^T a has the same scores if L^T a is what was found
        ((root, _),) = problem.rows
        values = design.values(solve_triangular(root, values, lower=True, trans="T", check_finite=False))
    return LogFit(values, b, alpha, None if errors is None else errors[:, None], found)


def _held_out(problem: "_Problem", alphas: Array) -> Array:
    """Return the mean held-out log loss of every penalty, from the largest on; NaN once it has risen twice in a row."""
    errors, rises = np.full(len(alphas), np.nan), 0
    folds = list(_folds(problem.codes, problem.exclusive))
    parts = [problem.under(np.where(test, 0.0, problem.w)) for test in folds]
    starts: list[Array | None] = [None] * len(folds)
    before = np.inf
    for row in np.argsort(alphas)[::-1]:
        total = 0.0
        try:
            for number, test in enumerate(folds):
                found = problem.fit(parts[number], alphas[row] * problem.scale, starts[number], ROUGH, MAX_STEPS // 10)
                starts[number] = found.value  # the next penalty starts here
                loss = log_loss(problem.codes[test], problem.exclusive, problem.w[test])
                total += loss(problem.predict(found.value)[test])[0]
        except InputError:
            break  # too small for the rounding of the Gram matrix
        errors[row] = total / float(np.sum(problem.w[np.any(folds, axis=0)]))
        rises = rises + 1 if errors[row] > before else 0
        before = errors[row]
        if rises == 2:
            break
    if np.isnan(errors).all():
        raise InputError("the Gram matrix is not positive definite at any of the penalties; give larger alphas")
    return errors


def _folds(codes: Array, exclusive: bool) -> Iterator[Array]:
    """Return which samples are held out: fifths in which classes are as frequent as in all."""
    n, count = len(codes), min(FOLDS, len(codes))
    order, fold = stream(0, "folds").permutation(n), np.empty(n, dtype=int)
    own = np.argmax(codes, axis=1) if exclusive else codes[:, 0]
    fold[order[np.argsort(own[order], kind="stable")]] = np.arange(n) % count
    for number in range(count if n <= MANY else 1):
        yield fold == number


def log_loss(codes: Array, exclusive: bool, w: Array) -> Loss:
    """Return the function from scores (n, outputs) to sum_n w_n loss_n and its gradient."""
    own = (codes > 0).astype(float)

    def softmax_loss(z: Array) -> tuple[float, Array]:
        log_p = log_softmax(z, axis=1)
        return float(-w @ np.sum(own * log_p, axis=1)), w[:, None] * (np.exp(log_p) - own)

    def sigmoid_loss(z: Array) -> tuple[float, Array]:
        log_p = log_expit(codes * z)
        return float(-w @ log_p.sum(1)), w[:, None] * -codes * np.exp(log_expit(-codes * z))

    return softmax_loss if exclusive else sigmoid_loss


def log_curvature(exclusive: bool, w: Array) -> Curvature:
    """Return the function from scores to a bound, sample by sample, on w times the second derivatives of the loss there."""

    def curvature(z: Array) -> Array:
        # rows of diag(p) - p p^T have absolute sums 2 p (1 - p), which bound its eigenvalues (Gershgorin)
        p = softmax(z, axis=1) if exclusive else expit(z)
        return np.asarray(w * np.max(p * (1 - p), axis=1) * (2 if exclusive else 1))

    return curvature


class _Weighed(NamedTuple):
    """Weights, and Phi^T W Phi."""

    w: Array
    gram: Array


@dataclass(frozen=True)
class _Problem:
    """Features in blocks, and what is learned from them.

    In the dual there may be more features than samples, or infinitely many; a Cholesky factor of their Gram matrix serves as
    well, for the samples at hand and for those that are held out.
    """

    rows: Iterable[tuple[Array, slice]]
    codes: Array
    exclusive: bool
    intercept: bool
    w: Array
    whole: Array  # Phi^T W Phi
    scale: float

    @classmethod
    def of(cls, design: Any, solver: str, codes: Array, exclusive: bool, intercept: bool, w: Array) -> "_Problem":
        rows: Iterable[tuple[Array, slice]]
        if solver == "dual":
            K = design.gram()
            trace, rows = float(w @ np.diag(K)), [(_root(K), slice(None))]
        else:
            rows = design.by_rows
        gram = finite(weighted_gram(rows, w), "the features")
        trace = trace if solver == "dual" else float(np.trace(gram))
        if trace <= 0:
            raise InputError("all features are zero: no head is active on these tokens; take more heads")
        return cls(rows, codes, exclusive, intercept, w, gram, trace / float(w.sum()))

    def under(self, w: Array) -> _Weighed:
        """Return the problem under other weights."""
        return _Weighed(w, self.whole if w is self.w else weighted_gram(self.rows, w))

    def fit(self, part: _Weighed, penalty: float, start: Array | None, tol: float, max_steps: int) -> Solution[Array]:
        """Return the best point under a penalty."""
        loss, most = log_loss(self.codes, self.exclusive, part.w), 0.5 if self.exclusive else 0.25
        near = log_curvature(self.exclusive, part.w)
        x = np.zeros((len(part.gram) + 1, self.codes.shape[1])) if start is None else start
        objective = Objective(self.rows, part.gram, loss, near, most, float(part.w.sum()), penalty, self.intercept)
        return descend(objective, x, tol=tol, max_steps=max_steps)

    def predict(self, x: Array) -> Array:
        """Return the scores of all samples."""
        return scores_of(self.rows, x)


def _root(K: Array) -> Array:
    """Return a Cholesky factor of K, raised by as little as rounding needs."""
    scale = float(np.trace(K)) / len(K)
    for lift in (1e-13, 1e-11, 1e-9, 1e-7):
        try:
            return factor(K, lift * scale)
        except InputError:
            continue
    return factor(K, 1e-5 * scale)
