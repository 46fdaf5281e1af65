"""The sharp theory of random-feature attention: the test error itself, at every n, penalty, noise and number of heads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features import targets as known_targets
from attlas.features.scoring import scoring_of
from attlas.features.sharp import biased, network, positions, unbiased
from attlas.features.sharp.cost import crossing, sample_cost, sample_costs
from attlas.features.sharp.counts import head_count
from attlas.features.sharp.curve import curve
from attlas.features.sharp.expansion import expansions
from attlas.features.sharp.model import Model, Placed
from attlas.features.sharp.predictor import Predictor
from attlas.features.sharp.spectrum import Spectrum
from attlas.features.sharp.table import spectrum_table
from attlas.inputs import choice, described, integer, real
from attlas.numerics import Progress, Solution

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

KEY_SAMPLES = 3000
OFFSET_NODES = 8
NORM_NODES = 2


class AnyTheory(Protocol):
    """What curves and sample costs are made of: a `Theory`, or one of the user's own tokens."""

    @property
    def trace(self) -> float:
        """The unit of `alpha`."""

    def units(self, heads: Any) -> float:
        """Return the number of units that a user means."""

    def placed(self, target: Any, heads: Any = "infinite") -> Placed:
        """Return where the spectrum holds a target."""

    def predictor(self, units: float) -> Predictor:
        """Return what solves settings with this many units."""

    def limits(self, units: float, sizes: Array) -> tuple[Array, str]:
        """Return the relative deviation to expect at each size, and what lies outside."""


def theory(
    d: int,
    keys: int,
    bias: float = 0.0,
    scoring: str | Callable[[Array], Any] = "relu",
    *,
    positions: float = 0.0,
    learner: Literal["attention", "network"] = "attention",
    key_samples: int = KEY_SAMPLES,
    offset_nodes: int = OFFSET_NODES,
    norm_nodes: int = NORM_NODES,
) -> "Theory":
    """Return the theory of ridge regression on frozen random heads, for tokens that are uniform on the unit sphere.

    The spectrum of the infinite-head kernel is known exactly; a fixed point of a few numbers then gives the mean test error,
    without a fit.

    Parameters
    ----------
    d, keys : int
        Dimension of a token; keys beside the query.
    bias : float, default 0
        Strength b of the bias W_0 = b [[I, 0], [0, 0]] of the heads; needs d >= 5.
    scoring : str or function
        "relu", "exp", "sigmoid", "erf", "tanh", "relu2", or a function of an array of scores.
    positions : float, default 0
        gamma^2, the squared length of a one-hot position code on the keys.
    learner : {"attention", "network"}
        "network" is random neurons on the same tokens in order (RFMLP); M heads count as M (d + 1) neurons.
    key_samples : int, default 3000
        Key sets that the lengths of features are averaged over; 0 takes them as alike.
    offset_nodes : int, default 8
        Values of the heads' score offset; 0 takes heads as alike.
    norm_nodes : int, default 2
        Values of the lengths of the rows by which a head looks at query and keys; 0 leaves them out, and with them that its
        scalar feature and its value along its key direction belong together. Not used with a bias.

    Examples
    --------
    >>> from attlas import features
    >>> found = features.theory(d=8, keys=8).curve("keys 2", n=[200, 1000])
    >>> found.error.values.round(2).tolist()  # over the variance of the target
    [0.24, 0.0]

    References
    ----------
    fu2023random for the model; the theory is derived in `docs/features.md`, after simon2023eigenlearning,
    bordelon2020spectrum, cheng2024dimension and defilippis2024dimension.
    """
    return Theory(d, keys, bias, scoring, positions, learner, key_samples, offset_nodes, norm_nodes)


@dataclass(frozen=True)
class Theory:
    """What `theory` returns, with its arguments as attributes. Spectra are computed once, when first needed."""

    d: int
    keys: int
    bias: float = 0.0
    scoring: Any = "relu"
    positions: float = 0.0
    learner: str = "attention"
    key_samples: int = field(default=KEY_SAMPLES, repr=False)
    offset_nodes: int = field(default=OFFSET_NODES, repr=False)
    norm_nodes: int = field(default=NORM_NODES, repr=False)

    def __post_init__(self) -> None:
        integer(self.key_samples, "key_samples", least=0, most=1_000_000)
        integer(self.offset_nodes, "offset_nodes", least=0, most=32)
        integer(self.norm_nodes, "norm_nodes", least=0, most=4)
        self.model  # noqa: B018  # says at once what is wrong

    @cached_property
    def model(self) -> Model:
        """The learner."""
        return _model(self.d, self.keys, self.bias, self.scoring, self.positions, self.learner)

    @cached_property
    def infinite(self) -> Spectrum:
        """The spectrum of infinitely many heads."""
        return self.model.infinite()

    @cached_property
    def finite(self) -> Spectrum:
        """The spectrum of finitely many heads, in groups of features."""
        return self.model.finite(self.offset_nodes, self.norm_nodes)

    @cached_property
    def tau(self) -> Array:
        """Samples of the lengths of features."""
        return self.model.norms(self.key_samples)

    @property
    def trace(self) -> float:
        """E[K(X, X)], the unit of `alpha`."""
        return self.infinite.trace

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
        """Return the predicted test error over sample sizes.

        Parameters
        ----------
        target : target, str or list
            Of `attlas.features.targets`, or a name such as "keys 2"; energies {(a, b): e} by degrees of query and key; or a
            list of these, which share every solution.
        n : number or array_like
            Sample sizes.
        heads : number, "infinite" or a list of these
            M.
        alpha : "best", number or list
            Penalty relative to the trace of the kernel over n, as in the estimators. "best" has the smallest predicted
            error.
        ridge : number or list, optional
            The absolute penalty instead.
        noise : float, default 0
            Variance of label noise over the variance of the target.
        progress : callable, optional
            Called with an `Event` as sizes proceed.

        Returns
        -------
        xarray.Dataset
            Over ``n``, and over ``heads``, ``penalty`` and ``target`` where lists were given: ``error``, the mean test error
            over the variance of the target (a constant predictor scores 1; label noise enters through what was learned, not
            through the test labels); ``mse``, the same absolute; ``from_noise``, the part of `error` that label noise
            causes;
            ``alpha`` and ``ridge``, the penalty used; ``freedom``, effective degrees of freedom; ``converged`` and
            ``residual`` of the fixed point; ``deviation``, the relative distance from simulation that nine in ten settings
            keep. What lies outside the theory is said in the attribute ``outside``.
        """
        return curve(self, target, n, heads, alpha, ridge, noise, progress)

    def sample_cost(
        self, target: Any, share: float = 0.5, *, heads: Any = "infinite", noise: float = 0.0, throw: bool = True
    ) -> Solution[float]:
        """Return the samples that bring the error down to `share` of the variance, at the best penalty (n50 for one half).

        The value is infinity where no number of samples does, 0 where two do already.
        """
        found = sample_cost(self, self.placed(target, heads), share, self.units(heads), noise)
        return found.or_raise("the sample cost") if throw else found

    def exponent(
        self,
        target: Any,
        d: Sequence[int] = (8, 16, 32, 64, 128),
        share: float = 0.5,
        *,
        heads: Any = "infinite",
        noise: float = 0.0,
    ) -> "xarray.Dataset":
        """Return the sample cost over d and the power of d with which it grows, all else as in this theory.

        Parameters
        ----------
        target : target, str or function
            As for `curve`; a function of d returns the target in that dimension. Directions count by their length alone.
        d : increasing integers

        Returns
        -------
        xarray.Dataset
            Over ``d``: ``cost``, ``converged`` and ``slope``, that of log cost between d and the next (NaN at the last).
        """
        return sample_costs(self, target, d, share, heads, noise)

    def crossing(
        self,
        target: Any,
        bias: tuple[float, float] = (0.0, 1.0),
        *,
        heads: Any = "infinite",
        noise: float = 0.0,
        throw: bool = True,
    ) -> Solution[float]:
        """Return the n from which the first bias has the smaller error for good, at the best penalties of both.

        The value is infinity where the first never overtakes up to n = 1e7, 0 where it is never behind.
        """
        if not isinstance(bias, list | tuple | np.ndarray) or len(bias) != 2:
            raise InputError(f"bias must be a pair of strengths, such as (0, 1); got {described(bias)}")
        pair = [replace(self, bias=strength) for strength in bias]
        placed = [one.placed(target, heads) for one in pair]
        found = crossing(pair, placed, self.units(heads), noise)
        return found.or_raise("the crossing") if throw else found

    def spectrum(self, target: Any = None) -> "xarray.Dataset":
        """Return the eigenvalues of the infinite-head kernel with multiplicities, and a target's share in each."""
        return spectrum_table(self.infinite, None if target is None else self.placed(target, "infinite"))

    def limits(self, units: float, sizes: Array) -> tuple[Array, str]:
        """Return the relative deviation from simulation to expect at each size, and what lies outside."""
        deviation, note = self.model.limits(units)
        return np.full(len(sizes), deviation), note

    def predictor(self, units: float) -> Predictor:
        """Return what solves settings with this many units."""
        return Predictor(self.infinite if np.isinf(units) else self.finite, self.tau, units)

    def placed(self, target: Any, heads: Any = "infinite", any_dimension: bool = False) -> Placed:
        """Return where the spectrum holds a target."""
        d = self.d
        if isinstance(target, str):
            target = known_targets.named(target, d, 0)
        beta = getattr(target, "beta", None)
        if beta is not None and not any_dimension and len(np.asarray(beta)) != d:
            raise InputError(f"beta of the target has dimension {len(np.asarray(beta))}, not d = {d}")
        spectrum = self.infinite if np.isinf(self.units(heads)) else self.finite
        parts = [self.model.place(spectrum, one) for one in expansions(target, d, self.model.needs_blocks)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        if not whole.variance > 0:
            raise InputError(f"{target!r} has no variance; an error relative to it means nothing")
        return whole

    def units(self, heads: Any) -> float:
        """Return the heads (or neurons) that a user means, checked."""
        return head_count(heads) * self.model.per_head


def _model(d: int, keys: int, bias: float, scoring: Any, weight: float, learner: str) -> Model:
    d, keys = integer(d, "d", least=3), integer(keys, "keys")
    if not isinstance(bias, int | float | np.number):
        raise InputError(
            "bias of the theory must be a strength b, of W_0 = b [[I, 0], [0, 0]]; a general W_0 has no such spectrum"
        )
    bias, weight = real(bias, "bias"), real(weight, "positions", least=0)
    function = scoring_of(scoring)
    if not float(function.square(0.0, 1.0)) > 0:
        raise InputError(f"scoring {scoring!r} is zero on every score; such heads have no features")
    if choice(learner, "learner", ("attention", "network")) == "network":
        if bias or weight:
            raise InputError("a network has no bias towards the query and no position codes; leave both 0")
        return network.Network(d, keys, function)
    if weight:
        if bias:
            raise InputError("position codes and a bias together have no spectrum here; set one of them to 0")
        return positions.Positions(d, keys, function, weight)
    if not bias:
        return unbiased.Unbiased(d, keys, function)
    if d < 5:
        raise InputError(f"the theory with a bias needs d of at least 5, where its blocks are irreducible; got d = {d}")
    return biased.Biased(d, keys, function, bias)
