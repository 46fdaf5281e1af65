"""The page of claims: the site, drawn from the store when somebody asks for it."""

import atexit
import math
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import flask

from attlas.claims import Tier, door, names
from attlas.errors import InputError
from attlas.explorer import pages
from attlas.explorer.store_view import StoreView
from attlas.lab import Judged, verdicts
from attlas.report import write

TITLE = "Claims"
_SHARED = ("index.html", "differences.html", "attlas.js", "stix-two-math.woff2")
_WAIT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">
<title>Claims · attlas</title><script src="/assets/waiting.js" defer></script></head>
<body data-waiting><main><h1>Claims</h1><p role="status">Drawing every claim from the store. This takes about half a
minute, once; the page then opens by itself.</p><noscript><p>Reload it in a while.</p></noscript></main></body></html>"""


def site(store: Path, tier: Tier, seed: int) -> StoreView[Path | None]:
    """Return the folder of the site, None until it is drawn. It is removed with the process."""
    folder = Path(tempfile.mkdtemp(prefix="attlas-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def draw(path: Path) -> Path:
        write(verdicts(None, tier, store=path, seed=seed), folder, tier, seed, explorer="/", settings=settings)
        return folder

    return StoreView(store, draw, None, patience=0.0)


def settings(entry: Judged) -> str:
    """Return the page of a claim's door at the settings of its last result, as far as it has them; or nothing."""
    about = door(entry.claim.door)
    key = next((key for key in (about.key, about.parent) if key in pages.names()), None)
    if key is None or not entry.records:
        return ""
    given = {}
    for name, value in entry.records[-1].point.items():
        control = pages.find(key).controls.get(name)
        if control is None or control.scale:  # one that is measured against others is left where it is
            continue
        with suppress(InputError, ValueError, TypeError):
            given[name] = control.position(math.log10(value) if getattr(control, "powers", False) else value)
    return f"/{key}?{urlencode(given)}" if given else f"/{key}"


def connect(server: flask.Flask, store: Path, tier: Tier, seed: int) -> None:
    """Serve the claims below /claims/."""
    drawn = site(store, tier, seed)
    known = set(names())
    plain = {"Content-Type": "text/plain; charset=utf-8"}

    @server.get("/claims/")
    @server.get("/claims/<name>")
    def claim(name: str = "index.html") -> Any:
        stem, _, ending = name.rpartition(".")
        ours = ending in ("html", "csv", "svg") and stem.removesuffix(".series").removesuffix(".thumb") in known
        if not ours and name not in _SHARED:
            return f"No claim {name[:60]!r}; all claims: /claims/\n", 404, plain
        folder = drawn.current()
        if drawn.error:
            return f"{drawn.error}\n", 500, plain
        return flask.send_from_directory(folder, name) if folder else (_WAIT, 202)  # accepted, and not there yet
