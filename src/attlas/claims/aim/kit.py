"""What claims about attention-indexed models share: one run of message passing beside the theory, points, and words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attlas import aim
from attlas.claims.claim import Cost, Measurement, Result
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict

LIMIT = " at d = infinity"  # how `finite_size_verdict` names what it extrapolates to
HOLLOW: dict[str, Any] = {
    "label": "",
    "markerfacecolor": "white",
    "alpha": 0.6,
}  # marks beside the main ones of a learner
SCORE, HARDMAX_SCORE = 2e-7, 4e-6  # seconds for the score of one sequence


def amp_error(channel: aim.Channel, d: int, alpha: float, rho: float, seed: int, max_steps: int = 60) -> Result:
    """Run message passing on a fresh task; return its final error and its course beside those of the theory.

    ``course`` is the error of every step and ``believed`` the V that the damped recursion gives it. ``ratio`` is the final
    error over V, both in units of the error of the prior mean: that of the drawn teacher, ||S - sqrt(rho) I||^2/d, scatters
    from seed to seed and takes most of the scatter of the final error with it. The final error is that of the last iterate,
    also where message passing has not converged: at finite d it often cycles about its fixed point, closely.
    """
    task = aim.sample(channel, d, alpha, rho, seed)
    found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, max_steps=max_steps, throw=False)
    theory = aim.state_evolution(channel, alpha, rho, steps=0, throw=False)
    return {
        "error": float(found.mse[-1]),
        "ratio": float(found.mse[-1] / found.mse[0] / theory.value) if theory.value else np.nan,
        "course": found.mse[:20],
        "believed": found.history[:20],
        "theory": theory.value,
        "steps": found.steps,
        "converged": found.converged and theory.converged,
    }


def above_threshold(measurements: Sequence[Measurement[Any]]) -> Verdict | None:
    """Return a verdict that decides nothing if V = 0 somewhere: above perfect recovery there is no ratio to V."""
    if any(m.result["theory"] == 0 for m in measurements):
        return Verdict(Outcome.INCONCLUSIVE, "V = 0 at some settings, which lie above perfect recovery", 0.0, "")
    return None


def amp_cost(channel: aim.Channel, d: int, alpha: float, steps: int = 60, score: float = SCORE) -> Cost:
    """Expect `steps` iterations of two products, one eigendecomposition and the scores, `score` seconds each."""
    n, T = alpha * d**2, channel.tokens
    iteration = 6e-11 * n * T * d**2 + 1.2e-9 * d**3 + 1.5e-5 * d + 1e-3 + score * n
    return Cost(steps * iteration, int(80_000_000 + 32 * n * T * d))


def errors(
    measurements: Sequence[Measurement[Any]],
    learner: str,
    key: str,
    theory: Callable[[Measurement[Any]], float] | None = None,
    **fixed: Any,
) -> list[Series]:
    """Return errors of S against alpha, ``result[key]``, one series for every channel, width, decay and size.

    The explorer finds the curve that they belong on by these settings. A setting that points do not have is `fixed`; the
    usual ones are those of softmax attention of two tokens without decay.
    """
    rows = []
    for m in measurements:
        own = {"channel": "softmax", "tokens": 2, "noise": 0.0, "decay": None} | dict(m.point) | fixed
        settings = {name: own[name] for name in ("channel", "tokens", "noise", "rho", "decay", "d")}
        if settings["channel"] != "linear":
            settings["noise"] = 0.0
        rows.append((learner, settings, m.point.alpha, float(m.result[key]), theory(m) if theory else None))
    return gather(rows, "alpha", "mse")


def ratios(measurements: Sequence[Measurement[Any]], *names: str) -> list[Series]:
    """Return errors of message passing over V against 1/d, one series for all points of the same settings `names`."""
    rows = [
        ("amp", {name: getattr(m.point, name) for name in names}, 1 / m.point.d, m.result["ratio"], 1.0)
        for m in measurements
    ]
    return gather(rows, "1/d", "mse / V")


def points(series: Series, place: Callable[[float], float] = float) -> Series:
    """Return the points of a series at `place(x)`, without theory: its curve is drawn finer than there are points."""
    return replace(series, x=tuple(map(place, series.x)), theory=None)
