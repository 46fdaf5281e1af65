"""Something long that a visitor starts: what it does, its buttons and progress, and what becomes of its result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attlas.errors import AttlasError
from attlas.explorer.controls import Control, State, identity, read
from attlas.explorer.queue import ENDED, Queue

if TYPE_CHECKING:
    from dash import Dash

F = TypeVar("F")


@dataclass(frozen=True)
class Job(Generic[F]):
    """A computation of seconds to minutes, run in a process of its own, and what it has found so far.

    What was found lives in the browser, as JSON: it stays with the tab, also while the visitor is at another page.

    Attributes
    ----------
    name : str
        Unique in the page.
    work : callable
        ``work(progress, **settings) -> result``, JSON and numpy arrays; ``progress(event)`` as everywhere.
    settings : callable
        ``settings(state, found) -> dict`` of JSON values, from all controls of the section and what was found before.
        May raise `AttlasError`: the visitor reads why.
    finish : callable
        ``finish(settings, result, found) -> (sentence, JSON)``: what to say, and what is found now.
    parse : callable
        ``parse(JSON or None) -> F``: what was found, checked, as a browser may send anything. May raise `AttlasError`.
    data : callable
        ``data(found) -> str``: what was found, as CSV.
    heading, text : str
        Above its buttons.
    controls : sequence of Slider or Choice
        Beside its buttons.
    partial : callable, optional
        ``partial(settings, course, found) -> JSON``: what is shown as found while the work is under way, from the value and
        the true error of every `Event` so far; and after it has failed, with an empty course.
    """

    name: str
    work: Callable[..., Any]
    settings: Callable[[State, F], dict[str, Any]]
    finish: Callable[[dict[str, Any], Any, F], tuple[str, Any]]
    parse: Callable[[Any], F]
    data: Callable[[F], str]
    heading: str = ""
    text: str = ""
    controls: Sequence[Control] = ()
    partial: Callable[[dict[str, Any], list[Any], F], Any] | None = None

    def found_id(self, door: str) -> str:
        """Return the id of the place where the browser keeps what was found."""
        return f"{door}-{self.name}-found"

    def stores(self, door: str) -> list[Any]:
        """Return what stays with the tab, also over a reload: the computation that is under way, and what was found."""
        from dash import dcc

        names = f"{door}-{self.name}-key", self.found_id(door)
        return [dcc.Store(id=name, storage_type="session") for name in names]

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the buttons and the progress."""
        from dash import dcc, html

        name = f"{door}-{self.name}"
        row = [
            *(control.show(door, given) for control in self.controls),
            html.Button("Run", id=f"{name}-run", type="button"),
            html.Button("Cancel", id=f"{name}-cancel", type="button", disabled=True),
            html.Button("Save data", id=f"{name}-save", type="button", className="quiet", disabled=True),
        ]
        return html.Div(
            [
                html.H2(self.heading) if self.heading else None,
                html.P(self.text) if self.text else None,
                html.Div(row, className="row"),
                html.Progress(id=f"{name}-progress", value="0", max="1", **{"aria-label": "Progress"}),
                html.P(id=f"{name}-status", role="status"),
                dcc.Store(id=f"{name}-shown", data=True),  # a new one whenever the page is shown
                dcc.Download(id=f"{name}-file"),
                dcc.Interval(id=f"{name}-clock", interval=400, max_intervals=0),  # ticks once after every answer
            ]
        )

    def connect(self, app: "Dash", queue: Queue, door: str, controls: Sequence[Control]) -> None:
        """Let the buttons start and stop the work, with the settings that these controls of the section are at."""
        from dash import ClientsideFunction, Input, Output, State, ctx, no_update

        name, found_id = f"{door}-{self.name}", self.found_id(door)
        every = (*controls, *self.controls)

        @app.callback(
            Output(f"{name}-key", "data"),
            Output(f"{name}-clock", "max_intervals"),
            Output(f"{name}-status", "children"),
            Output(f"{name}-progress", "value"),
            Output(found_id, "data"),
            Output(f"{name}-run", "disabled"),
            Output(f"{name}-cancel", "disabled"),
            Input(f"{name}-shown", "data"),
            Input(f"{name}-run", "n_clicks"),
            Input(f"{name}-cancel", "n_clicks"),
            Input(f"{name}-clock", "n_intervals"),
            State(f"{name}-key", "data"),
            State(found_id, "data"),
            {control.name: State(identity(door, control.name), "value") for control in every},
        )
        def step(_shown: Any, run: Any, cancel: Any, tick: Any, key: Any, found: Any, given: dict[str, Any]) -> Any:
            entered = not (run or cancel or tick)  # the page was just shown: nothing was pressed, no clock has ticked
            pressed = None if entered else ctx.triggered_id  # of a first call Dash names anything
            again = (tick or 0) + 1
            if pressed == f"{name}-run":
                try:
                    settings = self.settings(read(every, given), self.parse(found))
                    key = queue.submit(door, self.name, settings)
                    return key, again, "Queued", "0", no_update, True, False
                except AttlasError as error:
                    return None, no_update, str(error), "0", no_update, False, True
            if key is None:  # nothing is under way
                return (no_update,) * 7
            if pressed == f"{name}-cancel":
                queue.cancel(key)
            return self._status(queue, key, found, again)

        @app.callback(
            Output(f"{name}-file", "data"),
            Input(f"{name}-save", "n_clicks"),
            State(found_id, "data"),
            prevent_initial_call=True,
        )
        def save(_clicks: Any, found: Any) -> Any:
            try:
                parsed = self.parse(found)
            except AttlasError:  # not what a job of ours has sent
                parsed = None
            if not parsed:
                return no_update
            return {"content": self.data(parsed), "filename": f"{name}.csv", "type": "text/csv"}

        app.clientside_callback(
            ClientsideFunction("explorer", "missing"),
            Output(f"{name}-save", "disabled"),
            Input(found_id, "data"),
            Input(f"{name}-shown", "data"),  # also when the page is shown again and what was found is there already
        )
        app.clientside_callback(  # after a reload: the key is read from the tab too late for the first call of `step`
            ClientsideFunction("explorer", "resume"),
            Output(f"{name}-clock", "max_intervals", allow_duplicate=True),
            Input(f"{name}-shown", "data"),
            State(f"{name}-key", "id"),
            prevent_initial_call="initial_duplicate",
        )

    def _status(self, queue: Queue, key: Any, found: Any, again: int) -> Any:
        """Return key, ticks of the clock, words, progress, what was found, and whether Run and Cancel are disabled."""
        from dash import no_update

        run = queue.get(key)
        if run is None:
            return None, no_update, "This run is no longer known", "0", self._so_far({}, [], found), False, True
        if run.stage not in ENDED:
            ahead = queue.ahead(key)
            text = run.text or (f"Queued, {ahead} ahead" if ahead else "Starting")
            far = self._so_far(run.settings, run.course.copy(), found) if run.course else no_update
            return no_update, again, text, f"{run.share:.3f}", far, True, False
        if run.stage != "done":
            return None, no_update, run.text, "0", self._so_far(run.settings, [], found), False, True
        text, found = self.finish(run.settings, run.result, self.parse(found))
        return None, no_update, text, "1", found, False, True

    def _so_far(self, settings: dict[str, Any], course: list[Any], found: Any) -> Any:
        """Return what is found of work that has not ended, or what was found before it if there is no course."""
        from dash import no_update

        return self.partial(settings, course, self.parse(found)) if self.partial else no_update
