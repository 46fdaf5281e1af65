"""The project as a newcomer and a packager see it."""

import json
import re
import subprocess
import sys
import tomllib
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


def test_lock_pins_everything_by_hash_and_names_no_address():
    lock = (ROOT / "requirements.lock").read_text()
    entries = re.sub(r"\\\n\s*", "", "".join(f"{line}\n" for line in lock.splitlines() if line and line[0] != "#"))
    lines = entries.strip().splitlines()
    assert len(lines) > 50
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[^\s/:]+( *--hash=sha256:[0-9a-f]{64})+", line), line
    assert "://" not in lock
    assert not re.search(
        r"^(torch|nvidia)", lock, re.MULTILINE
    )  # an extra that is installed by name, where it is wanted


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {"numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "xarray", "pydantic"}
BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in BLOCKED:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)

sys.meta_path.insert(0, Blocker())
"""


def without_extras(code):
    """Run code where everything that is installed here, but the core and what it brings, cannot be imported."""
    from importlib import metadata

    own, asked = {"attlas"}, list(CORE)
    while asked:
        name = re.sub(r"[-_.]+", "-", asked.pop()).lower()
        if name not in own:
            own.add(name)
            needs = [
                each for each in metadata.requires(name) or () if "extra ==" not in each and "platform" not in each
            ]
            asked += [re.match(r"[\w.-]+", each)[0] for each in needs]
    held = metadata.packages_distributions().items()
    blocked = [name for name, owners in held if not own & {re.sub(r"[-_.]+", "-", each).lower() for each in owners}]
    command = [sys.executable, "-c", f"BLOCKED = {blocked!r}\n{BLOCKED}\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_core_is_what_the_mathematics_needs():
    assert {re.match(r"[\w-]+", each)[0] for each in PROJECT["dependencies"]} == CORE
    rooms = [room for room in attlas.__all__ if room not in ("__version__", "cli", "explorer", "report", "results")]
    code = f"import importlib\nfor room in {rooms!r}: importlib.import_module('attlas.' + room)\n"
    code += "from attlas import aim, claims, features, lab\nfor name in features.__all__: getattr(features, name)\n"
    code += "print(len(claims.find()), aim.state_evolution(aim.Softmax(2), 0.1, 0.5).status)\n"
    code += "print(lab.verdicts(['features.invariance'], shipped=True)[0].status)"
    done = without_extras(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["converged", "supported"]


RECORD = "store.Record('a.b', 1, {}, 0, store.encode({'x': 1.0}), 0.1, {})"


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import sys, attlas.cli; sys.argv = ['attlas', 'list']; attlas.cli.main()", "lab"),
        ("from attlas import lab; lab.run(['features.invariance'], executor='slurm')", "slurm"),
        ("from attlas import lab; lab.run(['features.invariance'], executor='dask')", "lab"),
        ("from attlas import report", "report"),
        ("from attlas import explorer; explorer.serve()", "explorer"),
        (f"from attlas import store; store.export([{RECORD}], 'x.parquet')", "export"),
        (f"from attlas import store; store.export([{RECORD}], 'x.nc')", "export"),
    ],
)
def test_what_is_missing_is_named_by_its_extra(code, extra):
    done = without_extras(code)
    assert done.returncode
    assert f'pip install "attlas[{extra}]"' in done.stderr


def test_extras_bring_what_their_modules_are_called():
    from importlib import metadata

    from attlas.extras import EXTRAS

    brought = metadata.packages_distributions()
    for extra, modules in EXTRAS.items():
        named = {re.match(r"[\w-]+", each)[0].lower() for each in PROJECT["optional-dependencies"][extra]}
        for module in modules:
            owners = {name.lower() for name in brought[module]}
            assert owners & named or module in ("flask", "markupsafe"), (
                extra,
                module,
            )  # these come with dash and jinja2
    everything = set().union(*(PROJECT["optional-dependencies"][extra] for extra in EXTRAS))
    assert everything == set(PROJECT["optional-dependencies"]["all"])


def test_the_source_distribution_is_complete(tmp_path):
    import tarfile

    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    tracked = {name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()}
    assert tracked - held <= {".gitignore"}


def test_a_wheel_brings_what_pages_are_made_of(tmp_path):
    import zipfile

    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        held = set(archive.namelist())
    for name in ("fonts/stix-two-math.woff2", "fonts/OFL.txt", "templates/attlas.js", "templates/index.html"):
        assert f"attlas/report/{name}" in held


TYPED = """
import numpy as np
from attlas import aim, lab, store
from attlas.errors import InputError
from attlas.numerics import Solution

found = aim.state_evolution(aim.Softmax(tokens=2), alpha=0.1, rho=0.5)
error: float = float(found.value)
steps: int = found.steps
S: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = aim.teacher(4, 0.5, 0)
summary: lab.Summary = lab.run(["features.invariance"], store="x.db", workers=1)
names: list[str] = [record.claim for record in store.read("x.db")]
try:
    aim.teacher(-1, 0.5, 0)
except InputError as refused:
    code: int = refused.exit_code
"""


def test_types_are_what_a_typed_program_sees(tmp_path):
    """A user's program under mypy --strict, against the package as it is installed; and a wrong one, which is refused."""
    from mypy import api

    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(TYPED + "wrong: str = found.steps\naim.teacher(rho='x', d=3)\n")
    options = ["--strict", "--no-error-summary", "--no-incremental", "--cache-dir", str(tmp_path / "cache")]
    said, _, code = api.run([*options, str(tmp_path / "right.py"), str(tmp_path / "wrong.py")])
    assert "right.py" not in said, said
    assert code == 1
    assert said.count("wrong.py") >= 2


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
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            made = link.removeprefix("docs/").startswith("gallery/")  # by the documentation, from an example
            target = ROOT / "examples" / f"{Path(link).stem}.py" if made else page.parent / link
            assert target.exists(), f"{page.name}: {link}"
