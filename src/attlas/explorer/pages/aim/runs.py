"""The job of the page of Bayes limits: message passing on a fresh teacher, and the runs that a visitor has made."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from attlas import aim
from attlas.explorer.controls import Slider, State
from attlas.explorer.job import Job
from attlas.explorer.pages.aim.theory import channel_of
from attlas.explorer.plotting import table
from attlas.explorer.visits import Visits
from attlas.numerics import Event, Progress

_STEPS = 100


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


VISITS = Visits(Run)


def work(progress: Progress, rho: float, alpha: float, d: int, seed: int, **named: Any) -> dict[str, Any]:
    """Run message passing on a fresh task; return its true error. What is `named` gives the channel."""
    progress(Event(0, _STEPS, f"Drawing {round(alpha * d * d)} sequences"))
    channel = channel_of(named)
    task = aim.sample(channel, d, alpha, rho, seed)
    found = aim.message_passing(
        task.X, task.y, channel, rho, S=task.S, max_steps=_STEPS, tol=1e-5, throw=False, progress=progress
    )
    exact = len(task.X) / d**2
    return {"mse": float(found.mse[-1]), "steps": found.steps, "converged": found.converged, "alpha": exact}


def settings(state: State, runs: list[Run]) -> dict[str, Any]:
    """Return the settings of the next run; those that no channel has are refused before they wait in a queue."""
    channel_of(state)
    chosen = {name: state[name] for name in ("channel", "noise", "rho", "alpha")}
    return chosen | {"tokens": int(state["tokens"]), "d": int(state["d"]), "seed": VISITS.next_seed(runs)}


def finish(given: dict[str, Any], result: dict[str, Any], runs: list[Run]) -> tuple[str, Any]:
    """Return how a run ended, and all runs."""
    text = f"Error {result['mse']:.4f} after {result['steps']} steps at d = {given['d']}"
    text += "" if result["converged"] else "; not converged, so the error is not final"
    return text, VISITS.added(runs, given | result)


def data(runs: list[Run]) -> str:
    """Return a visitor's runs as CSV."""
    rows = [run.model_dump() | ({} if run.channel == "linear" else {"noise": ""}) for run in runs]  # others have none
    return table(list(Run.model_fields), [list(row.values()) for row in rows])


JOB = Job(
    name="amp",
    work=work,
    settings=settings,
    finish=finish,
    parse=VISITS.parse,
    data=data,
    heading="Run message passing",
    text="At the settings above, on a fresh random teacher of the size you choose.",
    controls=(Slider("d", "Token dimension d", 20, 160, 20, 80),),
)
