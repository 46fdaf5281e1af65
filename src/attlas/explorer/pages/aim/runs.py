"""The job of the page of Bayes limits: message passing on a fresh teacher, and the runs that a visitor has made."""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from attlas import aim
from attlas.explorer.controls import Slider, State
from attlas.explorer.job import Job
from attlas.explorer.pages.aim.theory import channel_of
from attlas.explorer.plotting import plain, table
from attlas.explorer.visits import Visits
from attlas.numerics import Event, Progress

_STEPS = 100
_DIGITS = 4  # of the error of a step: what a browser holds goes back and forth


class Run(BaseModel):
    """One run of message passing, as the browser holds it."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    channel: str
    tokens: int = Field(ge=1, le=100)
    noise: float
    rho: float
    alpha: float
    d: int = Field(ge=1, le=10_000)
    seed: int = Field(ge=0, le=10**9)
    mse: float
    converged: bool
    errors: list[float] = Field(default=[], max_length=_STEPS + 1)  # after every step, from the prior mean on
    expected: list[float] = Field(default=[], max_length=_STEPS + 1)  # by the algorithm, of itself
    running: bool = False


VISITS = Visits(Run)


def work(progress: Progress, rho: float, alpha: float, d: int, seed: int, **named: Any) -> dict[str, Any]:
    """Run message passing on a fresh task; return its true error. What is `named` gives the channel."""
    progress(Event(0, _STEPS, f"Drawing {round(alpha * d * d)} sequences"))
    channel = channel_of(named)
    task = aim.sample(channel, d, alpha, rho, seed)
    prior = float(np.sum((task.S - np.sqrt(rho) * np.eye(d)) ** 2)) / d
    progress(Event(0, _STEPS, "Starting from the prior mean", 1.0, prior))
    found = aim.message_passing(
        task.X, task.y, channel, rho, S=task.S, max_steps=_STEPS, tol=1e-5, throw=False, progress=progress
    )
    exact = len(task.X) / d**2
    course = {"errors": plain(found.mse, _DIGITS), "expected": plain(found.history, _DIGITS)}
    ended = {"steps": found.steps, "converged": found.converged, "alpha": exact, "running": False}
    return {"mse": float(found.mse[-1])} | course | ended


def settings(state: State, runs: list[Run]) -> dict[str, Any]:
    """Return the settings of the next run; those that no channel has are refused before they wait in a queue."""
    channel_of(state)
    chosen = {name: state[name] for name in ("channel", "noise", "rho", "alpha")}
    return chosen | {"tokens": int(state["tokens"]), "d": int(state["d"]), "seed": VISITS.next_seed(runs)}


def finish(given: dict[str, Any], result: dict[str, Any], runs: list[Run]) -> tuple[str, Any]:
    """Return how a run ended, and all runs."""
    text = f"Error {result['mse']:.4f} after {result['steps']} steps at d = {given['d']}"
    text += "" if result["converged"] else "; not converged, so the error is not final"
    return text, VISITS.added(_ended(runs), given | result)


def partial(given: dict[str, Any], course: list[Any], runs: list[Run]) -> Any:
    """Return all runs, the last one as far as it has come: `course` has a pair for every step, after one without."""
    steps = [(expected, error) for expected, error in course if error is not None]
    if not steps:
        return VISITS.dumped(_ended(runs))
    expected, errors = (plain(numbers, _DIGITS) for numbers in zip(*steps, strict=True))
    begun = {"errors": errors, "expected": expected, "running": True}
    return VISITS.added(_ended(runs), given | begun | {"mse": errors[-1], "converged": False})


def data(runs: list[Run]) -> str:
    """Return a visitor's runs as CSV; the errors of all steps of a run are in one cell."""
    names = [name for name in Run.model_fields if name != "running"]
    return table(names, [[_cell(run, name) for name in names] for run in _ended(runs)])


def _cell(run: Run, name: str) -> Any:
    value = getattr(run, name)
    if name == "noise" and run.channel != "linear":  # which has none
        return ""
    return " ".join(map(repr, value)) if isinstance(value, list) else value


def _ended(runs: list[Run]) -> list[Run]:
    return [run for run in runs if not run.running]


JOB = Job(
    name="amp",
    work=work,
    settings=settings,
    finish=finish,
    parse=VISITS.parse,
    data=data,
    partial=partial,
    heading="Run message passing",
    text="At the settings above, on a fresh random teacher of the size you choose.",
    controls=(Slider("d", "Token dimension d", 20, 160, 20, 80),),
)
