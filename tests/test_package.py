"""The project as a newcomer and a packager see it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import attlas
from attlas.claims import doors

ROOT = Path(__file__).parent.parent
HEAVY = ("numpy", "scipy", "numba", "dask", "distributed", "dash", "plotly", "matplotlib", "sklearn", "pandas",
         "xarray", "pydantic", "sqlite3", "jinja2")  # fmt: skip


def modules_after(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_import_is_light():
    loaded = modules_after("import attlas")
    assert "attlas" in loaded
    assert not loaded.intersection(HEAVY)


def test_help_is_light():
    code = "import sys, attlas.cli; sys.argv = ['attlas', '--help']\ntry:\n attlas.cli.main()\nexcept SystemExit: pass"
    loaded = modules_after(code)
    assert "typer" in loaded
    assert not loaded.intersection(HEAVY)


def test_claims_are_found_without_drawing():
    assert "matplotlib" not in modules_after("import attlas.claims; attlas.claims.find()")


def test_every_room_opens_and_others_are_refused():
    for room in attlas.__all__:
        assert getattr(attlas, room)
    with pytest.raises(AttributeError, match="its rooms are"):
        attlas.kitchen  # noqa: B018


def test_claims_of_a_door_open_it_and_its_parents_alone():
    """A door with no mathematics of its own and no parent looks through every door; the framework of claims opens none.

    The import contracts of pyproject.toml say the rest, without naming doors.
    """
    graph = grimp.build_graph("attlas", cache_dir=None)
    for module in graph.find_descendants("attlas.claims"):
        key = module.split(".")[2]
        if key in doors() and doors()[key].parent is None and key not in attlas.__all__:
            continue
        family, at = set(), key
        while at in doors():
            family, at = family | {at}, doors()[at].parent
        opened = {name.removeprefix("attlas.claims.") for name in graph.find_modules_directly_imported_by(module)}
        opened = {name.removeprefix("attlas.").split(".")[0] for name in opened}
        assert opened & doors().keys() <= family, module


def test_versions_agree():
    assert f'version = "{attlas.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {attlas.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {attlas.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_lock_pins_everything_and_names_no_address():
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and line[0] != "#"]
    assert len(lines) > 50
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[^\s/:]+", line), line


def test_cited_keys_exist():
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "src/attlas/claims/references.bib").read_text()))
    cited = set()
    for file in (ROOT / "src").rglob("*.py"):
        cited |= set(re.findall(r"\b([a-z]+(?:19|20)\d\d[a-z]+)\b", file.read_text()))
    assert {"fu2023random", "chen2024provably", "boncoraglio2025bayes"} <= cited
    assert cited <= known


RUN_ALL = """
import sys
for block in sys.argv[1:]:
    print(block)
    exec(compile(block, "block", "exec"), {"__name__": "__main__"})
"""


PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python\n" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_of_the_pages_runs(tmp_path, page):
    """In one folder and one process, each block with names of its own.

    A block that begins with the name of a file is that file; it runs as a test if that is what its name says.
    """
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    files = {name[1]: block for block in blocks if (name := re.match(r"# (\w+\.py)\n", block))}
    for name, block in files.items():
        (tmp_path / name).write_text(block)
    commands = [["-m", "pytest", "-q", name] if name.startswith("test_") else [name] for name in files]
    commands.append(["-c", RUN_ALL, *(block for block in blocks if block not in files.values())])
    for command in commands:
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_relative_links_of_the_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
