"""The scripts of ``examples/``, in cells: a line ``# %%`` begins one, whose first comment is text and whose rest is code."""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER = {  # examples by door, those one should see first before the others; others go to the end
    "aim": ("one_curve", "phase_diagram"),
    "trained": ("weight_decay",),
    "features": ("digits_as_sets", "set_regression", "what_a_bias_buys"),
    "recovery": ("recover_a_head", "sculpt_a_layer", "recover_a_trained_head"),
    "context": ("tasks_in_context", "plateau_and_drop"),
    "positional": ("position_or_meaning",),
    "lenses": ("one_teacher", "judge_a_claim"),
}


@dataclass(frozen=True)
class Cell:
    """A piece of an example: what it says, what it does."""

    text: str
    code: str


@dataclass(frozen=True)
class Example:
    """A script of ``examples/``, in cells."""

    name: str
    title: str
    cells: tuple[Cell, ...]

    @property
    def introduction(self) -> str:
        """Return the first text of the script, below its title."""
        return self.cells[0].text

    @property
    def door(self) -> str:
        """Return the key of the door it belongs to."""
        return next((key for key, names in ORDER.items() if self.name in names), "")


def examples() -> list[Example]:
    """Return all examples, door by door."""
    listed = [name for names in ORDER.values() for name in names]
    found = {path.stem: read(path) for path in sorted(EXAMPLES.glob("*.py"))}
    return sorted(found.values(), key=lambda one: listed.index(one.name) if one.name in listed else len(listed))


def read(path: Path) -> Example:
    """Return a script in cells."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, introduction = (ast.get_docstring(tree) or "").partition("\n")
    body = "".join(source.splitlines(keepends=True)[tree.body[0].end_lineno or 0 :])
    first, *rest = re.split(r"(?m)^# %%\n", body)
    cells = [Cell(introduction.strip(), first.strip()), *map(cell, rest)]
    return Example(path.stem, title.strip(), tuple(cells))


def cell(block: str) -> Cell:
    """Return a cell: the comment at its head is text in Markdown."""
    lines = block.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return Cell("\n".join(line[1:].strip() for line in lines[:end]), "\n".join(lines[end:]).strip())


def notebook(example: Example) -> str:
    """Return an example as a notebook without outputs, in version 4.5 of its format."""
    cells = []
    for i, one in enumerate(example.cells):
        heading = f"# {example.title}\n\n" if i == 0 else ""
        cells += [entry(f"text-{i}", "markdown", heading + one.text)] if heading or one.text else []
        cells += [entry(f"code-{i}", "code", one.code) | {"execution_count": None, "outputs": []}] if one.code else []
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def entry(name: str, kind: str, text: str) -> dict[str, Any]:
    """Return a cell of a notebook."""
    return {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}


def run(example: Example) -> tuple[list[str], dict[str, Any]]:
    """Run the cells of an example in one namespace, at small size; return what each printed, and the namespace."""
    space: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    given, folder = sys.argv, Path.cwd()
    with tempfile.TemporaryDirectory() as away:
        sys.argv = [example.name, "--quick"]
        os.chdir(away)
        try:
            for one in example.cells:
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    exec(compile(one.code, f"{example.name}.py", "exec"), space)  # noqa: S102  # our own script
                printed.append(said.getvalue())
        finally:
            sys.argv = given
            os.chdir(folder)
    return printed, space
