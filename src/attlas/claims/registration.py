"""Registered designs: what a claim measures and how it is judged, fixed before its verdict is looked at.

``registered.json`` holds, for every claim, its version, a digest of its settings and seeds at both tiers, the level, a
digest of the code that measures and judges, and why it is so. A test compares it with the code. Whoever changes a design
raises the version of the claim and registers it anew::

    python -m attlas.claims.registration aim.width "four sizes instead of three: the law 1/d can now fail"

The code that all claims share, from estimates to verdicts, has an entry of its own, ``frame``, which is registered likewise
and leaves the versions of claims as they are.
"""

import ast
import hashlib
import importlib
import inspect
import io
import json
import sys
import tokenize
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from attlas.claims.claim import Claim
from attlas.claims.estimate import LEVEL
from attlas.claims.registry import find, names
from attlas.errors import InputError

FILE = "registered.json"
ROOM = "attlas.claims."
# what turns the tests of every claim into verdicts
JUDGES = (ROOM + "estimate", ROOM + "verdict", ROOM + "claim", "attlas.numerics.intervals")
FRAMES = {*JUDGES, *(ROOM + name for name in ("mutation", "series", "figure", "finding", "learners", "lettering"))}
FRAME = "frame"  # its entry in the file


@cache
def registered() -> dict[str, dict[str, Any]]:
    """Return the registered designs by the ids of their claims."""
    text = resources.files("attlas.claims").joinpath(FILE).read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def design(claim: Claim[Any]) -> dict[str, Any]:
    """Return what is registered of a claim: version, tiers, level, and digests of what measures and judges."""
    tiers: dict[str, Any] = {
        tier: {
            "settings": len(sweep.points),
            "points": sum(count for _, count in sweep),
            "decides": sweep.decides,
            "digest": _digest([[point.model_dump(mode="json"), count] for point, count in sweep]),
        }
        for tier, sweep in claim.tiers.items()
    }
    parts = {part: getattr(claim, part) for part in ("measure", "judge")}
    code = {part: _digest(_source(what.__module__, what.__name__)) for part, what in parts.items()}
    mutations = _digest([[each.name, each.refuted_at, *each.sizes] for each in claim.mutations])
    told = {"absent": list(claim.absent), "mutations": mutations}
    return {"version": claim.version, "level": LEVEL, "unfinished": claim.unfinished.value, **told, **tiers, **code}


def frame() -> str:
    """Return a digest of the code that turns tests into verdicts, which all claims share."""
    return _digest(["".join("".join(_parsed(name)[0]).split()) for name in JUDGES])


def register_frame(why: str) -> None:
    """Write the digest of the shared code; claims keep their versions, whoever changes it says why."""
    if not why.strip():
        raise InputError("say in a sentence why the shared code is as it is")
    history = registered().get(FRAME, {}).get("why", {})
    number = str(len(history) + (registered().get(FRAME, {}).get("digest") != frame()))
    _write(registered() | {FRAME: {"digest": frame(), "why": history | {number: why}}})


def changes(claim: Claim[Any]) -> list[str]:
    """Return what of a claim is not as it was registered; nothing if all is."""
    then, now = registered().get(claim.id), design(claim)
    if then is None:
        return ["it is not registered"]
    return [name for name in now if now[name] != then.get(name)]


def register(claim: Claim[Any], why: str) -> None:
    """Write the design of a claim into the file beside the code; one that changed needs a new version."""
    then, now = registered().get(claim.id), design(claim)
    if not why.strip():
        raise InputError("say in a sentence why the design is as it is")
    if then is not None and changes(claim) and then["version"] >= claim.version:
        raise InputError(
            f"{claim.id} differs from its registered design ({', '.join(changes(claim))}): raise its version first"
        )
    history = (then or {}).get("why", {}) | {str(claim.version): why}
    _write(registered() | {claim.id: now | {"why": history}})


def _write(entries: dict[str, dict[str, Any]]) -> None:
    order = [name for name in (FRAME, *names()) if name in entries]
    text = json.dumps({name: entries[name] for name in order}, indent=1, ensure_ascii=False)
    Path(__file__).with_name(FILE).write_text(text + "\n", encoding="utf-8")
    registered.cache_clear()


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _source(module: str, name: str) -> list[str]:
    """Return the code that a function of a claim reaches in the claim's own module and the kits, without comments."""
    found: dict[tuple[str, str], str] = {}
    todo = [(module, name)]
    while todo:
        place = todo.pop()
        if place in found:
            continue
        lines, definitions, imported = _parsed(place[0])
        node = definitions.get(place[1])
        if node is None:
            if place[1] in imported and ".".join(imported[place[1]]) not in sys.modules:
                todo.append(imported[place[1]])
            continue
        found[place] = "".join("".join(lines[node.lineno - 1 : node.end_lineno]).split())
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                todo.append((place[0], part.id))
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                home, name = imported.get(part.value.id, ("", ""))
                if f"{home}.{name}" in sys.modules:  # a kit that is imported whole, and used as kit.name
                    todo.append((f"{home}.{name}", part.attr))
    return [found[place] for place in sorted(found)]


def _begun(text: str) -> list[tuple[int, int]]:
    """Return row and column where each statement of a text, or its first line, begins."""
    silent = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found, begins = [], True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if begins and token.type not in silent:
            found.append(token.start)
            begins = False
        begins = begins or token.type == tokenize.NEWLINE
    return found


@cache
def _parsed(module: str) -> tuple[list[str], dict[str, ast.stmt], dict[str, tuple[str, str]]]:
    """Return the lines of a module without comments and docstrings, its definitions, and its imports from claims."""
    text = inspect.getsource(importlib.import_module(module))
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + "\n"
    tree = ast.parse(text)
    for part in ast.walk(tree):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            first = part.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [""] * ((first.end_lineno or first.lineno) - first.lineno + 1)
    for row, column in _begun(text):
        if lines[row - 1].strip():  # how deep it is indented is what it means
            lines[row - 1] = f"{column}:{lines[row - 1]}"
    definitions: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign):
            parts = [part for target in node.targets for part in ast.walk(target)]
            definitions |= {part.id: node for part in parts if isinstance(part, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            definitions[node.target.id] = node
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM) and node.module not in FRAMES:
            imported |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
    definitions.pop("CLAIM", None)  # words may change; tiers are digested by what they hold
    return lines, definitions, imported


def main(arguments: list[str]) -> None:
    """Register a claim: its id, and why its design is as it is."""
    if len(arguments) != 2:
        raise SystemExit('python -m attlas.claims.registration CLAIM "why"')
    try:
        if arguments[0] == FRAME:
            register_frame(arguments[1])
            return
        (claim,) = find([arguments[0]])
        register(claim, arguments[1])
    except InputError as error:
        raise SystemExit(f"attlas: {error}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
