"""A button that starts a long computation, with its progress, a button that stops it, and what came out."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from attlas.errors import AttlasError
from attlas.explorer.controls import Control, identity
from attlas.explorer.queue import ENDED, Job, Queue

_OFF = ("0", no_update, False, True)  # progress, what came out, run, cancel


def show(name: str, label: str, controls: Sequence[Any], begin: bool = False) -> Any:
    """Return the buttons and the progress of a runner, perhaps begun at once.

    Its job and what it finds go to `stores`, which the page puts where they live as long as they shall.
    """
    return html.Div(
        [
            html.Div(
                [
                    *controls,
                    html.Button(label, id=f"{name}-run", type="button"),
                    html.Button("Cancel", id=f"{name}-cancel", type="button", disabled=True),
                    html.Button("Save data", id=f"{name}-save", type="button", className="quiet", disabled=True),
                ],
                className="row",
            ),
            html.Progress(id=f"{name}-progress", value="0", max="1", **{"aria-label": "Progress"}),
            html.P(id=f"{name}-status", role="status"),
            dcc.Store(id=f"{name}-begin", data=begin),
            dcc.Download(id=f"{name}-file"),
            dcc.Interval(id=f"{name}-clock", interval=400, max_intervals=0),  # strikes once after every answer
        ]
    )


def stores(name: str, storage: Literal["memory", "session"] = "memory") -> list[Any]:
    """Return the places of the job that is under way, `name`-job, and of what was found, `name`-found."""
    return [dcc.Store(id=f"{name}-job"), dcc.Store(id=f"{name}-found", storage_type=storage)]


def connect(
    app: Dash,
    queue: Queue,
    name: str,
    door: str,
    controls: Sequence[Control],
    settings: Callable[[dict[str, Any], Any], dict[str, Any]],
    ended: Callable[[Job, Any], tuple[str, Any]],
    written: Callable[[Any], str],
) -> None:
    """Let the buttons of the runner `name` start and stop the work of that name.

    Parameters
    ----------
    settings : callable
        From the positions of the controls and what was found before to the settings of the job; may raise `AttlasError`.
    ended : callable
        From a job that is done and what was found before to a sentence and what is found now.
    written : callable
        From what was found to a CSV of it.
    """

    @app.callback(
        Output(f"{name}-job", "data"),
        Output(f"{name}-clock", "max_intervals"),
        Output(f"{name}-status", "children"),
        Output(f"{name}-progress", "value"),
        Output(f"{name}-found", "data"),
        Output(f"{name}-run", "disabled"),
        Output(f"{name}-cancel", "disabled"),
        Input(f"{name}-begin", "data"),
        Input(f"{name}-run", "n_clicks"),
        Input(f"{name}-cancel", "n_clicks"),
        Input(f"{name}-clock", "n_intervals"),
        State(f"{name}-job", "data"),
        State(f"{name}-found", "data"),
        {control.name: State(identity(door, control.name), "value") for control in controls},
    )
    def step(begin: Any, run: Any, cancel: Any, tick: Any, key: Any, before: Any, given: dict[str, Any]) -> Any:
        entered = not (run or cancel or tick)  # nothing has been pressed or has struck since the page was shown
        pressed = None if entered else ctx.triggered_id  # of a first call Dash names anything
        again = (tick or 0) + 1
        if pressed == f"{name}-run" or (entered and begin is True):
            try:
                return queue.submit(name, **settings(given, before)), again, "waiting", "0", no_update, True, False
            except AttlasError as error:
                return None, no_update, str(error), *_OFF
        if key is None:  # nothing is under way
            return (no_update,) * 7
        if pressed == f"{name}-cancel":
            queue.cancel(key)
        return _stands(queue, key, before, ended, again)

    app.clientside_callback(
        ClientsideFunction("explorer", "missing"),
        Output(f"{name}-save", "disabled"),
        Input(f"{name}-found", "data"),
        Input(f"{name}-begin", "data"),  # also when the page is shown again and what was found is there already
    )

    @app.callback(
        Output(f"{name}-file", "data"),
        Input(f"{name}-save", "n_clicks"),
        State(f"{name}-found", "data"),
        prevent_initial_call=True,
    )
    def save(_clicks: Any, found: Any) -> Any:
        try:
            return {"content": written(found), "filename": f"{name}.csv", "type": "text/csv"}
        except (LookupError, TypeError, ValueError):  # not what a job of ours has sent
            return no_update


def _stands(queue: Queue, key: Any, before: Any, ended: Callable[[Job, Any], tuple[str, Any]], again: int) -> Any:
    """Return how the job of this key stands: key, strikes of the clock, words, progress, findings, both buttons."""
    job = queue.look(key)
    if job is None:
        return None, no_update, "this run is no longer known", *_OFF
    if job.stage not in ENDED:
        ahead = queue.ahead(key)
        text = job.text or (f"waiting, {ahead} before this one" if ahead else "starting")
        return no_update, again, text, f"{job.share:.3f}", no_update, True, False
    if job.stage != "done":
        return None, no_update, job.text, *_OFF
    text, found = ended(job, before)
    return None, no_update, text, "1", found, False, True
