"""Is what a fitted layer leaves noise? A test by sign-flipped effective scores, with a stated error rate.

The null hypothesis: given X, the residuals E_s of the sequences s are independent and have mean zero. Within a sequence
they may be correlated in any way, their variance may depend on X, their law may have heavy tails. A family of features, in
its principal directions U with mean squares w, has the score u = sum_s U_s^T E_s and, with the effect Q = U^T J G^-1 of
fitting taken out, the contributions u_s = U_s^T E_s - Q J_s^T E_s. One sign eps_s is drawn for every sequence. Of

    T = sum_j |u_j|^2/(w_j + l mean w),    l = 1e-3, 0.1, 10,

and the same of sum_s eps_s u_s, the cube root is standardised over the flips; the largest of all families and l is compared
with that of every flip. Quadratic forms of sequence kernels are a second test: the p-value is twice the smaller one.

References
----------
hemerik2020robust for sign-flipped effective scores; the families and the correction for leverage are ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.numerics import stream
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer
from attlas.recovery.residuals import Residuals
from attlas.recovery.sequence_kernels import forms
from attlas.recovery.suspects import Scene, families

Array = NDArray[np.float64]

LEVEL = 0.01
FLIPS = 399
_SEQUENCES = 2000  # looked at, at most
_ROWS = 16_000  # looked at, at most
_RIDGES = (1e-3, 1e-1, 10.0)
_DIRECTIONS = 240
_SCORES = 1500  # directions times outputs, at most
_POWER = 0.9


@dataclass(frozen=True)
class Finding:
    """What the test of a residual says.

    Attributes
    ----------
    p_value : float
    family : str
        What the residual depends on most clearly, if on anything.
    z : float
        How far that is above the flips, in their standard deviations.
    suspects : tuple of str
        All families that the flips do not reach, the clearest first.
    seen : dict
        For every probe, the least size, relative to the outputs, that would have been refused with probability 0.9.
    """

    p_value: float
    family: str
    z: float
    suspects: tuple[str, ...] = ()
    seen: dict[str, float] = field(default_factory=dict)


class _Score(NamedTuple):
    """T of what was seen (first) and of all flips, for one family and ridge; with a probe added, T + 2 a cross + a^2 own."""

    family: str
    T: Array
    cross: Array
    own: Array


def residual_test(
    data: Examples, layer: Layer, *, seed: int = 0, flips: int = FLIPS, leverage: bool = True, sensitivity: bool = True
) -> Finding:
    """Test if the residual of a fitted layer has mean zero given the tokens.

    Parameters
    ----------
    data : Examples
        All of them: those that were fitted and those that were not. Of many, 2000 are drawn.
    layer : Layer
    seed : int
        Seed of the signs and of the sequences that are looked at.
    flips : int, default 399
    leverage : bool, default True
        Make up for the shrinking of residuals by the fit; without it the test refuses far more often than it says.
    sensitivity : bool, default True
        Also compute `seen`.
    """
    most = min(_SEQUENCES, max(200, _ROWS // data.Y.shape[1]))
    if len(data.X) > most:
        data = data.take(np.sort(stream(seed, "looked at").choice(len(data.X), most, replace=False)))
    signs = np.ones((flips + 1, len(data.X)), dtype=np.float32)  # the first row is what was seen
    signs[1:] = 2 * stream(seed, "signs").integers(0, 2, (flips, len(data.X))) - 1
    residuals, scene = Residuals(data, layer, leverage), Scene(data, layer)
    pieces = _probes(scene, stream(seed, "probes")) if sensitivity else {}
    left = [residuals.without_fit(piece) for piece in pieces.values()]
    scores = [s for name, Phi in families(scene) for s in _scores(name, Phi, residuals, signs, left)]
    by_features = [(score.family, _standardised(np.cbrt(score.T))) for score in scores]
    by_kernels = [(name, _standardised(S)) for name, S in forms(data.sequences, residuals.E, signs)]
    p_value, z, family = min((_compared(group) for group in (by_features, by_kernels)), key=lambda found: found[0])
    # where both tests speak, a family of features says more than a kernel
    return Finding(min(1.0, 2 * p_value), family, -z, _suspects(by_features), _seen(scores, pieces, residuals))


def _scores(
    name: str, Phi: Array, residuals: Residuals, signs: NDArray[np.float32], pieces: Sequence[Array]
) -> Iterator[_Score]:
    """Yield T of one family, for every ridge."""
    n, rows, out = residuals.E.shape
    Phi = Phi / np.where((size := np.sqrt(np.mean(Phi**2, axis=(0, 1)))) > 0, size, np.inf)
    flat = Phi.reshape(n * rows, -1)
    w, V = np.linalg.eigh(flat.T @ flat / len(flat))
    most = min(_DIRECTIONS, max(1, n * rows // 10), max(1, _SCORES // out))
    kept = np.flatnonzero(w > 1e-7 * w[-1])[::-1][:most]
    w, U = w[kept], (flat @ V[:, kept]).reshape(n, rows, -1)

    def score(E: Array) -> Array:
        return np.asarray(np.matmul(U.transpose(0, 2, 1), E).reshape(n, -1))  # of every sequence

    raw = score(residuals.flipped)
    each = (raw - residuals.pull @ residuals.effect(U).T).astype(np.float32)
    u = (signs @ each).astype(float).reshape(len(signs), -1, out)
    u[0] = score(residuals.E).sum(0).reshape(-1, out)
    mu = np.array([score(piece).sum(0).reshape(-1, out) for piece in pieces]).reshape(len(pieces), len(w), out)
    scale = np.sum(raw.reshape(n, -1, out) ** 2, axis=(0, 2))  # expected |u_j|^2, without projection
    for ridge in _RIDGES:
        weight = 1 / (w + ridge * w.mean())
        T = np.einsum("bjo,j->b", u**2, weight) + 1e-3 * float(scale @ weight)
        weighed = (mu * weight[:, None]).reshape(len(pieces), len(w) * out)
        cross = u.reshape(len(u), -1) @ weighed.T
        yield _Score(name, T, cross, np.sum(weighed * mu.reshape(len(pieces), len(w) * out), axis=1))


def _standardised(values: Array) -> Array:
    """Return what was seen and the flips in standard deviations of the flips."""
    return np.asarray((values - values[1:].mean()) / max(float(values[1:].std()), np.finfo(float).tiny))


def _compared(group: Sequence[tuple[str, Array]]) -> tuple[float, float, str]:
    """Return the p-value of the largest statistic, minus that statistic, and its name."""
    z = np.array([values for _, values in group])
    largest = z.max(0)
    p_value = float(np.sum(largest >= largest[0])) / len(largest)  # what was seen counts as one of the flips
    return p_value, -float(largest[0]), group[int(z[:, 0].argmax())][0]


def _suspects(group: Sequence[tuple[str, Array]]) -> tuple[str, ...]:
    """Return the families that alone would be refused, the clearest first."""
    bar = _bar(np.array([values[1:] for _, values in group]))
    clear = sorted(((float(values[0]), name) for name, values in group if values[0] > bar), reverse=True)
    return tuple(dict.fromkeys(name for _, name in clear))


def _bar(z: Array) -> float:
    """Return what the largest statistic of a flip exceeds as often as the level of either test."""
    return float(np.quantile(z.max(0), 1 - LEVEL / 2))


def _probes(scene: Scene, rng: np.random.Generator) -> dict[str, Array]:
    """Return pieces that might be missing, each as large as the outputs."""
    x, (n, rows, out) = scene.x, scene.data.Y.shape
    e, d = x.shape[2], scene.X.shape[2]
    Theta = 2 / np.sqrt(e * d) * rng.standard_normal((e, d))
    attended = scene.attend((x @ Theta) @ scene.X.transpose(0, 2, 1)) @ scene.X
    a, b = rng.integers(0, d, out), rng.integers(0, e, out)
    pieces = {
        "a constant": np.broadcast_to(rng.standard_normal(out), (n, rows, out)),
        "a linear function of the token": x @ rng.standard_normal((e, out)),
        "another head": attended @ rng.standard_normal((d, out)),
        "products of coordinates": scene.X[:, :1, a] * x[:, :, b],
        "a ReLU behind": np.maximum(scene.F, 0),
    }
    pieces = {name: piece * scene.data.counted for name, piece in pieces.items()}
    size = float(np.linalg.norm(scene.data.Y))
    return {name: piece * (size / max(float(np.linalg.norm(piece)), 1e-300)) for name, piece in pieces.items()}


def _seen(scores: Sequence[_Score], pieces: Mapping[str, Array], residuals: Residuals) -> dict[str, float]:
    """Return the least size of every probe at which nine of ten flips, with the probe added, would have been refused.

    The reference contains the piece, too: T is divided by 1 + a^2 |g|^2/|E|^2.
    """
    flips = [np.cbrt(score.T[1:]) for score in scores]
    middle, spread = (np.array([f(values) for values in flips])[:, None] for f in (np.mean, np.std))
    spread = np.maximum(spread, np.finfo(float).tiny)
    bar = _bar((np.array(flips) - middle) / spread)
    T = np.array([score.T[1:] for score in scores])
    share = float(np.linalg.norm(residuals.E)) * residuals.size / float(np.linalg.norm(residuals.data.Y))

    def refused(number: int, ratio: float) -> bool:
        """With a piece of `ratio` times the residual."""
        a = ratio * share / residuals.size  # in units of the scaled residuals
        cross = np.array([score.cross[1:, number] for score in scores])
        own = np.array([score.own[number] for score in scores])[:, None]
        z = (np.cbrt((T + 2 * a * cross + a**2 * own) / (1 + ratio**2)) - middle) / spread
        return bool(np.mean(z.max(0) >= bar) >= _POWER)

    found = {}
    for number, name in enumerate(pieces):
        low, high = -3.0, 0.5
        if not refused(number, 10**high):
            found[name] = float("inf")
            continue
        for _ in range(10):  # bisection of the logarithm, to two hundredths
            middle_size = (low + high) / 2
            low, high = (low, middle_size) if refused(number, 10**middle_size) else (middle_size, high)
        found[name] = 10**high * share
    return found
