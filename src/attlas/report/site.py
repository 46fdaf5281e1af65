"""The static site: a table of all claims and a page for each, self-contained, the same bytes for the same store."""

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attlas import __version__
from attlas.errors import InputError
from attlas.lab import Judged

DOORS = {
    "features": "What can a layer with frozen random heads learn, from how many samples?",
    "recovery": "Can the parameters of a multi-head layer be recovered, from random examples or from queries?",
    "aim": "What is the best error any learner can reach, and which algorithms get there?",
}


def write(judged: Sequence[Judged], out: Path | str, tier: str, seed: int = 0) -> Path:
    """Write the site into the folder `out` and return its front page.

    Nothing on it is fetched from elsewhere; it opens from disk.
    """
    import jinja2

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the site")
    folder.mkdir(parents=True, exist_ok=True)
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("attlas.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    shared: dict[str, Any] = {"version": __version__, "tier": tier, "seed": seed}
    for entry in judged:
        page = pages.get_template("claim.html").render(entry=entry, **_claim_page(entry), **shared)
        _put(folder / f"{entry.claim.id}.html", page)
    doors = {door: [e for e in judged if e.claim.door == door] for door in sorted({e.claim.door for e in judged})}
    front = folder / "index.html"
    _put(front, pages.get_template("index.html").render(doors=doors, questions=DOORS, **shared))
    return front


def _claim_page(entry: Judged) -> dict[str, Any]:
    records = entry.records
    return {
        "figure": _svg(entry) if entry.verdict else None,
        "seeds": sorted({record.seed for record in records}),
        "seconds": sum(record.seconds for record in records),
        "versions": sorted({item for record in records for item in record.versions.items()}),
    }


def _svg(entry: Judged) -> str:
    """Return the figure of a claim as SVG without dates or random ids, so that an unchanged store gives equal bytes."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": entry.claim.id, "svg.fonttype": "none"}):
        entry.claim.draw(entry.measurements()).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)


def _put(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
