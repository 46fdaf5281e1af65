"""The static site: a gallery of figures, a page for each claim, self-contained, the same bytes for the same store."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from attlas.claims import door
from attlas.claims.tex import plain
from attlas.errors import InputError
from attlas.lab import Judged
from attlas.lab.side_by_side import side_by_side
from attlas.report.bibliography import address, entries, named, papers
from attlas.report.citation import citation
from attlas.report.curves import table
from attlas.report.environment import templates
from attlas.report.figures import Drawn, draw, put
from attlas.report.places import found, places
from attlas.report.typeset import closed, headline
from attlas.store import export

WRITTEN = ".attlas-site"  # names the files of the last report, so that the next one can remove what it no longer has
SHARED = ("templates/attlas.js", "fonts/stix-two-math.woff2", "fonts/OFL.txt")  # what all pages use
KINDS = (".html", ".csv", ".svg", ".png", ".pdf", ".js", ".woff2")  # of files that a report may have written


def write(
    judged: Sequence[Judged],
    out: Path | str,
    tier: str,
    seed: int = 0,
    explorer: str = "",
    other: Sequence[Judged] = (),
    settings: Callable[[Judged], str] | None = None,
    address: str = "",
    workers: int = 1,
) -> Path:
    """Write the site into the folder `out` and return its front page; with the address of an explorer, link to it.

    What `other` has a verdict on is told beside its claims: the same claims at the other tier. `settings` returns where the
    explorer shows the settings of a claim. Files for papers and talks, PDF and PNG, are left out of an explorer's own site.
    With the `address` where the site will be, such as ``https://example.org/atlas``, pages name their own address and that
    of their picture, which those who show a link as a card ask for. Figures are drawn in `workers` processes.

    Nothing on it is fetched from elsewhere; it opens from disk. What an earlier report wrote and this one does not, such as
    the page of a claim that is gone, is removed; files of others are left alone.
    """
    folder, pages = _folder(out), templates(tier, seed, explorer, base(address))
    elsewhere = {entry.claim.id: entry for entry in other if entry.verdict}
    written = _share(folder)

    def page(name: str, template: str, **context: Any) -> Path:
        written.append(name)
        return put(folder / name, pages.get_template(template).render(name=name, **context).encode())

    shown = places(judged)
    draw_page = partial(_claim_page, folder=folder, tier=tier, seed=seed, prints=not explorer)
    drawn = {entry.claim.id: told for entry, told in zip(judged, side_by_side(draw_page, judged, workers), strict=True)}
    for place in shown:
        for before, entry, after in zip(
            [None, *place.entries], place.entries, [*place.entries[1:], None], strict=False
        ):
            name = entry.claim.id
            command = {"stem": name, "command": f"attlas run {name} --{tier} --seed {seed}", "sweep": ""}
            near = {"before": before, "after": after, "other": elsewhere.get(name)}
            opened = {"settings": settings(entry) if settings else ""}
            written += drawn[name]["files"]
            page(f"{name}.html", "claim.html", door=place.door, entry=entry, **near, **command, **opened, **drawn[name])
    page("differences.html", "differences.html", places=[place for place in shown if place.differences])
    front = page("index.html", "index.html", places=shown, other=elsewhere, **_front(judged, written))
    _remove_stale(folder, written)
    return front


def write_sweep(entry: Judged, out: Path | str, tier: str, seed: int, command: str) -> Path:
    """Write a page for a sweep of a claim with settings of one's own, beside the site if there is one; return it.

    Its name has a digest of the settings, so that other sweeps of the claim keep theirs.
    """
    folder, pages = _folder(out), templates(tier, seed)
    _share(folder)
    name = f"{entry.claim.id}.sweep-{hashlib.sha256(command.encode()).hexdigest()[:8]}"
    told = {"stem": name, "command": command, "sweep": command.partition(f" --seed {seed} ")[2]}
    near = {"before": None, "after": None, "other": None, "settings": ""}
    context = near | told | _claim_page(entry, folder, tier, seed, stem=name, sweep=told["sweep"])
    text = pages.get_template("claim.html").render(
        door=door(entry.claim.door), entry=entry, name=f"{name}.html", **context
    )
    return put(folder / f"{name}.html", text.encode())


def base(address: str) -> str:
    """Return the address of a site as what its pages' names follow; nothing if it has none yet."""
    if address and not re.fullmatch(r"https?://[^\s\"'<>?#]+", address):
        raise InputError(f"the address of the site must be like https://example.org/atlas; got {address!r}")
    return address.rstrip("/") + "/" if address else ""


def _folder(out: Path | str) -> Path:
    folder = Path(out).resolve()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the site")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _share(folder: Path) -> list[str]:
    """Write what all pages use; return the names."""
    room = resources.files("attlas.report")
    for path in SHARED:
        put(folder / Path(path).name, room.joinpath(path).read_bytes())
    return [Path(path).name for path in SHARED]


def bibtex(source: str) -> dict[str, str]:
    """Return the entries of the bibliography that a claim's source names, each with where it can be read, if known."""
    return {entries()[key]: address(entries()[key]) for key in named(source)}


def _claim_page(
    entry: Judged, folder: Path, tier: str, seed: int, *, stem: str = "", prints: bool = True, sweep: str = ""
) -> dict[str, Any]:
    """Write the files beside the page of a claim; return what the page tells, and the names of those files."""
    records, claim = entry.records, entry.claim
    stem = stem or claim.id
    files = []
    if records:
        export(records, folder / f"{stem}.csv")
        files.append(f"{stem}.csv")
    measured = entry.measurements() if entry.verdict else []
    series = list(claim.series(measured)) if claim.series and measured else []
    if curves := table(series):
        put(folder / f"{stem}.series.csv", curves.encode())
        files.append(f"{stem}.series.csv")
    said = found(entry)
    figure = draw(claim, measured, series, folder, stem, prints) if entry.verdict else None
    points = list(dict.fromkeys(json.dumps(record.point, sort_keys=True) for record in records))
    return {
        "bibtex": bibtex(claim.source),
        "citation": citation(entry, tier, seed, sweep) if entry.verdict else "",
        "points": [json.loads(point) for point in points],
        "figure": figure.inline if figure else "",
        "files": [*files, *(figure or Drawn("", ())).files],
        "finding": said if entry.verdict and said != entry.verdict.reason else "",
        "title": headline(claim.statement)[0],
        "description": _description(entry),
        "seeds": sorted({record.seed for record in records}),
        "seconds": sum(record.seconds for record in records),
        "versions": sorted({item for record in records for item in record.versions.items()}),
    }


def _description(entry: Judged) -> str:
    """Return a claim in a sentence or two, for those who list pages: what was found, or what is claimed."""
    return plain(closed(f"{entry.status.capitalize()}: {headline(found(entry) or entry.claim.statement)[0]}"))


def _front(judged: Sequence[Judged], written: Sequence[str]) -> dict[str, Any]:
    """Return what the front page tells of all claims together."""
    keys = sorted({key for entry in judged for key in named(entry.claim.source)}, key=lambda key: papers()[key])
    pictures = [f"{entry.claim.id}.png" for entry in judged if f"{entry.claim.id}.png" in written]
    spoken = [f"{door(entry.claim.door).headline}.png" for entry in judged]
    return {
        "totals": Counter(entry.status for entry in judged),
        "papers": {key: papers()[key] for key in keys},
        "cites": {entry.claim.id: named(entry.claim.source) for entry in judged},
        "pictured": {name.removesuffix(".thumb.svg") for name in written if name.endswith(".thumb.svg")},
        "image": next((name for name in spoken if name in pictures), next(iter(pictures), "")),
    }


def _remove_stale(folder: Path, written: list[str]) -> None:
    """Remove what the last report wrote and this one did not, then note what this one wrote."""
    note = folder / WRITTEN
    before = note.read_text(encoding="utf-8").split("\n") if note.exists() else []
    for name in set(before) - set(written):
        if name == Path(name).name and name.endswith(KINDS):
            (folder / name).unlink(missing_ok=True)
    put(note, "\n".join(sorted(written)).encode())
