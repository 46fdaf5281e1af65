"""The door of claims: the site, drawn from the store when somebody asks for it."""

import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

import flask

from attlas.claims import Tier, find
from attlas.explorer.simulations import stamp
from attlas.lab import verdicts
from attlas.report import write

TITLE = "Claims"
_WAIT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<link rel="icon" href="data:,"><title>Claims · attlas</title></head>
<body><p role="status">Drawing every claim from the store. This takes half a minute, once.</p></body></html>"""


class Pages:
    """The pages of the site in a folder of their own, drawn again when the store has changed."""

    def __init__(self, store: Path, tier: Tier, seed: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="attlas-"))
        self.error = ""
        self._store, self._tier, self._seed = store, tier, seed
        self._drawn: Any = None
        self._drawing = threading.Lock()
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def ready(self) -> bool:
        """Whether there is anything to show; if the store has changed since, it is drawn again in the background."""
        if self._drawn != stamp(self._store) and not self._drawing.locked():
            threading.Thread(target=self._draw, daemon=True, name="explorer-claims").start()
        return (self.folder / "index.html").exists()

    def _draw(self) -> None:
        if not self._drawing.acquire(blocking=False):
            return
        before = stamp(self._store)
        try:
            judged = verdicts(None, self._tier, store=self._store, seed=self._seed)
            write(judged, self.folder, self._tier, self._seed, explorer="/")
            self._drawn, self.error = before, ""
        except Exception as error:  # such as a damaged store: told until the store has changed
            self._drawn, self.error = before, str(error)
        finally:
            self._drawing.release()


def connect(server: flask.Flask, store: Path, tier: Tier, seed: int) -> None:
    """Serve the claims below /claims/."""
    pages = Pages(store, tier, seed)
    known = {claim.id for claim in find(None)}

    @server.get("/claims/")
    @server.get("/claims/<name>")
    def claim(name: str = "index.html") -> Any:
        stem, _, ending = name.rpartition(".")
        pages_too = {"index", "differences"} if ending == "html" else set()
        if ending not in ("html", "csv") or stem not in known | pages_too:
            return (
                f"there is no claim {name[:60]!r}; all of them are at /claims/\n",
                404,
                {"Content-Type": "text/plain"},
            )
        ready = pages.ready
        if pages.error:
            return f"{pages.error}\n", 500, {"Content-Type": "text/plain; charset=utf-8"}
        return flask.send_from_directory(pages.folder, name) if ready else _WAIT
