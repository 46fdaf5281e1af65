"""A claim's figure, drawn once and kept several ways: in its page, as files for papers and talks, and small.

The same results give the same bytes: there are no dates and no random ids in them.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attlas.claims import Claim, Measurement, Series
from attlas.claims.tex import plain
from attlas.report.points import points
from attlas.report.repaired import repaired
from attlas.report.svg import standalone, themed
from attlas.report.thumbnail import thumbnail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARP = 144  # dots per inch of a PNG
_FILES: dict[str, dict[str, Any]] = {
    "png": {"dpi": SHARP, "metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}


@dataclass(frozen=True)
class Drawn:
    """A figure: as a part of a page, its points answering to the pointer; and the names of the files beside that page."""

    inline: str
    files: tuple[str, ...]


def draw(
    claim: Claim[Any],
    measured: Sequence[Measurement[Any]],
    series: Sequence[Series],
    folder: Path,
    stem: str,
    prints: bool = True,
) -> Drawn:
    """Draw the figure of a claim and write its files, named after `stem`; with `prints` also those for papers and talks.

    A PNG and a PDF are made anew only where the SVG is not the one that is there already: they take as long as the rest.
    """
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": claim.id, "svg.fonttype": "none"}):
        figure = claim.draw(measured)
        text = _svg(figure)
        figure.set_layout_engine(None)  # everything has found its place: one drawing a file is enough
        made = [f"{stem}.svg", f"{stem}.thumb.svg"]
        known = _stands(folder / made[0], repaired(text))
        for ending in _FILES if prints else ():
            made.append(f"{stem}.{ending}")
            if not (known and (folder / made[-1]).exists()):
                _save(figure, folder / made[-1], ending)
        _written(folder / made[0], repaired(text))  # last, for it says that the others are made
        inline = themed(text, plain(claim.caption or claim.statement), points(figure, series))
        _written(folder / made[1], standalone(thumbnail(figure)))
    return Drawn(inline, tuple(made))


def _svg(figure: "Figure") -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _save(figure: "Figure", path: Path, ending: str) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=ending, **_FILES[ending])
    put(path, buffer.getvalue())


def _written(path: Path, text: str) -> None:
    """Write a text unless it stands there already."""
    if not _stands(path, text):
        put(path, text.encode())


def _stands(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() == text.encode()


def put(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(path)
    return path
