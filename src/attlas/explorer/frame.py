"""The application: a frame with the navigation, and in it the page that the address names, laid out and connected."""

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import flask
from dash import ALL, MATCH, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from attlas import __version__
from attlas.claims import Tier
from attlas.errors import AttlasError, InputError
from attlas.explorer import claims, pages, simulations
from attlas.explorer.controls import Control, identity, inputs, read
from attlas.explorer.lane import Lane
from attlas.explorer.page import Page, Plot, Section
from attlas.explorer.plotting import BLANK
from attlas.explorer.queue import Queue


def build(store: Path, queue: Queue, tier: Tier, seed: int) -> Dash:
    """Return the application: every page connected, its data as files."""
    app = Dash(
        "attlas.explorer",
        title="attlas",
        update_title="",
        suppress_callback_exceptions=True,
        assets_folder=str(resources.files("attlas.explorer").joinpath("assets")),
        serve_locally=True,
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    known = {key: pages.find(key) for key in pages.names()}
    app.layout = _frame(list(known.values()))

    @app.callback(
        Output("page", "children"),
        Output("pages", "children"),
        Input("address", "pathname"),
        State("address", "search"),
    )
    def enter(path: str | None, search: str | None) -> Any:
        page = known.get(str(path or "").strip("/")) or next(iter(known.values()))
        given, refused = _positions(page, str(search or ""))
        notes = [html.P(text, role="alert", className="refused") for text in refused]
        return [*notes, *page.show(given)], _links(list(known.values()), page)

    for page in known.values():
        for section in page.sections:
            _connect(app, page.door, section, store)
            if section.job:
                section.job.connect(app, queue, page.door, section.controls)
    _clientside(app)
    _files(app.server, known, store)
    claims.connect(app.server, store, tier, seed)
    return app


def warm(store: Path) -> None:
    """Draw what the first visitors would wait for: imports, compiled kernels, tables."""
    for page in map(pages.find, pages.names()):
        for given in page.warm:
            for section in page.sections:
                view = section.view(given, store)
                for plot in section.plots:
                    plot.draw(view)


def _frame(known: Sequence[Page]) -> Any:
    lasting = [job.stores(page.door) for page in known for job in page.jobs.values() if not job.phases]
    return html.Div(
        [
            dcc.Location(id="address", refresh="callback-nav"),
            *(place for places in lasting for place in places),
            html.A("Skip to the page", href="#page", className="skip"),
            html.Header(
                [html.A("attlas", href="/", className="name"), html.Nav(id="pages", **{"aria-label": "Pages"})]
            ),
            html.Main(id="page", tabIndex="-1"),
            html.Footer(f"attlas {__version__}. Everything is computed on this machine."),
        ]
    )


def _links(known: Sequence[Page], current: Page) -> list[Any]:
    links = [
        html.A(page.title, href=f"/{page.door}", **{"aria-current": "page"})
        if page is current
        else dcc.Link(page.title, href=f"/{page.door}")
        for page in known
    ]
    return [*links, html.A(claims.TITLE, href="/claims/")]


def _positions(page: Page, search: str) -> tuple[dict[str, Any], list[str]]:
    """Return the positions in an address that the page accepts, and a sentence for each that it does not."""
    given: dict[str, Any] = {}
    refused = []
    try:
        pairs = parse_qsl(search.removeprefix("?"), max_num_fields=30)
    except ValueError:
        return given, ["This address has more settings than any page."]
    for name, value in pairs:
        try:
            if name in page.controls:
                given[name] = page.controls[name].position(value)
            else:
                refused.append(f"This page has no setting {name[:40]!r}.")
        except InputError as error:
            refused.append(f"{error}.")
    return given, refused


def _connect(app: Dash, door: str, section: Section[Any], store: Path) -> None:
    """Let summary and plots follow the controls and the job of their section."""
    watched: dict[str, Any] = {"given": inputs(door, section.inputs)}
    if section.job:
        watched["found"] = Input(section.job.found_id(door), "data")

    @app.callback(output=Output(section.summary_id(door), "children"), inputs=watched)
    def summarise(given: dict[str, Any], found: Any = None) -> str:
        try:
            text = section.summary(section.view(given, store, found))
        except AttlasError as error:
            return f"{error}."
        trouble = simulations.trouble(store, door)
        return f"{text} Simulations cannot be shown: {trouble}." if trouble else text

    for plot in section.plots:
        _connect_plot(app, door, section, plot, store, watched)
    for control in section.inputs:
        if control.scale:
            _connect_value(app, door, section, control)


def _connect_plot(
    app: Dash, door: str, section: Section[Any], plot: Plot[Any], store: Path, watched: dict[str, Any]
) -> None:
    name = f"{door}-{plot.name}"

    @app.callback(output=[Output(name, "figure"), Output(f"{name}-place", "className")], inputs=watched)
    def draw(given: dict[str, Any], found: Any = None) -> Any:
        try:
            figure = plot.draw(section.view(given, store, found))
        except AttlasError:  # the summary says why
            return BLANK, "blank"
        return (no_update, "hidden") if figure is None else (figure, "")


def _connect_value(app: Dash, door: str, section: Section[Any], control: Control) -> None:
    """Write the value beside a slider whose value depends on other controls."""

    @app.callback(
        output=Output(identity(door, control.name) | {"value": "computed"}, "children"),
        inputs={"given": inputs(door, section.inputs)},
    )
    def value(given: dict[str, Any]) -> str:
        try:
            return f"{read(section.inputs, given)[control.name]:.4g}"
        except AttlasError:  # the summary says why
            return ""


def _files(server: flask.Flask, known: dict[str, Page], store: Path) -> None:
    lane = Lane()

    @server.get("/data/<door>/<name>.csv")
    def download(door: str, name: str) -> Any:
        files = {(page.door, name): file for page in known.values() for name, file in page.files.items()}
        if (door, name) not in files:
            text = f"No data set '{door[:40]}/{name[:40]}'; available: {', '.join(map('/'.join, files))}\n"
            return text, 404, {"Content-Type": "text/plain; charset=utf-8"}
        section, data = files[door, name]
        with lane.enter():
            view = section.view(flask.request.args, store)
            text = data(view)
        settings = (
            f"{key}-{value if isinstance(value, str) else format(value, 'g')}" for key, value in view.state.items()
        )
        file = re.sub(r"[^A-Za-z0-9_.+-]", "-", "_".join((door, name, *settings))) + ".csv"
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return flask.Response(text, mimetype="text/csv", headers=headers)


def _clientside(app: Dash) -> None:
    """Do in the browser what needs no server: the address, the values beside sliders, saving a figure."""
    app.clientside_callback(
        ClientsideFunction("explorer", "address"),
        Output({"data": ALL}, "href"),
        Input({"control": ALL}, "value"),
        State({"control": ALL}, "id"),
        State({"data": ALL}, "href"),
    )
    for kind in ("number", "power"):
        app.clientside_callback(
            ClientsideFunction("explorer", kind),
            Output({"control": MATCH, "value": kind}, "children"),
            Input({"control": MATCH}, "value"),
        )
    app.clientside_callback(
        ClientsideFunction("explorer", "computed"),
        Output({"control": MATCH, "value": "computed"}, "title"),
        Input({"control": MATCH, "value": "computed"}, "children"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "save"),
        Output({"save": ALL}, "title"),
        Input({"save": ALL}, "n_clicks"),
        State({"save": ALL}, "id"),
        prevent_initial_call=True,
    )
