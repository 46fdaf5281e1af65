"""The theory of the user's own tokens, from the eigenvalues of a Gram matrix of them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features import targets as known_targets
from attlas.features.sequences import sequences
from attlas.features.sharp.cost import sample_cost
from attlas.features.sharp.counts import head_count
from attlas.features.sharp.curve import curve
from attlas.features.sharp.groups import Apart
from attlas.features.sharp.model import Placed
from attlas.features.sharp.predictor import Predictor
from attlas.features.sharp.spectrum import Label, Sectors, Spectrum
from attlas.features.sharp.table import spectrum_table
from attlas.inputs import array, plain
from attlas.numerics import Progress, Solution, stream

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

ENOUGH = 20  # sequences for every sample that is predicted
SOFTMAX_HEADS = 4000


def theory_of(
    X: ArrayLike,
    *,
    bias: float | ArrayLike = 0.0,
    activation: Any = "relu",
    positions: float = 0.0,
    kernel: ArrayLike | None = None,
    seed: int = 0,
) -> "OwnTheory":
    """Return the theory for sequences of any law, from the eigenvalues and eigenvectors of their Gram matrix.

    The n0 sequences stand for their law: eigenvalues of K/n0, and squared projections of the target's values. Errors come
    out too low by a share of about n/n0 (more at small penalties): ask for n0 >= 20 n. Keys and heads are taken as alike.

    Parameters
    ----------
    X : array of shape (n0, 1 + keys, d)
        Sequences like those to be learned from; n0 up to some thousands, since their Gram matrix is diagonalised.
    bias, activation, positions
        As for the estimators. "softmax" has no kernel in closed form; it is sampled with 4000 heads, to about 2 %.
    kernel : array of shape (n0, n0), optional
        The Gram matrix itself, of whatever learner.
    seed : int
        Of the heads of softmax.

    Examples
    --------
    >>> from attlas import features, tokens
    >>> theory = features.theory_of(tokens.gaussian(200, 4, 3, seed=0))
    >>> theory.values.shape, bool(theory.values.max() > 0)  # eigenvalues of the Gram matrix
    ((200,), True)
    """
    checked = sequences(X)
    if len(checked) < 10:
        raise InputError(f"a theory of your own tokens needs some hundred sequences; got {len(checked)}")
    if kernel is not None:
        K = array(kernel, "kernel", ("n0", "n0"))
        if K.shape != (len(checked), len(checked)) or not np.isfinite(K).all() or not np.allclose(K, K.T, rtol=1e-6):
            raise InputError(
                f"kernel must be a finite symmetric matrix ({len(checked)}, {len(checked)}); got {K.shape}"
            )
    elif isinstance(activation, str) and activation == "softmax":
        if positions:
            raise InputError("positions with softmax have no kernel here; leave positions 0, or give the kernel itself")
        from attlas.features.head_features import HeadFeatures
        from attlas.features.token_maps import draw_heads

        heads, _ = draw_heads(SOFTMAX_HEADS, checked, bias, activation, stream(seed, "heads"))
        K = HeadFeatures(checked, heads, "softmax", hold=False).gram()
    else:
        from attlas.features.kernels import attention_kernel

        K = attention_kernel(checked, bias=bias, activation=activation, positions=positions)
    values, vectors = np.linalg.eigh(K / len(K))
    if not values[-1] > 0 or values[0] < -1e-6 * values[-1]:
        raise InputError(
            f"kernel must be positive semidefinite and not zero; its eigenvalues go from {values[0]:.3g} to {values[-1]:.3g}"
        )
    return OwnTheory(checked, np.maximum(values, 0.0), vectors)


@dataclass(frozen=True)
class OwnTheory:
    """What `theory_of` returns: curves, sample costs and the spectrum, as of `Theory`.

    Targets are functions of sequences, names such as "keys 2", or their values (n0,) or (n0, outputs) on these sequences.
    """

    X: Array = field(repr=False)
    values: Array = field(repr=False)
    vectors: Array = field(repr=False)

    @property
    def trace(self) -> float:
        """The mean of K(X, X), the unit of `alpha`."""
        return float(self.values.sum())

    @cached_property
    def whole(self) -> Spectrum:
        """The eigenvalues, one group of d + 1 features to a head."""
        labels: list[list[Label]] = [[(k, 0)] for k in range(len(self.values))]
        sectors = Sectors(labels, np.ones(len(self.values)), self.values[None], np.ones((len(self.values), 1)))
        return Spectrum([sectors], Apart(np.ones(1), np.array([self.X.shape[2] + 1.0])), self.trace, 0.0)

    def curve(
        self,
        target: Any,
        n: ArrayLike,
        *,
        heads: Any = "infinite",
        alpha: Any = "best",
        ridge: Any = None,
        noise: float = 0.0,
        progress: Progress | None = None,
    ) -> "xarray.Dataset":
        """Return the predicted test error over sample sizes; see `Theory.curve`."""
        return curve(self, target, n, heads, alpha, ridge, noise, progress)

    def sample_cost(
        self, target: Any, share: float = 0.5, *, heads: Any = "infinite", noise: float = 0.0, throw: bool = True
    ) -> Solution[float]:
        """Return the samples that bring the error down to `share`, as `Theory` does; too few beyond n0/20."""
        found = sample_cost(self, self.placed(target, heads), share, self.units(heads), noise, len(self.X) / 2)
        return found.or_raise("the sample cost") if throw else found

    def spectrum(self, target: Any = None) -> "xarray.Dataset":
        """Return the eigenvalues and a target's share in each."""
        return spectrum_table(self.whole, None if target is None else self.placed(target))

    def units(self, heads: Any) -> float:
        """Return the number of heads."""
        return head_count(heads)

    def predictor(self, units: float) -> Predictor:
        """Return what solves settings with this many heads."""
        return Predictor(self.whole, np.ones((1, 1)), units)

    def placed(self, target: Any, heads: Any = "infinite") -> Placed:  # noqa: ARG002
        """Return the squared projections of the target's values."""
        if isinstance(target, str):
            target = known_targets.named(target, self.X.shape[2], 0)
        given = target(self.X) if callable(target) else target
        try:
            y = plain(given, "target", "values").astype(float).reshape(len(self.X), -1)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"target must be a function of sequences, or its values on the {len(self.X)} given; got {target!r}"
            ) from error
        if not np.isfinite(y).all() or not y.var(0).sum() > 0:
            raise InputError("the values of the target must be finite, and not all the same")
        return Placed(((self.vectors.T @ y) ** 2).sum(1) / len(y), 0.0, float(y.var(0).sum()))

    def limits(self, units: float, sizes: Array) -> tuple[Array, str]:  # noqa: ARG002
        """Return the deviation: that of the theory, and the share n/n0 by which a sampled spectrum is too short."""
        share = np.asarray(sizes) / len(self.X)
        note = ""
        if np.any(ENOUGH * np.asarray(sizes) > len(self.X)):
            note = (
                f"n up to {np.max(sizes):g} of n0 = {len(self.X)} sequences: errors come out too low by about n/n0 or more;"
                f" give {ENOUGH} n sequences, or take n up to {len(self.X) // ENOUGH}"
            )
        return 0.10 + 2 * share, note
