"""The application: a frame with the navigation, and in it the page that the address names, laid out and connected."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import flask
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html

from attlas import __version__
from attlas.claims import Tier
from attlas.errors import InputError
from attlas.explorer import claims, pages, simulations
from attlas.explorer.lane import Lane
from attlas.explorer.page import Page, Section
from attlas.explorer.queue import Queue

_PLOTLY = "/_dash-component-suites/plotly/package_data/plotly.min.js"  # where Dash looks for it


class Application(Dash):  # type: ignore[misc]
    """Dash, which sends its pages as few scripts as they need."""

    def interpolate_index(self, **parts: Any) -> str:
        """Return the page that everything starts from.

        Without the script of tables, of which no page has one; Plotly is there before Dash looks for it, which would
        otherwise fetch it a second time.
        """
        parts["scripts"] = "\n".join(tag for tag in parts["scripts"].split("\n") if "/dash_table/" not in tag)
        parts["favicon"] = '<link rel="icon" href="data:,">'
        parts["css"] += f'<script src="{_PLOTLY}?v={version("plotly")}"></script>'
        return str(super().interpolate_index(**parts))


def build(store: Path, queue: Queue, tier: Tier, seed: int) -> Dash:
    """Return the application: every page connected, its data as files."""
    app = Application(
        "attlas.explorer",
        title="attlas",
        update_title="",
        suppress_callback_exceptions=True,
        assets_folder=str(resources.files("attlas.explorer").joinpath("assets")),
        serve_locally=True,
    )
    for old, new in (("<html>", '<html lang="en">'), ("<footer>", "<div>"), ("</footer>", "</div>")):
        app.index_string = app.index_string.replace(old, new)  # the footer of the page is another one
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
                section.draw(given, store)
                for grid in section.grids.values():
                    with suppress(InputError):  # not every setting has every grid
                        grid.make(section.view(given, store).state)


def _frame(known: Sequence[Page]) -> Any:
    places = [job.stores(page.door) for page in known for job in page.jobs.values()]
    stage = html.Button(
        "Full screen", id="stage", type="button", className="quiet", title="For talks; Escape leaves it"
    )
    return html.Div(
        [
            dcc.Location(id="address", refresh="callback-nav"),
            dcc.Store(id="look"),
            *(store for stores in places for store in stores),
            html.A("Skip to the page", href="#page", className="skip"),
            html.Header(
                [html.A("attlas", href="/", className="name"), html.Nav(id="pages", **{"aria-label": "Pages"}), stage]
            ),
            html.Main(id="page", tabIndex="-1"),
            html.Footer(f"attlas {__version__}. Everything is computed on this machine."),
        ]
    )


def _links(known: Sequence[Page], current: Page) -> list[Any]:
    """Return the links to the pages; the browser adds the settings that a visitor has left a page with."""
    links = [
        dcc.Link(
            page.title, id={"door": page.door}, href=f"/{page.door}", className="current" if page is current else ""
        )
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
    """Let summary and plots follow the controls, once they rest, and the job of their section: one request for all."""
    watched: dict[str, Any] = {"given": Input(section.settled_id(door), "data")}
    if section.job:
        watched["found"] = Input(section.job.found_id(door), "data")

    @app.callback(output=Output(section.drawn_id(door), "data"), inputs=watched)
    def draw(given: Any, found: Any = None) -> dict[str, Any]:
        shown = section.draw(given, store, found)
        trouble = simulations.trouble(store, door)
        return shown | ({"summary": f"{shown['summary']} Simulations cannot be shown: {trouble}."} if trouble else {})

    names = [f"{door}-{plot.name}" for plot in section.plots]
    app.clientside_callback(
        ClientsideFunction("explorer", "show"),
        Output(section.summary_id(door), "children"),
        *(output for name in names for output in (Output(name, "figure"), Output(f"{name}-place", "className"))),
        Input(section.drawn_id(door), "data"),
        Input("look", "data"),
        State(section.drawn_id(door), "id"),
    )


def _files(server: flask.Flask, known: dict[str, Page], store: Path) -> None:
    """Serve what is shown as CSV, and the grids that the browser draws from."""
    lane, grids = Lane(), Lane(at_once=2, waiting=6)

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

    @server.get("/grid/<door>/<name>.json")
    def grid(door: str, name: str) -> Any:
        page = known.get(door)
        if page is None or name not in page.grids:
            return "There is no such grid.\n", 404, {"Content-Type": "text/plain; charset=utf-8"}
        section, made = page.grids[name]
        with grids.enter():
            found = made.make(section.view(flask.request.args, store).state)
        return flask.Response(json.dumps(found, separators=(",", ":")), mimetype="application/json")


def _clientside(app: Dash) -> None:
    """Do in the browser what needs no server: the address, the values beside sliders, saving a figure."""
    app.clientside_callback(
        ClientsideFunction("explorer", "moved"),
        Output({"data": ALL}, "href"),
        Input({"control": ALL}, "value"),
        State({"control": ALL}, "id"),
        State({"data": ALL}, "href"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "doors"),
        Output({"door": ALL}, "href"),
        Input("pages", "children"),
        State({"door": ALL}, "id"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "save"),
        Output({"save": ALL}, "title"),
        Input({"save": ALL}, "n_clicks"),
        State({"save": ALL}, "id"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "stage"),
        Output("stage", "aria-pressed"),
        Input("stage", "n_clicks"),
        prevent_initial_call=True,
    )
