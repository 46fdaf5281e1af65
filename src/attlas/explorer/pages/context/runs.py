"""The job of the page of learning in context: a layer trained on fresh tasks, and the layers that a visitor has trained."""

from math import inf, log
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from attlas import context
from attlas.explorer.controls import Slider, State
from attlas.explorer.job import Job
from attlas.explorer.plotting import table
from attlas.explorer.visits import Visits
from attlas.numerics import Event, Progress

_TOLERANCE = 1e-6  # of the fit: its errors are then good to about 1e-5
_STEPS = 4000
_SMALL = 40  # dimension up to which the finite-size theory is quick


class Run(BaseModel):
    """One trained layer, as the browser holds it."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    tasks: str
    alpha: float
    kappa: float
    tau: float
    ridge: float
    noise: float
    d: int = Field(ge=1, le=10_000)
    seed: int = Field(ge=0, le=10**9)
    icl: float
    idg: float
    training: float
    converged: bool


VISITS = Visits(Run)


def work(
    progress: Progress,
    tasks: str,
    alpha: float,
    kappa: float,
    tau: float,
    ridge: float,
    noise: float,
    d: int,
    seed: int,
) -> dict[str, Any]:
    """Train a layer on fresh tasks; return its exact errors, and what the finite-size theory says for these tasks."""
    progress(Event(0, 100, f"Drawing {round(tau * d * d)} sequences"))
    task = context.sample(d, alpha, inf if tasks == "own" else kappa, tau, noise, seed)

    def tell(event: Event) -> None:
        share = log(max(event.value, _TOLERANCE)) / log(_TOLERANCE)  # residuals fall geometrically
        progress(Event(round(80 * max(share, 0.0)), 100, event.text))

    layer = context.fit(task, ridge, tol=_TOLERANCE, max_steps=_STEPS, progress=tell, throw=False)
    errors = layer.errors()
    found: dict[str, Any] = {
        "icl": errors.icl,
        "idg": errors.idg,
        "training": errors.training,
        "converged": layer.converged,
    }
    found |= {"steps": layer.steps, "solver": layer.solver, "expected": None}
    if d <= _SMALL:
        progress(Event(85, 100, "The theory at this d"))
        expected = context.finite_size_of(task.tasks, task.tau, ridge, draws=1, pool=400 * d, throw=False)
        found["expected"] = [expected.icl, expected.idg] if expected.converged else None
    return found


def settings(state: State, runs: list[Run]) -> dict[str, Any]:
    """Return the settings of the next run."""
    chosen = {name: float(state[name]) for name in ("alpha", "kappa", "tau", "ridge", "noise")}
    return chosen | {"tasks": state["tasks"], "d": int(state["d"]), "seed": VISITS.next_seed(runs)}


def finish(given: dict[str, Any], result: dict[str, Any], runs: list[Run]) -> tuple[str, Any]:
    """Return how a run ended, and all runs."""
    text = f"Error {result['icl']:.3f} on new tasks, {result['idg']:.3f} on training tasks at d = {given['d']}"
    if result["expected"]:
        icl, idg = result["expected"]
        text += f" (the theory at this d, for these tasks: {icl:.3f} and {idg:.3f})"
    text += "" if result["converged"] else "; the fit did not converge, so the errors are not final"
    return text, VISITS.added(runs, given | result)


def data(runs: list[Run]) -> str:
    """Return a visitor's runs as CSV; kappa is inf where every sequence had a task of its own."""
    rows = [run.model_dump() | ({"kappa": inf} if run.tasks == "own" else {}) for run in runs]
    return table(list(Run.model_fields), [list(row.values()) for row in rows])


JOB = Job(
    name="train",
    work=work,
    settings=settings,
    finish=finish,
    parse=VISITS.parse,
    data=data,
    heading="Train a layer now",
    text="At the settings above, on fresh random tasks, in the dimension you choose. Its errors are exact: no test data.",
    controls=(Slider("d", "Token dimension d", 10, 80, 10, 40),),
)
