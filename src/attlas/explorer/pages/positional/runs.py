"""The job of the page of position and meaning: training from a random start, and the runs that a visitor has made."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from attlas import positional
from attlas.explorer.controls import Choice, Slider, State
from attlas.explorer.job import Job
from attlas.explorer.pages.positional.theory import model_of
from attlas.explorer.plotting import table
from attlas.explorer.visits import Visits
from attlas.numerics import Event, Progress

_STEPS = {"descent": 3000, "lbfgs": 500}
_SAFE = 0.6  # of the largest step that the positional minimum holds
WORDS = {"positional": "by position", "semantic": "by meaning", "between": "between the two minima"}


class Run(BaseModel):
    """One trained layer, as the browser holds it."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    alpha: float
    mixture: float
    encoding: float
    method: str
    d: int = Field(ge=1, le=10_000)
    seed: int = Field(ge=0, le=10**9)
    mechanism: str = Field(pattern="^(positional|semantic|between)$")
    loss: float
    test: float
    converged: bool


VISITS = Visits(Run)


def work(
    progress: Progress, alpha: float, mixture: float, encoding: float, method: str, d: int, seed: int
) -> dict[str, Any]:
    """Train from a random start on fresh data; return which minimum was found, and both for comparison."""
    progress(Event(0, 100, f"Drawing {round(alpha * d)} sequences"))
    task = positional.sample(positional.Model(mixture, encoding), d, alpha, seed)
    both = {name: positional.minimise(task, name, throw=False) for name in ("positional", "semantic")}
    steep = max(positional.sharpness(task, fit.value, tol=1e-3, throw=False).value for fit in both.values())

    def tell(event: Event) -> None:
        progress(Event(round(10 + 90 * event.step / _STEPS[method]), 100, event.text))

    found = positional.minimise(
        task,
        "random",
        "descent" if method == "descent" else "lbfgs",
        step=_SAFE * 2 / steep,
        tol=1e-4,
        max_steps=_STEPS[method],
        throw=False,
        progress=tell,
    )
    return {
        "mechanism": found.mechanism,
        "loss": found.loss,
        "test": found.test,
        "steps": found.steps,
        "converged": found.converged,
        "lower": min(both, key=lambda name: both[name].loss),
    }


def settings(state: State, runs: list[Run]) -> dict[str, Any]:
    """Return the settings of the next run."""
    model_of(state)
    chosen = {name: float(state[name]) for name in ("alpha", "mixture", "encoding")}
    return chosen | {"method": state["method"], "d": int(state["d"]), "seed": VISITS.next_seed(runs)}


def finish(given: dict[str, Any], result: dict[str, Any], runs: list[Run]) -> tuple[str, Any]:
    """Return how a run ended, and all runs."""
    text = f"Attends {WORDS[result['mechanism']]} after {result['steps']} steps: loss {result['loss']:.4f}, test error"
    text += f" {result['test']:.4f} at d = {given['d']}"
    if result["mechanism"] != result["lower"]:
        text += f"; on these data the lower minimum attends {WORDS[result['lower']]}"
    text += "" if result["converged"] else "; not converged, so this is not final"
    return text, VISITS.added(runs, given | result)


def data(runs: list[Run]) -> str:
    """Return a visitor's runs as CSV."""
    return table(list(Run.model_fields), [list(run.model_dump().values()) for run in runs])


JOB = Job(
    name="train",
    work=work,
    settings=settings,
    finish=finish,
    parse=VISITS.parse,
    data=data,
    heading="Train from a random start",
    text="At the settings above, on fresh data. Its star has the colour of the minimum that training ends in.",
    controls=(
        Slider("d", "Token dimension d", 50, 400, 50, 200),
        Choice("method", "Method", {"descent": "gradient descent", "lbfgs": "L-BFGS"}, "descent"),
    ),
)
