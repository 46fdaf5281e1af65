"""What claims about attention-indexed models share: one run of message passing beside the theory, points, and words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas import aim
from attlas.aim.channels import complete
from attlas.aim.sensing import Sensing
from attlas.claims.claim import Cost, Measurement, Result
from attlas.claims.estimate import Undecided, finite_size, share
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, about, above, between
from attlas.numerics import stream

LIMIT = " at d = infinity"  # how tests are named whose number is extrapolated
SIZES = 4  # that an extrapolation needs
SETTLED = 0.9  # at least this share of the runs of message passing must converge
HOLLOW: dict[str, Any] = {
    "label": "",
    "markerfacecolor": "white",
    "alpha": 0.6,
}  # marks beside the main ones of a learner
SCORE, HARDMAX_SCORE = 5e-8, 1e-6  # seconds for the score of one sequence


def draw_task(channel: aim.Channel, d: int, alpha: float, rho: float, seed: int) -> aim.Task:
    """Draw a task that shares no random number with those of other sizes."""
    return aim.sample(channel, d, alpha, rho, int(stream(seed, "task", str(d)).integers(1 << 62)))


def amp_error(
    channel: aim.Channel, d: int, alpha: float, rho: float, seed: int, onsager: float | None = None
) -> Result:
    """Run message passing on a fresh task; return its final error and its course beside those of the theory.

    ``course`` is the error of every step and ``believed`` the V that the damped recursion gives it. ``ratio`` is the final
    error over V, both in units of the error of the prior mean: that of the drawn teacher, ||S - sqrt(rho) I||^2/d, scatters
    from seed to seed and takes most of the scatter of the final error with it. V is that of the n and r which were drawn:
    rounding alpha d^2 and rho d is no effect of the size. ``leaning`` is <S - S_hat, S_hat - sqrt(rho) I>/(d V): what is
    wrong with the posterior mean has no overlap with what it has learned (a Nishimori identity). An estimate that learns too
    little leans to positive, one that trusts its data too much to negative values, when its error is hardly larger.

    With `onsager` messages are passed with that many times the Onsager term, which is wrong unless it is 1.
    """
    task = draw_task(channel, d, alpha, rho, seed)
    alpha, rho = len(task.X) / d**2, round(rho * d) / d
    V, known = theory(channel, alpha, rho)  # type: ignore[arg-type]  # channels are frozen
    if onsager is None:
        found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, throw=False)
        S_hat, mse, history, settled = found.S_hat, found.mse, found.history, found.converged
    else:
        S_hat, mse, history = _passed(task, channel, rho, onsager)
        settled = True
    learned = S_hat - np.sqrt(rho) * np.eye(d)
    return {
        "error": float(mse[-1]),
        "leaning": float(np.sum((task.S - S_hat) * learned)) / d / V if V else np.nan,
        "ratio": float(mse[-1] / mse[0] / V) if V else np.nan,
        "course": mse[:20],
        "believed": history[:20],
        "theory": V,
        "steps": len(mse) - 1,
        "converged": settled and known,
    }


@lru_cache(maxsize=256)
def theory(channel: Any, alpha: float, rho: float) -> tuple[float, bool]:
    """Return V of a channel, and whether it is converged."""
    found = aim.state_evolution(channel, alpha, rho, steps=0, throw=False)
    return float(found.value), bool(found.converged)


def _passed(
    task: aim.Task, channel: aim.Channel, rho: float, onsager: float, steps: int = 60
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Pass messages with so many times the Onsager term; return the estimate, and errors and V of all steps."""
    data = Sensing(task.X, task.y, complete(channel), np.array([rho]))
    S, V = data.prior_mean(), np.ones(1)
    omega, d = data.indices(S), len(task.S)
    mse, history = [float(np.sum((S[0] - task.S) ** 2)) / d], [1.0]
    for _ in range(steps):
        g, noise = data.score(omega, V), data.noise(V)
        error = data.error(noise)
        S = aim.denoise((S + noise * data.back(g))[0], float(noise[0]), rho)[None]
        omega = (data.indices(S) - onsager * error * data.spread * g) / 2 + omega / 2
        V = (error + V) / 2
        mse.append(float(np.sum((S[0] - task.S) ** 2)) / d)
        history.append(float(error[0]))
    return S[0], np.array(mse), np.array(history)


def reaches(
    measurements: Sequence[Measurement[Any]],
    label: Callable[[Any], str],
    eps: float,
    ratio: Callable[[Measurement[Any]], float] = lambda m: m.result["ratio"],
    sizes: int = SIZES,
) -> list[Test]:
    """Return a test for every setting: a ratio to theory, extrapolated to d = infinity, is 1 up to a share `eps`."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for m in measurements:
        groups.setdefault(label(m.point), []).append((m.point.d, ratio(m)))
    return [
        Test(f"{name}{LIMIT}", finite_size(rows, sizes=sizes), about(1, eps), expected=1.0)
        for name, rows in groups.items()
    ]


def leaning(measurements: Sequence[Measurement[Any]], label: Callable[[Any], str], eps: float) -> list[Test]:
    """Return a test for every setting: the overlap of error and estimate, extrapolated to d = infinity, is 0 up to `eps`."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for m in measurements:
        groups.setdefault(label(m.point), []).append((m.point.d, m.result["leaning"]))
    return [
        Test(f"{name}: overlap of error and estimate", finite_size(rows, sizes=SIZES), between(-eps, eps), expected=0.0)
        for name, rows in groups.items()
    ]


def converged(measurements: Sequence[Measurement[Any]]) -> Test:
    """Return the test that nearly all runs of message passing converged."""
    runs = [bool(np.all(m.result.get("converged", True))) for m in measurements]
    return Test("share of runs that converged", share(runs), above(SETTLED))


def require_error(measurements: Sequence[Measurement[Any]]) -> None:
    """Raise `Undecided` if V = 0 somewhere: above perfect recovery there is no ratio to V."""
    if any(m.result["theory"] == 0 for m in measurements):
        raise Undecided("V = 0 at some settings, which lie above perfect recovery")


def wrong_theory(sizes: Sequence[float], refuted_at: float) -> Mutation:
    """Return the mutation of a theory whose V is so many times what it should be."""
    return Mutation(
        "V of the theory times {size:g}",
        sizes,
        refuted_at,
        change=changed(lambda result, size: {"ratio": result["ratio"] / size, "theory": result["theory"] * size}),
    )


def perfect_learner() -> Mutation:
    """Return the mutation of a learner that was given the teacher."""
    return Mutation(
        "a learner that knows the teacher: error times {size:g}",
        (0.0,),
        0.0,
        change=changed(lambda result, size: {"ratio": result["ratio"] * size, "error": result["error"] * size}),
    )


def amp_cost(channel: aim.Channel, d: int, alpha: float, steps: int = 40, score: float = SCORE) -> Cost:
    """Expect `steps` iterations of two products, one eigendecomposition and the scores, `score` seconds each."""
    n, T = alpha * d**2, channel.tokens
    iteration = 1.5e-11 * n * T * d**2 + 1.2e-9 * d**3 + 4e-6 * d + 2e-4 + score * n
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
