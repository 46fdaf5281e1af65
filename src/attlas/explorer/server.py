"""The server of the page: this machine only, known paths only, requests from its own page only."""

import ipaddress
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attlas.claims import Tier, door
from attlas.errors import AttlasError, InputError
from attlas.explorer.pages import names
from attlas.explorer.queue import Queue, QueueFull
from attlas.extras import require

if TYPE_CHECKING:
    import flask  # and Dash with it only when there is something to serve: a job's process needs neither

LOCAL = ("127.0.0.1", "localhost", "[::1]")
_LARGEST = 256 * 1024  # bytes of a request
_BODY = (LookupError, TypeError, ValueError, AttributeError, RecursionError)  # what a body that is not ours leads to


def serve(
    store: Path | str = "attlas.db",
    host: str = "127.0.0.1",
    port: int = 8050,
    tier: Tier = "quick",
    seed: int = 0,
    echo: Callable[[str], object] = print,
) -> None:
    """Serve the explorer until interrupted.

    Parameters
    ----------
    store : path
        Its results are shown beside the theory; it need not exist.
    host : str
        Anything but this machine's own address lets others in, and there is no password.
    port : int
        0 takes a free one.
    tier, seed
        Of the claims that are judged.
    echo : callable
        Called with the line that gives the address, once the server answers.
    """
    require("explore")
    from threadpoolctl import threadpool_limits
    from waitress.server import create_server

    from attlas.store import present

    present(store)  # refuses what can be none
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # that a visitor waits a moment is not worth a warning
    if not host:
        raise InputError("host must be an address such as 127.0.0.1; got nothing")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise InputError(f"cannot listen on {host}, port {port}: {why}; try --port 0") from error
    port = listening.getsockname()[1]
    name = f"[{host}]" if family == socket.AF_INET6 else host
    app = application(Path(store), (*LOCAL, name), port, tier, seed)
    server = create_server(app, sockets=[listening], threads=8, clear_untrusted_proxy_headers=True)
    ended: list[int] = []

    def end(number: int, _: Any) -> None:
        ended.append(number)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)  # before anybody is told of a server that can be ended
    if not Path(store).exists():
        echo(f"No store at {store}: the pages show theory alone; `attlas run` makes one")
    echo(f"attlas is at http://{name}:{port}/ (Ctrl-C ends it)")
    try:
        with threadpool_limits(1):  # visitors share the cores; within one answer nothing is large
            server.run()
    finally:
        server.close()
    if ended:  # waitress takes the exit for an ordinary end
        sys.exit(128 + ended[0])


def application(
    store: Path, hosts: tuple[str, ...], port: int, tier: Tier = "quick", seed: int = 0, queue: Queue | None = None
) -> "flask.Flask":
    """Return the WSGI application."""
    import flask
    from dash.exceptions import CallbackException
    from werkzeug.exceptions import HTTPException

    from attlas.explorer.compression import shrink
    from attlas.explorer.frame import build, warm

    app = build(store, queue or Queue(), tier, seed)
    server: flask.Flask = app.server
    server.config["MAX_CONTENT_LENGTH"] = _LARGEST
    allowed = {f"{host}:{port}" for host in hosts} | ({*hosts} if port == 80 else set())
    everywhere = any(host in ("0.0.0.0", "[::]") for host in hosts)  # noqa: S104 - asked for by a person
    policy = "; ".join(
        (
            "default-src 'none'",
            "script-src 'self' " + " ".join(app.csp_hashes()),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "font-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )

    @server.before_request
    def guard() -> Any:
        request = flask.request
        if request.host not in allowed and not (everywhere and _names_this_machine(request.host)):
            return "This page answers to its own address only.\n", 403
        origin = request.headers.get("Origin", f"http://{request.host}")
        foreign = request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        if origin != f"http://{request.host}" or (foreign and request.headers.get("Sec-Fetch-Mode") != "navigate"):
            return "Requests from other pages are refused.\n", 403
        if not _known(request.path) or (_caught(request) and request.path.strip("/") not in ("", *names())):
            return flask.render_template_string(_MISSING, doors=map(door, names())), 404
        if request.path == "/_dash-update-component" and request.method == "POST" and not _update(request):
            return "This is no request of this page.\n", 400
        return None

    @server.after_request
    def seal(response: flask.Response) -> flask.Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "same-origin"
        return shrink(response)

    plain = {"Content-Type": "text/plain; charset=utf-8"}

    @server.errorhandler(AttlasError)
    def explain(error: AttlasError) -> Any:
        if isinstance(error, QueueFull):
            return f"{error}\n", 503, plain | {"Retry-After": "5"}
        return f"{error}\n", 400, plain

    @server.errorhandler(Exception)
    def excuse(error: Exception) -> Any:
        """Answer what nobody foresaw in a sentence: a browser may send anything, and a traceback is of no use to it."""
        if isinstance(error, HTTPException):
            return error
        if flask.request.path.startswith("/_dash-component-suites/"):
            return "There is no such file.\n", 404, plain
        asked = flask.request.method == "POST" and isinstance(error, (*_BODY, CallbackException))
        logging.getLogger(__name__).error("%s %s: %r", flask.request.method, flask.request.path, error)
        return ("This is no request of this page.\n", 400, plain) if asked else ("This failed here.\n", 500, plain)

    threading.Thread(target=warm, args=(store,), daemon=True, name="explorer-warm").start()
    return server


def _update(request: "flask.Request") -> bool:
    """Return whether the body of a request has the form of what the page sends: an output, and what it depends on."""
    body = request.get_json(silent=True)
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    parts = [body.get("inputs"), body.get("state", [])]
    items = [item for part in parts if isinstance(part, list) for item in part]
    flat = [one for item in items for one in (item if isinstance(item, list) else [item])]
    named = all(isinstance(one, dict) and "id" in one and "property" in one for one in flat)
    if not _matches(body["output"], body.get("outputs")):
        return False
    return named and all(isinstance(part, list) for part in parts) and isinstance(body.get("changedPropIds", []), list)


def _matches(output: str, outputs: Any) -> bool:
    """Return whether the outputs of a request are those that its name lists: `..a.x...b.y..` are two, `a.x` is one."""
    several = output.startswith("..")
    items = outputs if several else [outputs]
    parts = output.strip(".").split("...") if several else [output]
    return isinstance(items, list) and len(items) == len(parts) and all(map(_is_output, parts, items))


def _is_output(part: str, item: Any) -> bool:
    name, _, prop = part.rpartition(".")
    if isinstance(item, list):  # what a pattern stands for on this page
        return '["ALL"]' in name and all(
            isinstance(one, dict) and isinstance(one.get("id"), dict) and one.get("property") == prop for one in item
        )
    if not isinstance(item, dict) or item.get("property") not in (prop, prop.partition("@")[0]):
        return False
    own = item.get("id")
    if name.startswith("{"):  # the name of a control is a mapping, and the page sends it as one
        return isinstance(own, dict) and json.dumps(own, sort_keys=True, separators=(",", ":")) == name
    return bool(own == name)


def _known(path: str) -> bool:
    """Return whether there is anything at this path; Dash itself would show its page at all of them."""
    first, *rest = path.strip("/").split("/")
    if first in ("data", "grid"):
        return len(rest) == 2
    if first == "claims":
        return len(rest) <= 1  # routes of their own, which refuse names that they do not know
    return path.startswith(("/_dash-", "/assets/", "/_favicon")) or path.strip("/") in ("", *names())


def _caught(request: "flask.Request") -> bool:
    """Return whether no route has the path of a request but Dash's own for all, which shows the page."""
    return request.url_rule is not None and request.url_rule.rule == "/<path:path>"


def _names_this_machine(host: str) -> bool:
    """Return whether a Host is an address or this machine's name: no other site can be given those."""
    name = host.rsplit(":", 1)[0].strip("[]")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in (socket.gethostname(), socket.getfqdn())
    return True


_MISSING = """<!doctype html><html lang="en"><link rel="icon" href="data:,">
<title>Not found · attlas</title><h1>There is no such page</h1>
<p>The pages are: {% for door in doors %}<a href="/{{ door.key }}">{{ door.title }}</a>
{% endfor %}<a href="/claims/">Claims</a></p></html>"""
