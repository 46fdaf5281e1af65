"""The page itself: a frame with the doors, and the door that the address names."""

from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import flask
from dash import ALL, MATCH, ClientsideFunction, Dash, Input, Output, State, dcc, html

from attlas import __version__
from attlas.claims import Tier
from attlas.errors import InputError
from attlas.explorer import claims
from attlas.explorer import job as runner
from attlas.explorer.controls import read
from attlas.explorer.pages import aim as bayes
from attlas.explorer.pages import features, recovery
from attlas.explorer.queue import Queue

DOORS: dict[str, ModuleType] = {"bayes": bayes, "features": features, "recovery": recovery}
FILES = {name: (door, make) for door in DOORS.values() for name, make in door.FILES.items()}


def build(store: Path, queue: Queue, tier: Tier, seed: int) -> Dash:
    """Return the application: every door connected, its data as files."""
    app = Dash(
        "attlas.explorer",
        title="attlas",
        update_title="",
        suppress_callback_exceptions=True,
        assets_folder=str(resources.files("attlas.explorer").joinpath("assets")),
        serve_locally=True,
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    app.layout = _frame()

    @app.callback(
        Output("door", "children"),
        Output("doors", "children"),
        Input("address", "pathname"),
        State("address", "search"),
    )
    def enter(path: str | None, search: str | None) -> Any:
        name = str(path or "/").strip("/") or "bayes"
        door = DOORS.get(name, bayes)
        given, refused = _given(door, str(search or ""))
        notes = [html.P(text, role="alert", className="refused") for text in refused]
        return [*notes, *door.show(given)], _links(name)

    for door in DOORS.values():
        door.connect(app, store, queue)
    _clientside(app)
    _files(app.server, store)
    claims.connect(app.server, store, tier, seed)
    return app


def _frame() -> Any:
    return html.Div(
        [
            dcc.Location(id="address", refresh="callback-nav"),
            *runner.stores("amp", "session"),  # a run goes on behind another door, and runs stay with the tab
            html.A("Skip to the page", href="#door", className="skip"),
            html.Header(
                [html.A("attlas", href="/", className="name"), html.Nav(id="doors", **{"aria-label": "Doors"})]
            ),
            html.Main(id="door", tabIndex="-1"),
            html.Footer(f"attlas {__version__}. Everything is computed on this machine."),
        ]
    )


def _links(current: str) -> list[Any]:
    links = [
        html.A(door.TITLE, href=f"/{name}", **{"aria-current": "page"})
        if name == current
        else dcc.Link(door.TITLE, href=f"/{name}")
        for name, door in DOORS.items()
    ]
    return [*links, html.A(claims.TITLE, href="/claims/")]


def _given(door: ModuleType, search: str) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of an address that the door accepts, and a sentence for each that it does not."""
    given: dict[str, Any] = {}
    refused = []
    known = {control.name: control for control in door.ADDRESS}
    try:
        pairs = parse_qsl(search.removeprefix("?"), max_num_fields=30)
    except ValueError:
        return given, ["This address has more settings than any door."]
    for name, value in pairs:
        try:
            if name in known:
                given[name] = known[name].position(value)
            else:
                refused.append(f"This door has no setting {name[:40]!r}.")
        except InputError as error:
            refused.append(f"{error}.")
    return given, refused


def _files(server: flask.Flask, store: Path) -> None:
    @server.get("/data/<name>.csv")
    def download(name: str) -> Any:
        if name not in FILES:
            text = f"there are no data of {name[:40]!r}; there are of {', '.join(FILES)}\n"
            return text, 404, {"Content-Type": "text/plain; charset=utf-8"}
        door, make = FILES[name]
        state = read(door.ADDRESS, flask.request.args)
        settings = (f"{key}-{value if isinstance(value, str) else format(value, 'g')}" for key, value in state.items())
        file = "_".join((name, *settings)).replace(" ", "-") + ".csv"
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return flask.Response(make(state, store), mimetype="text/csv", headers=headers)


def _clientside(app: Dash) -> None:
    """Do in the browser what needs no server: the address, the values beside sliders, saving a figure."""
    app.clientside_callback(
        ClientsideFunction("explorer", "address"),
        Output({"data": ALL}, "href"),
        Input({"control": ALL}, "value"),
        State({"control": ALL}, "id"),
        State({"data": ALL}, "href"),
    )
    for kind in ("number", "powers"):
        app.clientside_callback(
            ClientsideFunction("explorer", kind),
            Output({"control": MATCH, "shown": kind}, "children"),
            Input({"control": MATCH}, "value"),
        )
    app.clientside_callback(
        ClientsideFunction("explorer", "save"),
        Output({"save": ALL}, "title"),
        Input({"save": ALL}, "n_clicks"),
        State({"save": ALL}, "id"),
        prevent_initial_call=True,
    )
