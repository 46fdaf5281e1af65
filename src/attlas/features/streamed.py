"""Ridge regression from sums over batches: the samples themselves need not be kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from attlas.errors import InputError
from attlas.features.head_features import finite
from attlas.features.ridge import Path, factor, solve
from attlas.numerics import Status, stream

Array = NDArray[Any]

KEPT = 1000  # samples whose features are kept, to leave each of them out


class StreamFit(NamedTuple):
    """The fit to all samples so far: values, penalty, what it was chosen by, and predictions of kept samples left out."""

    values: Array
    alpha: float
    errors: Array | None
    left_out: Array | None
    steps: int = 0
    status: Status = Status.CONVERGED


@dataclass
class Sums:
    """What ridge regression needs to know of all samples so far, and some of them in full.

    Attributes
    ----------
    G : array of shape (p, p)
        Phi^T W Phi.
    B : array of shape (p, targets + 1)
        Phi^T W [Y, 1].
    Y : array of shape (targets + 1,)
        1^T W [Y, 1]; its last entry is the sum of the weights.
    seen : int
        Samples of positive weight.
    kept : tuple of arrays
        Features, [Y, 1] and weights of `KEPT` samples, drawn from all samples of positive weight with equal chances: however
        batches are ordered, they stand for all.
    rng : Generator
        That draws them.
    alpha : float, optional
        The penalty chosen last.
    chosen_at : int
        Samples seen then.
    errors : array, optional
        What it was chosen by.
    """

    G: Array
    B: Array
    Y: Array
    kept: tuple[Array, Array, Array]
    rng: np.random.Generator
    seen: int = 0
    alpha: float | None = None
    chosen_at: int = 0
    errors: Array | None = None

    @classmethod
    def empty(cls, p: int, targets: int) -> "Sums":
        """Return sums over nothing."""
        kept = (np.empty((0, p), np.float32), np.empty((0, targets + 1)), np.empty(0))
        rng = stream(0, "kept samples")
        return cls(np.zeros((p, p)), np.zeros((p, targets + 1)), np.zeros(targets + 1), kept, rng)

    @property
    def mean(self) -> Array:
        """The weighted mean of the targets."""
        return np.asarray(self.Y[:-1] / self.Y[-1])

    @property
    def weight(self) -> float:
        """The sum of all weights."""
        return float(self.Y[-1])

    def add(self, rows: Iterable[tuple[Array, slice]], Y: Array, weight: Array | None, keep: bool) -> None:
        """Add a batch: blocks of its features and which samples they are, targets (n, targets), weights (n,)."""
        w = np.ones(len(Y)) if weight is None else weight
        columns = np.concatenate([Y, np.ones((len(Y), 1))], axis=1)
        G, B, kept, seen = np.zeros_like(self.G), np.zeros_like(self.B), self.kept, self.seen
        for Phi, part in rows:
            weighed = Phi if weight is None else Phi * w[part, None]
            G += Phi.T @ weighed
            B += weighed.T @ columns[part]
            if keep:
                held = np.flatnonzero(w[part] > 0)
                kept = self._drawn(kept, (Phi[held], columns[part][held], w[part][held]), seen)
                seen += len(held)
        self.G += finite(G, "the features")  # or nothing is added
        self.B += B
        self.Y += w @ columns
        self.kept = kept
        self.seen += int(np.count_nonzero(w))

    def _drawn(self, kept: tuple[Array, ...], new: tuple[Array, ...], seen: int) -> Any:
        """Return what is kept of the samples kept and of new ones, after so many: each of all has the same chance."""
        free = min(max(KEPT - len(kept[2]), 0), len(new[2]))
        numbers = seen + np.arange(free, len(new[2]))
        places = self.rng.integers(0, numbers + 1)
        inside = np.flatnonzero(places < KEPT)
        found = []
        for old, added in zip(kept, new, strict=True):
            joined = np.concatenate([old, added[:free]])
            joined[places[inside]] = added[free:][inside]  # where two take one place, the later stays
            found.append(joined)
        return tuple(found)

    def solve(self, alphas: Array, choose: bool, intercept: bool, left_out: bool) -> StreamFit:
        """Return the fit to all samples so far, at the only penalty or at the best one.

        A penalty is chosen by the leave-one-out errors of the kept samples, each left out of all samples so far; at the
        first call, and whenever the samples have doubled since. `left_out` predictions are those of the kept samples.
        """
        scale = float(np.trace(self.G) / self.Y[-1])
        if scale <= 0:
            raise InputError("all features are zero: no head is active on these tokens; take more heads")
        if choose and self.seen >= max(2, 2 * self.chosen_at):
            self.errors, self.chosen_at = self._path(alphas * scale, intercept), self.seen
            self.alpha = float(alphas[Path(alphas, self.errors).best])
        alpha = float(alphas[0]) if not choose else float(alphas.max()) if self.alpha is None else self.alpha
        L = factor(self.G, alpha * scale)
        B = self.B[:, :-1] - self.B[:, -1:] * self.mean if intercept else self.B[:, :-1]
        unseen = self.kept[1][:, :-1] - self._errors(L, intercept) if left_out and self.seen > 1 else None
        return StreamFit(solve(L, B), alpha, self.errors, unseen)

    def _path(self, penalties: Array, intercept: bool) -> Array:
        """Return the mean squared leave-one-out errors (penalties, targets) of the kept samples."""
        errors, w = np.full((len(penalties), len(self.Y) - 1), np.inf), self.kept[2]
        for row, penalty in enumerate(penalties):
            try:
                L = factor(self.G, float(penalty))
            except InputError:
                continue
            errors[row] = w @ self._errors(L, intercept) ** 2 / w.sum()
        if np.isinf(errors).all():
            raise InputError("the Gram matrix is not positive definite at any of the penalties; give larger alphas")
        return errors

    def _errors(self, L: Array, intercept: bool) -> Array:
        """Return the leave-one-out errors of the kept samples: (y - phi v)/(1 - w |L^-1 phi|^2), means without them."""
        Phi, columns, w = self.kept
        half = solve_triangular(L, Phi.T.astype(float), lower=True, overwrite_b=True, check_finite=False)
        kept = np.maximum(1 - w * np.einsum("ki,ki->i", half, half), 1e-12)[:, None]
        missed = (columns - Phi @ solve(L, self.B)) / kept
        if not intercept:
            return np.asarray(missed[:, :-1])
        means = (self.Y[:-1] - w[:, None] * columns[:, :-1]) / (self.Y[-1] - w)[:, None]
        return np.asarray(missed[:, :-1] - means * missed[:, -1:])
