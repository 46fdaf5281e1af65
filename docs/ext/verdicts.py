"""The verdicts in the documentation: made of the results that come with attlas, so that prose and store cannot differ."""

import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attlas import lab
from attlas.claims import names


class Claims(SphinxDirective):
    """``{claims} door`` lists the claims of a door: what each says, its verdict, how often repeated, and what was found."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        self.env.note_dependency(str(resources.files("attlas.claims").joinpath("registered.json")))
        items = nodes.bullet_list()
        for entry in judged(self.arguments[0]):
            verdict = f"{entry.repeated or entry.status}" + (f" (margin: {entry.margin})" if entry.margin else "")
            paragraph = nodes.paragraph()
            paragraph += nodes.literal("", entry.claim.id)
            paragraph += set_words(f": {entry.claim.statement} ")
            paragraph += nodes.strong("", verdict)
            if entry.verdict:
                said = entry.claim.found(entry.verdict)
                paragraph += set_words(
                    f": {said[0].lower() if said.split()[0].istitle() else said[0]}{said[1:].rstrip('.')}."
                )
            items += nodes.list_item("", paragraph)
        return [items]


def set_words(text: str) -> list[nodes.Node]:
    """Return a sentence, in which what stands between dollar signs is a formula."""
    parts = re.split(r"\$([^$]+)\$", text)
    return [nodes.math("", part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts)]


@cache
def judged(door: str) -> list[lab.Judged]:
    """Return what the results that come with attlas say of the claims of a door: at the full tier where there is one."""
    ids = [name for name in names() if name.split(".")[0] == door]
    none = Path("no-such-store.db")
    large = {e.claim.id: e for e in lab.verdicts(ids, "full", store=none, shipped=True, repeats=True) if e.verdict}
    rest = [name for name in ids if name not in large]
    small = lab.verdicts(rest, "quick", store=none, shipped=True, repeats=True) if rest else []
    every = large | {e.claim.id: e for e in small}
    return [every[name] for name in ids]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``claims``."""
    app.add_directive("claims", Claims)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
