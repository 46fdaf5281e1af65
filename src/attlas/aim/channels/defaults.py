"""What a channel may say about itself besides what it must, and what is assumed where it says nothing."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from attlas.aim.channels.channel import Array, doubling, symmetric_normal
from attlas.errors import InputError
from attlas.inputs import described
from attlas.layers import attention_indices
from attlas.numerics import stream

_REPLICAS = 40_000
_STEP = 1e-5  # of an index, for a derivative by differences


class ChannelDefaults:
    """The optional part of a channel, each member with what is assumed of a channel that lacks it.

    A class of your own may inherit from this, or offer any of these members without.

    Attributes
    ----------
    layers : int
        Layers of the teacher, 1. With L > 1, omega, h and scores have shape (L, n, T, T), V and Q have one entry per
        layer, and `information` is an L x L matrix, G_lm = sum_{a <= b} (1 + delta_ab) E[g_l,ab g_m,ab].
    floor : float
        The least V of message passing: below it the score is rounding. 1e-9.
    centred : bool
        Whether `indices` are known up to one common shift of all entries only. False.
    variance_per_sample : bool
        Whether `score` also takes V as an array that broadcasts to omega, a variance V_ab (1 + delta_ab) for each sample
        and pair, which message passing then gives it. False.
    """

    layers = 1
    floor = 1e-9
    centred = False
    variance_per_sample = False

    if TYPE_CHECKING:  # the required part, documented in `Channel`

        @property
        def tokens(self) -> int: ...  # noqa: D102
        def output(self, h: Array, rng: np.random.Generator) -> Array: ...  # noqa: D102
        def check(self, y: ArrayLike) -> Array: ...  # noqa: D102
        def score(self, y: Array, omega: Array, V: Any) -> Array: ...  # noqa: D102
        def information(self, V: ArrayLike, Q: ArrayLike) -> Array: ...  # noqa: D102

    @property
    def count(self) -> float | None:
        """C such that 2 V G2(V) = C for every V, as for noiseless channels that can be inverted; None if there is none."""
        return None

    @property
    def score_error(self) -> float:
        """The least change ||S_hat - old||^2/(d V) that its scores can settle; message passing asks for no less."""
        return 0.0

    @property
    def index_noise(self) -> float | None:
        """Variance of the Gaussian noise on `indices`, for the theory of training; None where it is not that."""
        return None

    def information_error(self, V: ArrayLike, Q: ArrayLike) -> tuple[Any, Any]:  # noqa: ARG002
        """Return the standard error of G2, and by how many standard errors the Nishimori identity is missed.

        A miss above 5 says that the quadrature does not resolve the channel, and what is computed from G2 is then
        ``Status.INACCURATE``. Zero and zero: G2 is exact.
        """
        return 0.0, 0.0

    def information_batches(self, V: ArrayLike, Q: ArrayLike) -> Array:
        """Return independent estimates of G2 along a first axis, whose mean is `information`; one: it is exact.

        Errors of several layers are correlated, and their spread over batches is what their standard errors come from.
        """
        return np.asarray(self.information(V, Q))[None]

    def indices(self, y: Array) -> Array:  # noqa: ARG002
        """Return the indices (n, T, T) that y gives, up to noise and, if `centred`, a common shift."""
        raise InputError(
            f"{described(self)} does not give its indices back from y: that needs a method indices(y);"
            " gradient descent can do without, with loss='outputs'"
        )

    def mean(self, h: Array) -> Array:  # noqa: ARG002
        """Return E[y | h], the output without its noise, for indices of shape (n, T, T)."""
        raise InputError(f"{described(self)} does not say its output without noise: that needs a method mean(h)")

    def pullback(self, h: Array, e: Array) -> Array:
        """Return the derivative of sum_ab e_ab mean_ab(h) by every h_ab, as if h_ab and h_ba were free; by differences."""
        T = self.tokens
        found = np.empty(h.shape)
        for a in range(T):
            for b in range(T):
                moved = np.zeros((T, T))
                moved[a, b] = _STEP
                found[:, a, b] = (e * (self.mean(h + moved) - self.mean(h - moved))).sum((1, 2)) / (2 * _STEP)
        return found

    def respond(self, X: Array, S: Array, rng: np.random.Generator) -> Array:
        """Draw y for tokens X (n, T, d) and the teacher S, (d, d) or (L, d, d)."""
        h = attention_indices(X, S) if np.ndim(S) == 2 else np.stack([attention_indices(X, own) for own in S])
        return self.output(h, rng)

    def bayes_error(self, V: float, Q: float) -> float:
        """Return E ||y - E[y | omega]||^2 over the T x T entries, y without its noise: by two replicas of `mean`."""
        first, second, _ = self._replicas(V, Q)
        return 0.5 * float(np.mean(np.sum((self.mean(first) - self.mean(second)) ** 2, axis=(1, 2))))

    def plugin_error(self, V: float, Q: float) -> float:
        """Return E ||y - y(omega)||^2, the error of putting the estimate of h into the output."""
        h, _, omega = self._replicas(V, Q)
        return float(np.mean(np.sum((self.mean(h) - self.mean(omega)) ** 2, axis=(1, 2))))

    def _replicas(self, V: float, Q: float) -> tuple[Array, Array, Array]:
        """Return two draws of h that share omega, and omega."""
        T, rng = self.tokens, stream(1, "custom error")
        omega, first, second = (
            np.sqrt(variance * doubling(T)) * symmetric_normal(_REPLICAS, T, rng)
            for variance in (max(Q - V, 0.0), V, V)
        )
        return omega + first, omega + second, omega


_REQUIRED = ("tokens", "output", "check", "score", "information")
_OPTIONAL = {name for name in dir(ChannelDefaults) if not name.startswith("_")}


def complete(channel: Any) -> ChannelDefaults:
    """Return a channel that answers everything: itself, or itself with the defaults where it says nothing.

    Raises
    ------
    InputError
        If it lacks what every channel must have.
    """
    missing = [name for name in _REQUIRED if not hasattr(channel, name)]
    if missing or isinstance(channel, type):
        lacks = f", which has no {', '.join(missing)}" if 0 < len(missing) < len(_REQUIRED) else ""
        raise InputError(f"channel must be a channel such as aim.Softmax(2); got {described(channel)}{lacks}")
    listed = set(dir(channel))  # a member that fails is there all the same; a wrapper answers for what it does not list
    said = {name for name in _OPTIONAL if name in listed or hasattr(channel, name)}
    return channel if said == _OPTIONAL else _Filled(channel, said)


def one_layer(channel: Any, what: str) -> ChannelDefaults:
    """Return the complete channel, or raise `InputError` if it has several layers."""
    known = complete(channel)
    if known.layers != 1:
        raise InputError(f"{what} is for one layer; call state_evolution at each alpha for {described(channel)}")
    return known


class _Filled(ChannelDefaults):
    """A channel of the user's own: what it says, and the defaults where it says nothing."""

    def __init__(self, channel: Any, said: set[str]) -> None:
        self._own, self._said = channel, said | set(_REQUIRED)

    def __getattribute__(self, name: str) -> Any:
        mine = object.__getattribute__
        return getattr(mine(self, "_own"), name) if name in mine(self, "_said") else mine(self, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)
