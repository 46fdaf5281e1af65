"""What a page of the explorer is: controls, what they draw, the data as files, jobs. One value, found by its file's name.

``explorer/pages/<door>.py`` holds a `Page` called ``PAGE``. Its path, title, place in the navigation and ids follow from
the door. The frame lays it out and connects it, so that a page is functions of a `View` and little else.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from attlas.claims import door
from attlas.errors import AttlasError, InputError
from attlas.explorer.controls import Control, State, identity, read
from attlas.explorer.job import Job
from attlas.explorer.play import Player
from attlas.explorer.plotting import BLANK, Figure

F = TypeVar("F")


@dataclass(frozen=True)
class View(Generic[F]):
    """What a visitor looks at.

    Attributes
    ----------
    state : dict
        The value of every control of the section, by name.
    store : path
        Where simulations are (`attlas.explorer.simulations.stored`); it need not exist.
    found : F
        What the job of the section has found so far, as its `Job.parse` returns it; None in a section without a job.
    """

    state: State
    store: Path
    found: F


@dataclass(frozen=True)
class Grid:
    """Theory over a grid, from which the browser draws while a control is being dragged: no request until it rests.

    Attributes
    ----------
    names : sequence of str
        The controls whose values it depends on.
    make : callable
        ``make(state) -> JSON``, remembered (`attlas.explorer.memoised`). It is fetched once for every setting of `names`.
    """

    names: Sequence[str]
    make: Callable[[State], Any]


@dataclass(frozen=True)
class Plot(Generic[F]):
    """A figure that is drawn anew when a control of its section moves, or when the job of its section finds something.

    Attributes
    ----------
    name : str
        Unique in the page: its id, and the name of its file, ``/data/<door>/<name>.csv``.
    caption : str
    draw : callable
        ``draw(view)`` returns the figure (`attlas.explorer.plotting`), or None to hide it. An `AttlasError` leaves it blank;
        the summary says why.
    data : callable, optional
        ``data(view) -> str``: what is shown, as CSV with all digits.
    player : Player, optional
        Buttons below it that play its steps.
    drag : pair of str, optional
        The sliders whose values are the axes of the plot, "" for an axis that is none: a visitor can drag the point of
        these settings, or move it with the arrow keys.
    """

    name: str
    caption: str
    draw: Callable[[View[F]], Figure | None]
    data: Callable[[View[F]], str] | None = None
    player: Player | None = None
    drag: tuple[str, str] | None = None

    def show(self, door: str) -> Any:
        """Return its place in the page: the caption, a button that saves it, a link to its data, and an empty figure."""
        from dash import dcc, html

        name = f"{door}-{self.name}"
        save = html.Button("Save figure", id={"save": name}, type="button", className="quiet")
        link = html.A("Data (CSV)", id={"data": name}, href=f"/data/{door}/{self.name}.csv", download="")
        tools = html.Div([save, link] if self.data else [save], className="tools")
        options: Any = {"displaylogo": False, "displayModeBar": False, "responsive": True}
        graph = dcc.Graph(id=name, config=options, className="plot", figure=BLANK)
        body = html.Div(graph, role="img", **{"aria-label": self.caption})
        player = self.player.show(door, self.name) if self.player else None
        parts = [html.Figcaption(self.caption), body, player, tools]
        if not self.drag:
            return html.Figure(parts, id=f"{name}-place")
        says: Any = {"aria-label": f"The point of your settings: {self.caption}", "aria-valuenow": "0"}
        parts.append(html.Div(className="handle", role="slider", tabIndex=0, hidden=True, **says))
        axes: Any = {"data-drag": " ".join(identity(door, axis)["control"] if axis else "-" for axis in self.drag)}
        return html.Figure(parts, id=f"{name}-place", **axes)


@dataclass(frozen=True)
class Section(Generic[F]):
    """Controls, a sentence and plots that follow them, and perhaps a job.

    Attributes
    ----------
    controls : sequence of Slider or Choice
        Their names are unique in the page.
    summary : callable
        ``summary(view) -> str``: what the plots show, in words.
    plots : sequence of Plot
        At least one.
    heading, text, note : str
        The first two above the controls, the note below the plots.
    job : Job, optional
        It adds to what is shown, and stands below the controls.
    grids : dict of Grid
        What the browser draws from while a control is being dragged, by name; ``assets/<door>.js`` says how.
    """

    controls: Sequence[Control]
    summary: Callable[[View[F]], str]
    plots: Sequence[Plot[F]]
    heading: str = ""
    text: str = ""
    note: str = ""
    job: Job[F] | None = None
    grids: Mapping[str, Grid] = field(default_factory=dict)

    @property
    def address(self) -> tuple[Control, ...]:
        """All controls."""
        return (*self.controls, *(self.job.controls if self.job else ()))

    def view(self, given: Mapping[str, Any], store: Path, found: Any = None) -> View[Any]:
        """Return what a visitor looks at, from positions of controls and what the browser holds; may raise `InputError`."""
        return View(read(self.controls, given), store, self.job.parse(found) if self.job else None)

    def draw(self, given: Any, store: Path, found: Any = None) -> dict[str, Any]:
        """Return what the browser shows: the summary, and every plot as a figure and the class of its place."""
        try:
            if not isinstance(given, Mapping):
                raise InputError("These are no settings of this page")
            view = self.view(given, store, found)
            summary = self.summary(view)
        except AttlasError as error:
            return {"summary": f"{error}.", "plots": [(BLANK, "blank")] * len(self.plots)}
        return {"summary": summary, "plots": [_drawn(plot, view) for plot in self.plots]}

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the section, its controls set to the positions that are given: they stand beside its plots."""
        from dash import dcc, html

        label = self.heading or "Settings"
        controls = [control.show(door, given) for control in self.controls]
        panel = html.Details(
            [
                html.Summary([html.Span("Settings"), html.Span(className="current")]),
                html.Div(controls, className="controls", role="group", **{"aria-label": label}),
                html.A("Start values", href=f"/{door}", className="reset"),
            ],
            open=True,
            className="settings",
        )
        job = html.Div(self.job.show(door, given), className="job") if self.job else None
        shown = [
            html.P(id=self.summary_id(door), role="status", className="summary"),
            html.Div([plot.show(door) for plot in self.plots], className="plots"),
            html.P(self.note, className="faint") if self.note else None,
        ]
        start = {control.name: given.get(control.name, control.start) for control in self.controls}
        bench = [html.Aside([panel, job]), html.Div(shown, className="view")]
        body = [
            html.H2(self.heading) if self.heading else None,
            html.P(self.text) if self.text else None,
            html.Div(bench, className="bench"),
            dcc.Store(id=self.settled_id(door), data=start),
            dcc.Store(id=self.drawn_id(door)),
        ]
        says: Any = {
            "data-settled": self.settled_id(door),
            "data-names": json.dumps([control.name for control in self.controls]),
            "data-grids": json.dumps({name: [door, *grid.names] for name, grid in self.grids.items()}),
        }
        return html.Section(body, **says)

    def summary_id(self, door: str) -> str:
        """Return the id of the summary in the page."""
        return f"{door}-{self.plots[0].name}-summary"

    def settled_id(self, door: str) -> str:
        """Return the id of the positions that the controls of the section have come to rest at."""
        return f"{door}-{self.plots[0].name}-settled"

    def drawn_id(self, door: str) -> str:
        """Return the id of what the server has drawn last."""
        return f"{door}-{self.plots[0].name}-drawn"


def _drawn(plot: Plot[Any], view: View[Any]) -> tuple[Figure | None, str]:
    try:
        figure = plot.draw(view)
    except AttlasError:  # the summary says why
        return BLANK, "blank"
    return (None, "hidden") if figure is None else (figure, "")


@dataclass(frozen=True)
class Page:
    """The page of a door.

    Attributes
    ----------
    door : str
        Key of the door, and name of the file: the page is at ``/<door>``.
    sections : sequence of Section
    warm : sequence of dict
        Positions of controls that are drawn when the server starts, so that no first visitor waits: where all controls
        are at their start, unless it says otherwise.
    """

    door: str
    sections: Sequence[Section[Any]]
    warm: Sequence[Mapping[str, Any]] = ({},)

    @property
    def title(self) -> str:
        """That of the door."""
        return door(self.door).title

    @property
    def controls(self) -> dict[str, Control]:
        """Every control by its name in the address."""
        return {control.name: control for section in self.sections for control in section.address}

    @property
    def files(self) -> dict[str, tuple[Section[Any], Callable[[View[Any]], str]]]:
        """What is served as ``/data/<door>/<name>.csv``, by name: the section, and its function of a view."""
        return {plot.name: (section, plot.data) for section in self.sections for plot in section.plots if plot.data}

    @property
    def grids(self) -> dict[str, tuple[Section[Any], Grid]]:
        """What is served as ``/grid/<door>/<name>.json``, by name: the section, and the grid."""
        return {name: (section, grid) for section in self.sections for name, grid in section.grids.items()}

    @property
    def jobs(self) -> dict[str, Job[Any]]:
        """Every job by its name."""
        return {section.job.name: section.job for section in self.sections if section.job}

    def show(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the page, its controls set to the positions that are given."""
        from dash import html

        about = door(self.door)
        lead = html.P(" ".join(filter(None, (about.question, about.about))), className="lead")
        return [html.H1(self.title), lead, *(section.show(self.door, given) for section in self.sections)]
