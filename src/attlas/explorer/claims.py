"""The page of claims: the site, drawn from the store when somebody asks for it."""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

import flask

from attlas.claims import Tier, names
from attlas.explorer.store_view import StoreView
from attlas.lab import verdicts
from attlas.report import write

TITLE = "Claims"
_WAIT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<link rel="icon" href="data:,"><title>Claims · attlas</title></head>
<body><p role="status">Drawing every claim from the store. This takes about half a minute, once.</p></body></html>"""


def site(store: Path, tier: Tier, seed: int) -> StoreView[Path | None]:
    """Return the folder of the site, None until it is drawn. It is removed with the process."""
    folder = Path(tempfile.mkdtemp(prefix="attlas-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def draw(path: Path) -> Path:
        write(verdicts(None, tier, store=path, seed=seed), folder, tier, seed, explorer="/")
        return folder

    return StoreView(store, draw, None, patience=0.0)


def connect(server: flask.Flask, store: Path, tier: Tier, seed: int) -> None:
    """Serve the claims below /claims/."""
    drawn = site(store, tier, seed)
    known = set(names())
    plain = {"Content-Type": "text/plain; charset=utf-8"}

    @server.get("/claims/")
    @server.get("/claims/<name>")
    def claim(name: str = "index.html") -> Any:
        stem, _, ending = name.rpartition(".")
        ours = ending in ("html", "csv") and stem.removesuffix(".series") in known
        if not ours and name not in ("index.html", "differences.html"):
            return f"No claim {name[:60]!r}; all claims: /claims/\n", 404, plain
        folder = drawn.current()
        if drawn.error:
            return f"{drawn.error}\n", 500, plain
        return flask.send_from_directory(folder, name) if folder else _WAIT
