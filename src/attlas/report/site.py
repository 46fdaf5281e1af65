"""The static site: a table of all claims and a page for each, self-contained, the same bytes for the same store."""

import io
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attlas import __version__
from attlas.errors import InputError
from attlas.lab import Judged
from attlas.store import export

DOORS = {
    "features": "What can a layer with frozen random heads learn, from how many samples?",
    "recovery": "Can the parameters of a multi-head layer be recovered, from random examples or from queries?",
    "aim": "What is the best error any learner can reach, and which algorithms get there?",
    "trained": "What does training with weight decay reach, and which decay is best?",
    "lenses": "One teacher, every learner of the atlas: who needs how many samples?",
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
        data = f"{entry.claim.id}.csv" if entry.records and find_spec("pandas") else None
        if data:
            export(entry.records, folder / data)
        page = pages.get_template("claim.html").render(entry=entry, data=data, **_claim_page(entry), **shared)
        _put(folder / f"{entry.claim.id}.html", page)
    known = [*DOORS, *sorted({entry.claim.door for entry in judged} - set(DOORS))]
    doors = {door: found for door in known if (found := [entry for entry in judged if entry.claim.door == door])}
    counts = Counter(entry.status for entry in judged)
    front = folder / "index.html"
    _put(front, pages.get_template("index.html").render(doors=doors, questions=DOORS, counts=counts, **shared))
    ids = {entry.claim.id for entry in judged}
    _put(folder / "differences.html", pages.get_template("differences.html").render(ids=ids, **shared))
    return front


def bibtex(source: str) -> list[str]:
    """Return the entries of the bibliography that a claim's source names."""
    text = resources.files("attlas.claims").joinpath("references.bib").read_text(encoding="utf-8")
    entries = {found[1]: found[0].strip() for found in re.finditer(r"@\w+\{(\w+),.*?\n\}", text, flags=re.DOTALL)}
    return [entry for key, entry in entries.items() if re.search(rf"\b{key}\b", source)]


def _claim_page(entry: Judged) -> dict[str, Any]:
    records = entry.records
    points = list(dict.fromkeys(json.dumps(record.point, sort_keys=True) for record in records))
    return {
        "bibtex": bibtex(entry.claim.source),
        "points": [json.loads(point) for point in points],
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
