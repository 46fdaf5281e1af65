"""The pages of the reference, one per module and package of attlas, written into ``docs/api`` before pages are read."""

import ast
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import attlas
from attlas.claims import door

BELOW, ABOVE = ("numerics", "tokens", "layers"), ("claims", "lab", "store", "report", "explorer", "cli")
ASIDE = ("inputs", "errors")  # used everywhere

PAGE = """# attlas.{room}

```{{eval-rst}}
.. automodule:: attlas.{room}
   :no-members:

.. public_names:: attlas.{room}
```
"""

INDEX = """# API reference

Everything that the packages make public, by the name it is imported by. Data flows from the top of this table to the bottom.

| package | what |
|---|---|
{rows}

```{{toctree}}
:hidden:

{names}
```
"""


def pages() -> dict[str, str]:
    """Return the pages by their names."""
    found = {f"{room}.md": PAGE.format(room=room) for room in rooms()}
    rows = "\n".join(f"| [attlas.{room}]({room}.md) | {summary(room)} |" for room in rooms())
    return found | {"index.md": INDEX.format(rows=rows, names="\n".join(rooms()))}


def rooms() -> list[str]:
    """Return the modules and packages of attlas: those beneath the doors, the doors in their order, those above."""
    known = set(attlas.__all__) - {"__version__"}
    between = sorted(known.difference(BELOW, ABOVE, ASIDE), key=lambda key: door(key).order)
    return [*BELOW, *between, *ABOVE, *ASIDE]


def summary(room: str) -> str:
    """Return the first line of a docstring, without importing what it is about."""
    source = Path(find_spec(f"attlas.{room}").origin).read_text(encoding="utf-8")  # type: ignore[union-attr, arg-type]
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def write(app: Sphinx) -> None:
    """Write the pages of the reference."""
    write_all(Path(app.srcdir) / "api", pages())


def write_all(folder: Path, wanted: dict[str, str]) -> None:
    """Write the files that are not there as they should be, and remove all others from the folder."""
    folder.mkdir(exist_ok=True)
    for name, text in wanted.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            unfinished = folder / f".{name}.{os.getpid()}"
            unfinished.write_text(text, encoding="utf-8")
            os.replace(unfinished, folder / name)  # another build may be reading
    for path in set(folder.glob("[!.]*")) - {folder / name for name in wanted}:
        path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when a build begins."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
