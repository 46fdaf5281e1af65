"""What the store holds of simulations that belong on a plot of the explorer."""

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas.claims import find
from attlas.explorer.store_view import Followed
from attlas.lab.verdicts import measurements
from attlas.store import read

# claim, its errors of S, and who made them: ||S - S_hat||^2/d; those of descent and training over the drawn teacher's size
_BAYES = {
    "aim.state-evolution": {"error": "message passing"},
    "aim.sequence-length": {"error": "message passing"},
    "aim.hardmax": {"error": "message passing"},
    "aim.softmax-threshold": {"amp": "message passing"},
    "aim.gradient-descent": {"single": "one descent", "averaged": "averaged descent"},
    "trained.weight-decay": {"error": "trained"},
}
# claim, and which of its arrays (sizes, targets) is of which model
_FEATURES = {
    "features.bias-correlation": {"plain_curve": "attention", "biased_curve": "biased"},
    "features.bias-misaligned": {"plain": "attention", "biased": "biased"},
    "features.key-averages": {"attention": "finite", "network": "neurons"},
}
_FIRST = (
    5.0  # seconds that a first reading is waited for: a store may be locked or large, and the theory beside it is not
)


class Simulated(NamedTuple):
    """The mean of several seeds at one setting, and its standard error (0 for a single seed)."""

    claim: str
    learner: str
    settings: dict[str, Any]
    x: float
    mean: float
    error: float
    seeds: int


def bayes(store: Path) -> tuple[Simulated, ...]:
    """Return errors of S against alpha."""
    return _followed(store, "bayes").look(_FIRST)


def features(store: Path) -> tuple[Simulated, ...]:
    """Return test errors over the variance of the target, against the number of samples."""
    return _followed(store, "features").look(_FIRST)


@cache
def _followed(store: Path, door: str) -> Followed[tuple[Simulated, ...]]:
    return Followed(store, lambda path: _load(path, door), ())


def _load(store: Path, door: str) -> tuple[Simulated, ...]:
    if not store.exists():
        return ()
    wanted = _BAYES if door == "bayes" else _FEATURES
    values: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    records = list(read(store, list(wanted)))
    for claim in find(list(wanted)):
        mine = [r for r in records if r.claim == claim.id and r.version == claim.version]
        for m in measurements(claim, mine):
            for key, learner in wanted[claim.id].items():
                add = _add_bayes if door == "bayes" else _add_curve
                add(values, claim.id, learner, m.point, m.result, key)
    return tuple(
        Simulated(claim, learner, dict(settings), x, float(np.mean(v)), _error(v), len(v))
        for (claim, learner, settings, x), v in sorted(values.items(), key=repr)
    )


def _add_bayes(values: Any, claim: str, learner: str, point: Any, result: Any, key: str) -> None:
    if not np.isfinite(result.get(key, np.nan)):
        return
    channel = getattr(point, "channel", "hardmax" if claim == "aim.hardmax" else "softmax")
    settings = {
        "channel": channel,
        "tokens": getattr(point, "tokens", 2),
        "noise": point.noise if channel == "linear" else 0.0,
        "rho": point.rho,
        "decay": getattr(point, "decay", None),
        "d": point.d,
    }
    values[claim, learner, tuple(settings.items()), point.alpha].append(float(result[key]))


def _add_curve(values: Any, claim: str, learner: str, point: Any, result: Any, key: str) -> None:
    from attlas.claims.features import bias_misaligned as features_bias_misaligned
    from attlas.claims.features import key_averages as features_key_averages

    names = {
        "features.bias-misaligned": features_bias_misaligned.TARGETS,
        "features.key-averages": features_key_averages.TARGETS,
    }
    targets = names.get(claim) or [f"correlation {point.power}"]
    curves = np.asarray(result[key]).reshape(len(result["sizes"]), -1)
    for target, curve in zip(targets, curves.T, strict=True):
        bias = float(point.bias) if learner == "biased" else 0.0
        settings = {"target": target, "d": point.d, "keys": point.keys, "bias": bias}
        for n, error in zip(result["sizes"], curve, strict=True):
            values[claim, learner, tuple(settings.items()), float(n)].append(float(error))


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
