"""The reference of a package: everything that it makes public, found when the pages are built, so that no list can rot.

Docstrings here are written to be read as text: bars are norms, stars are products, an indented line is a formula. They are
turned into reStructuredText on the way.
"""

import importlib
import inspect
import re
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from formulas import tex
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

THEIRS = [*(f"set_{name}_request" for name in ("fit", "predict", "score", "transform")), "model_config"]  # not ours
CLASS = ["   :members:", "   :member-order: bysource", f"   :exclude-members: {', '.join(THEIRS)}"]
MARKED = re.compile(r"(``.+?``|`[^`]+`|(?<!\w)\*\w[\w ]*\w\*(?!\w))")  # what a docstring itself marks: code, emphasis


class PublicNames(SphinxDirective):
    """``.. public_names:: attlas.aim`` documents every public name of a package, under the name it is imported by."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return what autodoc makes of each name."""
        module = importlib.import_module(self.arguments[0])
        names = public_names(module)
        lines = [*summary(module, names), *(line for name in names for line in [*directive(module, name), ""])]
        found = nodes.Element()
        self.state.nested_parse(StringList(lines, source=module.__name__), 0, found, match_titles=True)
        return found.children


def public_names(module: ModuleType) -> list[str]:
    """Return ``__all__`` of a package, or else what it took from its own files: functions, then classes."""
    found = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if own(module, name, value)
    ]
    return sorted(found, key=lambda name: (inspect.isclass(getattr(module, name)), name.lower()))


def summary(module: ModuleType, names: list[str]) -> list[str]:
    """Return a table of functions and one of classes: their names, and the first sentence about each."""
    lines: list[str] = []
    for title, kind in (("Functions", inspect.isroutine), ("Classes", inspect.isclass)):
        own = [name for name in names if kind(getattr(module, name)) and inspect.getdoc(getattr(module, name))]
        if own:
            lines += [f".. list-table:: {title}", "   :widths: 30 70", "   :class: summary", ""]
        for name in own:
            first = escaped((inspect.getdoc(getattr(module, name)) or "").partition("\n\n")[0].replace("\n", " "))
            lines += [f"   * - :py:obj:`~{module.__name__}.{name}`", f"     - {first}"]
        lines += [""]
    return lines


def own(module: ModuleType, name: str, value: Any) -> bool:
    """Return whether a name without an underscore is something of the package, not a file of it."""
    if name[0] == "_" or inspect.ismodule(value):
        return False
    return not callable(value) or value.__module__.startswith(("typing", "types", module.__name__))


def directive(module: ModuleType, name: str) -> list[str]:
    """Return the lines that document one name."""
    value, path = getattr(module, name), f"{module.__name__}.{name}"
    if inspect.isclass(value):
        return [f".. autoclass:: {path}", *CLASS]
    if inspect.isfunction(value):
        return [f".. autofunction:: {path}"]
    if inspect.ismodule(value):
        return [f".. automodule:: {path}", *CLASS]
    return [f".. py:data:: {path}", "", f"   ``{re.sub('typing[.]|_generator[.]', '', str(value))}``"]


def as_rst(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Show formulas as they stand, and take bars, stars and a last underscore for what they are."""
    found: list[str] = []
    formula = False
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        above = next((other for other in reversed(lines[:i]) if other.strip()), "")
        base = len(above) - len(above.lstrip())
        if line.strip() and not formula and i and not lines[i - 1].strip() and indent > base:
            formula = True
            found += [" " * base + "::", ""]
        elif line.strip() and formula and indent < 4 + least(found):
            formula = False
        found.append(line if formula or line.lstrip().startswith((">>>", "...")) else escaped(line))
    lines[:] = typeset(found)


def typeset(lines: list[str]) -> list[str]:
    """Return the lines with blocks of formulas set, where all of a block can be."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if lines[at].strip() == "::":
            inside = len(lines[at]) - 2
            while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > inside):
                end += 1
            set_ = [tex(line) for line in lines[at:end] if line.strip() not in ("", "::")]
            if all(set_):
                found += [one for formula in set_ for one in (f"{' ' * inside}.. math:: {formula}", "")]
                at = end
                continue
        found += lines[at:end]
        at = end
    return found


def least(found: list[str]) -> int:
    """Return the indentation of the last line "::"."""
    return next(len(line) - 2 for line in reversed(found) if line.strip() == "::")


def escaped(line: str) -> str:
    """Return a line of text in which only what it marks itself is marked."""
    parts = MARKED.split(line)
    parts[::2] = [re.sub(r"([|*])|(?<=\w)(_)(?!\w)", r"\\\1\2", part) for part in parts[::2]]
    return "".join(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``public_names``."""
    app.add_directive("public_names", PublicNames)
    app.connect("autodoc-process-docstring", as_rst, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
