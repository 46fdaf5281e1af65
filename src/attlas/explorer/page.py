"""What a page of the explorer is: controls, what they draw, the data as files, jobs. One value, found by its file's name.

``explorer/pages/<door>.py`` holds a `Page` called ``PAGE``. Its path, title, place in the navigation and ids follow from
the door. The frame lays it out and connects it, so that a page is functions of a `View` and little else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from attlas.claims import door
from attlas.explorer.controls import Control, State, read
from attlas.explorer.job import Job
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
    """

    name: str
    caption: str
    draw: Callable[[View[F]], Figure | None]
    data: Callable[[View[F]], str] | None = None

    def show(self, door: str) -> Any:
        """Return its place in the page: the caption, a button that saves it, a link to its data, and an empty figure."""
        from dash import dcc, html

        name = f"{door}-{self.name}"
        save = html.Button("Save figure", id={"save": name}, type="button", className="quiet")
        link = html.A("Data (CSV)", id={"data": name}, href=f"/data/{door}/{self.name}.csv", download="")
        tools = html.Span([save, link] if self.data else [save], className="tools")
        options: Any = {"displaylogo": False, "displayModeBar": False, "responsive": True}
        graph = dcc.Graph(id=name, config=options, className="plot", figure=BLANK)
        body = html.Div(graph, role="img", **{"aria-label": self.caption})
        return html.Figure([html.Figcaption([html.Span(self.caption), tools]), body], id=f"{name}-place")


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
        One that has `Job.phases` makes what is shown, and stands above the plots; any other adds to it, and stands below.
    """

    controls: Sequence[Control]
    summary: Callable[[View[F]], str]
    plots: Sequence[Plot[F]]
    heading: str = ""
    text: str = ""
    note: str = ""
    job: Job[F] | None = None

    @property
    def inputs(self) -> tuple[Control, ...]:
        """The controls that summary and plots follow."""
        return (*self.controls, self.job.phases) if self.job and self.job.phases else tuple(self.controls)

    @property
    def address(self) -> tuple[Control, ...]:
        """All controls."""
        return (*self.inputs, *(self.job.controls if self.job else ()))

    def view(self, given: Mapping[str, Any], store: Path, found: Any = None) -> View[Any]:
        """Return what a visitor looks at, from positions of controls and what the browser holds; may raise `InputError`."""
        return View(read(self.inputs, given), store, self.job.parse(found) if self.job else None)

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the section, its controls set to the positions that are given."""
        from dash import html

        panel = html.Div([control.show(door, given) for control in self.controls], className="controls", role="group",
                         **{"aria-label": self.heading or "Settings"})  # fmt: skip
        summary = html.P(id=self.summary_id(door), role="status", className="summary")
        plots = html.Div([plot.show(door) for plot in self.plots], className="plots")
        body = [
            html.H2(self.heading) if self.heading else None,
            html.P(self.text) if self.text else None,
            panel,
            self.job.show(door, given) if self.job and self.job.phases else None,
            summary,
            plots,
            html.P(self.note, className="faint") if self.note else None,
            self.job.show(door, given) if self.job and not self.job.phases else None,
        ]
        return html.Section(body)

    def summary_id(self, door: str) -> str:
        """Return the id of the summary in the page."""
        return f"{door}-{self.plots[0].name}-summary"


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
    def jobs(self) -> dict[str, Job[Any]]:
        """Every job by its name."""
        return {section.job.name: section.job for section in self.sections if section.job}

    def show(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the page, its controls set to the positions that are given."""
        from dash import html

        about = door(self.door)
        lead = html.P(" ".join(filter(None, (about.question, about.about))), className="lead")
        return [html.H1(self.title), lead, *(section.show(self.door, given) for section in self.sections)]
