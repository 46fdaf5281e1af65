"""What claims about message passing share: one run, beside the theory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attlas import aim
from attlas.claims.claim import Cost, Measurement, Outcome, Result, Verdict


def amp_error(channel: aim.Channel, d: int, alpha: float, rho: float, seed: int, max_steps: int = 60) -> Result:
    """Run message passing on a fresh task; return its final error and its course beside those of the theory.

    ``course`` is the error of every step and ``believed`` the V that the damped recursion gives it. ``ratio`` is the final
    error over V, both in units of the error of the prior mean: that of the drawn teacher, ||S - sqrt(rho) I||^2/d, scatters
    from seed to seed and takes most of the scatter of the final error with it.
    """
    task = aim.sample(channel, d, alpha, rho, seed)
    found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, max_steps=max_steps, throw=False)
    theory = aim.state_evolution(channel, alpha, rho, steps=0).value
    return {
        "error": float(found.mse[-1]),
        "ratio": float(found.mse[-1] / found.mse[0] / theory) if theory else np.nan,
        "course": found.mse[:20],
        "believed": found.history[:20],
        "theory": theory,
        "steps": found.steps,
    }


def above_threshold(measurements: Sequence[Measurement[Any]]) -> Verdict | None:
    """Return a verdict that decides nothing if V = 0 somewhere: above perfect recovery there is no ratio to V."""
    if any(m.result["theory"] == 0 for m in measurements):
        return Verdict(Outcome.INCONCLUSIVE, "V = 0 at some settings, which lie above perfect recovery", 0.0, "")
    return None


def amp_cost(channel: aim.Channel, d: int, alpha: float, steps: int = 60) -> Cost:
    """Expect `steps` iterations of two products, one eigendecomposition and the scores."""
    n, T = alpha * d**2, channel.tokens
    iteration = 6e-11 * n * T * d**2 + 1.2e-9 * d**3 + 1.5e-5 * d + 1e-3
    iteration += (4e-6 if isinstance(channel, aim.Hardmax) else 2e-7) * n
    return Cost(steps * iteration, int(80_000_000 + 32 * n * T * d))
