"""The static site: a map of the questions, a page for each claim, self-contained, the same bytes for the same store."""

import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attlas import __version__
from attlas.errors import InputError
from attlas.lab import Judged
from attlas.report.bibliography import arxiv, entries
from attlas.report.doors import DOORS, Door, finding
from attlas.report.svg import DARK, svg, variable
from attlas.report.typeset import mathml, sentence
from attlas.store import export

GLYPHS = {"supported": "●", "refuted": "✕", "inconclusive": "◐", "unfinished": "◌", "not run": "○"}
WRITTEN = ".attlas-site"  # names the files of the last report, so that the next one can remove what it no longer has


def write(judged: Sequence[Judged], out: Path | str, tier: str, seed: int = 0, explorer: str = "") -> Path:
    """Write the site into the folder `out` and return its front page; with the address of an explorer, link to it.

    Nothing on it is fetched from elsewhere; it opens from disk. What an earlier report wrote and this one does not, such as
    the page of a claim that is gone, is removed; files of others are left alone.
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
        lstrip_blocks=True,
    )
    pages.filters |= {"mathml": mathml, "sentence": sentence}
    dark = {variable(light): colour for light, colour in DARK.items()}
    pages.globals |= {
        "version": __version__,
        "tier": tier,
        "seed": seed,
        "explorer": explorer,
        "glyphs": GLYPHS,
        "dark": dark,
    }
    doors = _by_door(judged)
    written: list[str] = []

    def put(name: str, template: str, **context: Any) -> Path:
        written.append(name)
        return _put(folder / name, pages.get_template(template).render(**context))

    for door, own in doors.items():
        for i, entry in enumerate(own):
            data = f"{entry.claim.id}.csv" if entry.records else None
            if data:
                export(entry.records, folder / data)
                written.append(data)
            near = {"before": own[i - 1] if i else None, "after": own[i + 1] if i + 1 < len(own) else None}
            about = {"door": door, "title": DOORS.get(door, Door(door, "")).title, "data": data}
            put(f"{entry.claim.id}.html", "claim.html", entry=entry, **near, **about, **_claim_page(entry))
    put("differences.html", "differences.html", status={entry.claim.id: entry.status for entry in judged})
    known = {door: DOORS.get(door, Door(door, "")) for door in doors}
    found = {entry.claim.door: finding(entry) for entry in judged if entry.claim.id == known[entry.claim.door].speaker}
    counts = {door: Counter(entry.status for entry in own) for door, own in doors.items()}
    totals = sum(counts.values(), Counter())
    front = put("index.html", "index.html", doors=doors, known=known, found=found, counts=counts, totals=totals)
    _remove_stale(folder, written)
    return front


def bibtex(source: str) -> dict[str, str]:
    """Return the entries of the bibliography that a claim's source names, each with its address on arXiv, if any."""
    named = [entry for key, entry in entries().items() if re.search(rf"\b{key}\b", source)]
    return {entry: f"https://arxiv.org/abs/{number}" if (number := arxiv(entry)) else "" for entry in named}


def _by_door(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the claims of every door, doors in the order of the map, then others."""
    known = [*DOORS, *sorted({entry.claim.door for entry in judged} - set(DOORS))]
    return {door: own for door in known if (own := [entry for entry in judged if entry.claim.door == door])}


def _claim_page(entry: Judged) -> dict[str, Any]:
    records = entry.records
    points = list(dict.fromkeys(json.dumps(record.point, sort_keys=True) for record in records))
    caption = (entry.claim.draw.__doc__ or "").strip().split("\n")[0].removeprefix("Draw ")
    caption = caption[:1].upper() + caption[1:] if caption[1:2].isalpha() else caption
    return {
        "bibtex": bibtex(entry.claim.source),
        "points": [json.loads(point) for point in points],
        "figure": svg(entry, caption or entry.claim.statement) if entry.verdict else None,
        "caption": caption,
        "seeds": sorted({record.seed for record in records}),
        "seconds": sum(record.seconds for record in records),
        "versions": sorted({item for record in records for item in record.versions.items()}),
    }


def _put(path: Path, text: str) -> Path:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
    return path


def _remove_stale(folder: Path, written: list[str]) -> None:
    """Remove what the last report wrote and this one did not, then note what this one wrote."""
    note = folder / WRITTEN
    before = note.read_text(encoding="utf-8").split("\n") if note.exists() else []
    for name in set(before) - set(written):
        if name == Path(name).name and name.endswith((".html", ".csv")):
            (folder / name).unlink(missing_ok=True)
    _put(note, "\n".join(sorted(written)))
