"""The static site: a map of the questions, a page for each claim, self-contained, the same bytes for the same store."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attlas import __version__
from attlas.claims import door
from attlas.errors import InputError
from attlas.lab import Judged
from attlas.report.bibliography import arxiv, entries
from attlas.report.curves import table
from attlas.report.places import found, places
from attlas.report.svg import DARK, svg, variable
from attlas.report.typeset import closed, mathml, sentence
from attlas.store import export

GLYPHS = {
    "supported": "●",
    "refuted": "✕",
    "inconclusive": "◐",
    "illustration": "◇",
    "damaged": "!",
    "unfinished": "◌",
    "not run": "○",
}
STRONGEST = 10.0  # a bar is full at this strength
WRITTEN = ".attlas-site"  # names the files of the last report, so that the next one can remove what it no longer has


def write(
    judged: Sequence[Judged],
    out: Path | str,
    tier: str,
    seed: int = 0,
    explorer: str = "",
    other: Sequence[Judged] = (),
) -> Path:
    """Write the site into the folder `out` and return its front page; with the address of an explorer, link to it.

    What `other` has a verdict on is told on the pages of its claims: the same claims at the other tier.

    Nothing on it is fetched from elsewhere; it opens from disk. What an earlier report wrote and this one does not, such as
    the page of a claim that is gone, is removed; files of others are left alone.
    """
    folder, pages = _folder(out), _templates(tier, seed, explorer)
    elsewhere = {entry.claim.id: entry for entry in other if entry.verdict}
    written: list[str] = []

    def put(name: str, text: str) -> Path:
        written.append(name)
        return _put(folder / name, text)

    def page(name: str, template: str, **context: Any) -> Path:
        return put(name, pages.get_template(template).render(**context))

    shown = places(judged)
    for place in shown:
        for before, entry, after in zip(
            [None, *place.entries], place.entries, [*place.entries[1:], None], strict=False
        ):
            name = entry.claim.id
            if entry.records:
                export(entry.records, folder / f"{name}.csv")
                written.append(f"{name}.csv")
            if curves := _curves(entry):
                put(f"{name}.series.csv", curves)
            near = {"before": before, "after": after, "curves": bool(curves), "other": elsewhere.get(name)}
            command = {"stem": name, "command": f"attlas run {name} --{tier} --seed {seed}", "sweep": ""}
            page(f"{name}.html", "claim.html", door=place.door, entry=entry, **near, **command, **_claim_page(entry))
    page("differences.html", "differences.html", places=[place for place in shown if place.differences])
    totals = Counter(entry.status for entry in judged)
    front = page("index.html", "index.html", places=shown, totals=totals)
    _remove_stale(folder, written)
    return front


def write_sweep(entry: Judged, out: Path | str, tier: str, seed: int, command: str) -> Path:
    """Write a page for a sweep of a claim with settings of one's own, beside the site if there is one; return it.

    Its name has a digest of the settings, so that other sweeps of the claim keep theirs.
    """
    folder, pages = _folder(out), _templates(tier, seed)
    digest = hashlib.sha256(command.encode()).hexdigest()[:8]
    name = f"{entry.claim.id}.sweep-{digest}"
    if entry.records:
        export(entry.records, folder / f"{name}.csv")
    curves = _curves(entry)
    if curves:
        _put(folder / f"{name}.series.csv", curves)
    told = {"stem": name, "command": command, "sweep": command.partition(" --set ")[2]}
    near = {"before": None, "after": None, "curves": bool(curves), "other": None}
    text = pages.get_template("claim.html").render(
        door=door(entry.claim.door), entry=entry, **near, **told, **_claim_page(entry)
    )
    return _put(folder / f"{name}.html", text)


def _folder(out: Path | str) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the site")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _templates(tier: str, seed: int, explorer: str = "") -> Any:
    import jinja2

    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("attlas.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"mathml": mathml, "sentence": sentence, "closed": closed, "bar": _bar}
    pages.globals |= {
        "version": __version__,
        "tier": tier,
        "seed": seed,
        "explorer": explorer,
        "glyphs": GLYPHS,
        "dark": {variable(light): colour for light, colour in DARK.items()},
    }
    return pages


def bibtex(source: str) -> dict[str, str]:
    """Return the entries of the bibliography that a claim's source names, each with its address on arXiv, if any."""
    named = [entry for key, entry in entries().items() if re.search(rf"\b{key}\b", source)]
    return {entry: f"https://arxiv.org/abs/{number}" if (number := arxiv(entry)) else "" for entry in named}


def _curves(entry: Judged) -> str:
    """Return the points of the figure as CSV; nothing where the claim does not give them or has no verdict."""
    return table(entry.claim.series(entry.measurements())) if entry.claim.series and entry.verdict else ""


def _claim_page(entry: Judged) -> dict[str, Any]:
    records = entry.records
    points = list(dict.fromkeys(json.dumps(record.point, sort_keys=True) for record in records))
    said = found(entry)
    return {
        "bibtex": bibtex(entry.claim.source),
        "points": [json.loads(point) for point in points],
        "figure": svg(entry, entry.claim.caption or entry.claim.statement) if entry.verdict else None,
        "finding": said if entry.verdict and said != entry.verdict.reason else "",
        "seeds": sorted({record.seed for record in records}),
        "seconds": sum(record.seconds for record in records),
        "versions": sorted({item for record in records for item in record.versions.items()}),
    }


def _bar(strength: float) -> str:
    """Return how full the bar of a strength is, in percent."""
    return f"{100 * min(abs(strength), STRONGEST) / STRONGEST:.0f}"


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
