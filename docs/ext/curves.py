"""The learning curves as plots: drawn from the tables of the page that shows them, so that the two cannot differ."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from gallery import drawn
from rooms import write_all
from sphinx.application import Sphinx

from attlas.claims.figure import COLOURS, MARKERS

FOLDER = "plots"  # of the documentation
LONG = {"corr": "correlation", "wcorr": "weighted", "scorr": "rotated"}
Curves = dict[
    str, list[list[tuple[float, float]]]
]  # of every target, for each learner: (mean, standard deviation) by size


def tables(page: str) -> list[tuple[list[int], list[str], Curves]]:
    """Return the tables over sample sizes: the sizes, the learners, and the errors of every target."""
    found = []
    for block in re.findall(r"(?m)(?:^\|.*\n)+", page):
        head, _, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines())
        if sizes := re.fullmatch(r"target, n = ([\d /]+)", head[0]):
            curves = {row[0]: [[error(one) for one in cell.split("/")] for cell in row[1:]] for row in rows}
            found.append(([int(size) for size in sizes[1].split("/")], head[1:], curves))
    return found


def error(text: str) -> tuple[float, float]:
    """Return "0.847 ± 0.029" as two numbers; without a deviation it is zero."""
    mean, _, deviation = text.partition("±")
    return float(mean), float(deviation or 0)


def spelled(name: str) -> str:
    """Return the name of a target of the theory as the simulations have it: wcorr12 is "weighted p1 q2"."""
    family, powers = re.fullmatch(r"([a-z]+)(\d+)", name).groups()  # type: ignore[union-attr]
    return " ".join(
        [LONG.get(family, family), *(f"{letter}{power}" for letter, power in zip("pq", powers, strict=False))]
    )


def figure(page: str) -> Any:
    """Draw a panel for every target: the simulations of the longest table as points, the theory as lines."""
    from matplotlib.figure import Figure

    measured, theory = tables(page)[-2:]
    sizes, learners, curves = measured
    predicted = {spelled(name): rows for name, rows in theory[2].items()}
    made = Figure(figsize=(9, 10.5), layout="constrained")
    axes = made.subplots(5, 3, sharex=True, sharey=True)
    for axis, (name, rows) in zip(axes.flat, curves.items(), strict=False):
        for row, colour, marker in zip(rows, COLOURS, MARKERS, strict=False):
            mean, deviation = np.array(row).T
            axis.errorbar(sizes, mean, deviation, fmt=marker, color=colour, markersize=4, capsize=2, linewidth=1)
        for row, colour in zip(predicted.get(name, []), COLOURS, strict=False):
            axis.plot(theory[0], [mean for mean, _ in row], color=colour, linewidth=1)
        axis.set_title(name, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set(xscale="log", xlim=(200, 10_000), ylim=(0, 1.2))
        axis.set_xticks([250, 1000, 4000], ["250", "1000", "4000"])
        axis.set_xticks([], minor=True)
    blank = axes.flat[len(curves) :]
    for axis in blank:
        axis.axis("off")
    for learner, colour, marker in zip(learners, COLOURS, MARKERS, strict=False):
        blank[0].plot([], [], marker, color=colour, label=learner)
    blank[0].plot([], [], color="#555555", linewidth=1, label="theory")
    blank[0].legend(loc="center", frameon=False, fontsize=11)
    made.supxlabel("samples n", fontsize=10)
    made.supylabel("test error over variance", fontsize=10)
    return made


def write(app: Sphinx) -> None:
    """Draw the curves, for light and for dark paper."""
    page = Path(app.srcdir, "learning_curves.md").read_text(encoding="utf-8")
    papers = drawn(figure(page), "learning-curves")
    write_all(Path(app.srcdir) / FOLDER, {f"learning-curves-{paper}.svg": text for paper, text in papers.items()})


def setup(app: Sphinx) -> dict[str, Any]:
    """Draw when a build begins."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
