"""The theory behind the page of random features: what was solved for one target serves all others and every noise."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.explorer.controls import State
from attlas.explorer.memoised import memoised
from attlas.features import targets
from attlas.features.sharp.predictor import Point, Predictor
from attlas.features.sharp.theory import Theory

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

TARGETS = {
    "keys 1": "⟨β, xᵢ⟩",
    "keys 2": "⟨β, xᵢ⟩²",
    "query 1": "⟨β, x₀⟩",
    "query 2": "⟨β, x₀⟩²",
    "correlation 1": "⟨x₀, xᵢ⟩",
    "correlation 2": "⟨x₀, xᵢ⟩²",
    "correlation 3": "⟨x₀, xᵢ⟩³",
    "weighted 1": "⟨x₀, xᵢ⟩⟨β, xᵢ⟩",
    "rotated 1": "⟨x₀, S xᵢ⟩, S a rotation",
    "signs keys": "±⟨β, xᵢ⟩",
    "signs correlation": "±⟨x₀, xᵢ⟩",
}
LEARNERS = ("kernel", "biased", "network")
RANGES = {"small": (8, 1000), "middle": (50, 8000), "large": (500, 100_000)}
SMALL = 1e-6  # the penalty against heads, where no other is chosen
_SIZES = {
    "best": 12,
    "given": 36,
}  # of a curve; between them it is interpolated, and a given penalty needs one solution
_PEAK = np.array([0.6, 0.75, 0.88, 0.95, 1.0, 1.05, 1.12, 1.3, 1.6])  # where a peak is looked at closely
_MOST = 10_000  # heads
_POINTS = 512  # solved settings that a theory remembers
_SPECTRUM = ("learner", "d", "keys", "bias", "scoring", "positions")
_SETTINGS = (*_SPECTRUM, "target", "penalty", "noise")


@dataclass(frozen=True)
class _Remembering(Predictor):
    """A predictor that solves no setting twice: solutions depend neither on the target nor on the noise."""

    known: dict[tuple[float, float, float], Point] = field(default_factory=dict, repr=False)

    def at(self, n: float, ridge: float, start: Point | None = None) -> Point:
        key = (self.heads, n, ridge)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = super().at(n, ridge, start or self._nearest(key))
            for oldest in list(self.known)[:-_POINTS]:
                self.known.pop(oldest, None)
        return found

    def _nearest(self, place: tuple[float, float, float]) -> Point | None:
        """Return the solved setting that is nearest in the logarithms of heads, n and penalty, as a start."""
        finite = np.isfinite(self.heads)
        known = [(key, point) for key, point in list(self.known.items()) if np.isfinite(key[0]) == finite]
        if not known:
            return None
        keys = np.array([key for key, _ in known])
        steps = np.abs(np.log(keys / place)) if finite else np.abs(np.log(keys[:, 1:] / place[1:]))
        return known[int(np.argmin(steps.sum(1)))][1]


@dataclass(frozen=True)
class _Theory(Theory):
    """The theory of the library, whose predictors share what they have solved."""

    known: dict[tuple[float, float, float], Point] = field(default_factory=dict, repr=False, compare=False)

    def predictor(self, units: float) -> Predictor:
        own = super().predictor(units)
        return _Remembering(own.spectrum, own.tau, own.heads, self.known)


class Found(NamedTuple):
    """What the page shows of a learner.

    Attributes
    ----------
    curve : xarray.Dataset
        Over n, as `Theory.curve` returns it.
    here : xarray.Dataset
        The same at the n of the slider.
    """

    curve: "xarray.Dataset"
    here: "xarray.Dataset"


def found(state: State) -> tuple[dict[str, Found], dict[str, str]]:
    """Return the chosen learners that have a theory here, and why the others have none.

    Raises
    ------
    InputError
        If none has.
    """
    mine, refused = {}, {}
    for name in chosen(state):
        own = settings_of(state, name)
        try:
            mine[name] = Found(_curve(own), _here(own))
        except InputError as error:
            refused[name] = str(error)
    if not mine:
        raise InputError(f"There is no theory of this learner here: {'; '.join(refused.values())}")
    return mine, refused


def chosen(state: State) -> list[str]:
    """Return the learners that the visitor wants to see."""
    return [name for name in LEARNERS if state["model"] in ("all", name)]


def settings_of(state: State, learner: str) -> State:
    """Return the settings of one learner; what it does not know is zero."""
    own = {"learner": learner, "bias": state["bias"] if learner == "biased" else 0.0, "n": size_of(state)}
    return state | own | ({"positions": 0.0} if learner == "network" else {})


def size_of(state: State) -> int:
    """Return the n of the slider, to the two digits that are written beside it."""
    return round(float(f"{state['n']:.2g}"))


@memoised(24, *_SPECTRUM)
def theory_of(state: State) -> Theory:
    """Return the theory of one learner."""
    learner = "network" if state["learner"] == "network" else "attention"
    d, keys = int(state["d"]), int(state["keys"])
    return _Theory(d, keys, float(state["bias"]), state["scoring"], float(state["positions"]), learner)


def over(state: State, n: Any, heads: Any, alpha: Any) -> "xarray.Dataset":
    """Return what the library predicts for one learner."""
    own = theory_of(state)
    target = target_of(state["target"], own.d, own.keys)
    return own.curve(target, n, heads=heads, alpha=alpha, noise=float(state["noise"]))


def target_of(name: str, d: int, keys: int) -> Any:
    """Return the target of this name; signs are plus for the first half of the keys."""
    family, kind = name.split()
    if family != "signs":
        return name
    signs = np.where(np.arange(keys) < keys / 2, 1.0, -1.0)
    beta = np.eye(d)[0]  # errors depend on its length alone
    return targets.Correlation(1, weights=signs) if kind == "correlation" else targets.KeyAverage(beta, 1, signs)


@memoised(256, *_SETTINGS, "heads", "range")
def _curve(state: State) -> "xarray.Dataset":
    low, high = RANGES[state["range"]]
    best = state["penalty"] == "best"
    sizes = np.geomspace(low, high, _SIZES["best" if best else "given"])
    if not best and state["heads"] != "infinite":
        peak = float(state["heads"]) * per_head(state) * _PEAK
        sizes = np.unique(np.r_[sizes, peak[(peak > low) & (peak < high)]])
    return over(state, sizes, _heads(state), alpha_of(state))


@memoised(256, *_SETTINGS, "heads", "n")
def _here(state: State) -> "xarray.Dataset":
    return over(state, [state["n"]], _heads(state), alpha_of(state)).isel(n=0)


@memoised(256, *_SETTINGS, "n")
def against_heads(state: State) -> "xarray.Dataset":
    """Return what is predicted for one learner against M, at the chosen penalty or at a small one."""
    d, n = float(state["d"]), state["n"]
    M = np.unique(np.r_[np.geomspace(d, _MOST, 13), n / per_head(state) * _PEAK])
    return over(state, [n], M[(d <= M) & (_MOST >= M)], fixed_alpha(state)).isel(n=0)


def per_head(state: State) -> float:
    """Return the trained numbers of a head: as many as its value has coordinates, among them the position code."""
    return float(state["d"]) + 1 + (int(state["keys"]) if state["positions"] else 0)


def alpha_of(state: State) -> Any:
    """Return the penalty as the library takes it."""
    return "best" if state["penalty"] == "best" else float(state["penalty"])


def fixed_alpha(state: State) -> float:
    """Return the penalty of the plot against heads."""
    return SMALL if state["penalty"] == "best" else float(state["penalty"])


def _heads(state: State) -> Any:
    return state["heads"] if state["heads"] == "infinite" else int(state["heads"])


def smooth(curve: "xarray.Dataset", count: int = 121) -> tuple[Array, Array]:
    """Return sizes and errors between those of a curve, by cubics in logarithms; unsolved sizes are left out."""
    from scipy.interpolate import CubicSpline

    there = curve["converged"].values
    x, y = np.log(curve["n"].values[there]), np.log(np.maximum(curve["error"].values[there], 1e-300))
    if len(x) < 2:
        return np.exp(x), np.exp(y)
    fine = np.linspace(x[0], x[-1], count)
    between = CubicSpline(x, y)(fine) if len(x) <= _SIZES["best"] else np.interp(fine, x, y)
    return np.exp(fine), np.exp(between)


def halving(curve: "xarray.Dataset") -> float:
    """Return the samples from which half of the variance is left; 0 below the axis, infinity beyond it."""
    x, y = smooth(curve, 1001)
    return _last_fall(x, np.log(y / 0.5))


def crossing(mine: dict[str, Found]) -> float:
    """Return the samples from which attention has a smaller error than biased attention; 0 or infinity off the axis."""
    if not {"kernel", "biased"} <= set(mine):
        return np.nan
    (x, plain), (other, biased) = (smooth(mine[name].curve, 1001) for name in ("kernel", "biased"))
    return _last_fall(x, np.log(plain / biased)) if np.array_equal(x, other) else np.nan


def _last_fall(x: Array, y: Array) -> float:
    """Return where y falls through zero for the last time."""
    falls = np.flatnonzero((y[:-1] > 0) & (y[1:] <= 0))
    if not len(falls) or y[-1] > 0:
        return float("inf") if y[-1] > 0 else 0.0
    i = int(falls[-1])
    return float(np.exp(np.interp(0.0, [y[i + 1], y[i]], np.log([x[i + 1], x[i]]))))
