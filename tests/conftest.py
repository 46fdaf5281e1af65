import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from attlas.store import Record, Store, encode

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")

TESTS = Path(__file__).parent
NEEDS = {  # what tests need of the extras; where it is not installed, they are left out, and the header says so
    "typer": ["cli/*", "test_toy_door.py", "attack/*"],
    "matplotlib": ["report/*", "claims/*", "explorer/*", "test_examples.py"],
    "jinja2": ["report/*", "explorer/*"],
    "dash": ["explorer/*"],
    "dask": ["lab/*"],
    "pyarrow": ["store/test_export.py"],
    "playwright": ["*/test_browser.py"],
    "sphinx": ["test_docs.py", "test_docstrings.py"],
    "grimp": ["test_package.py", "test_doors.py"],
}
MISSING = [name for name in NEEDS if importlib.util.find_spec(name) is None]
collect_ignore_glob = [pattern for name in MISSING for pattern in NEEDS[name]]


def pytest_report_header():
    return f"left out, for want of {', '.join(MISSING)}: {', '.join(collect_ignore_glob)}" if MISSING else None


@pytest.fixture
def fast(monkeypatch, tmp_path):
    """Make the claim test.fast known to this process and to those it starts; return the log of its computations."""
    log = tmp_path / "computed.log"
    log.touch()
    monkeypatch.setenv("ATTLAS_CLAIMS", "fast_claim")
    monkeypatch.setenv("ATTLAS_TEST_LOG", str(log))
    monkeypatch.setenv("ATTLAS_TEST_DEADLY", str(tmp_path / "deadly"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")])))
    monkeypatch.syspath_prepend(str(TESTS))
    return log


@pytest.fixture
def attlas(tmp_path):
    """Run the command line in an empty folder."""

    def run(*arguments, **options):
        command = [sys.executable, "-m", "attlas", *map(str, arguments)]
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300, "env": os.environ} | options
        return subprocess.run(command, check=False, **options)

    return run


@pytest.fixture
def attlas_here(tmp_path, monkeypatch, capfd):
    """Run the command line in an empty folder and in this process, which has imported everything already."""
    from attlas.cli import main

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["attlas", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(sys.argv, end.value.code or 0, out, err)

    return run


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium, without a window; it asks nothing of any network on its own."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium is installed: chromium or google-chrome")
    flags = ["no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update", "disable-sync"]
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, headless=True, args=[f"--{flag}" for flag in flags])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def grave():
    """Return a function: the serious and critical faults of access that axe finds on a page."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()

    def found(page):
        every = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        worst = [each for each in every if each["impact"] in ("serious", "critical")]
        return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in worst]

    return found


def study(name):
    """Return a script of `studies/` as a module."""
    path = TESTS.parent / "studies" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"studies_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def nothing_shipped(monkeypatch):
    """No results come with attlas, whose figures would take a minute to draw."""
    shipped = importlib.import_module("attlas.lab.shipped")  # whose name in its package is a function
    monkeypatch.setattr(shipped, "SUFFIX", ".none")
    shipped._records.cache_clear()
    yield
    shipped._records.cache_clear()


def record(i=0, **result):
    return Record("test.made", 1, {"i": i}, 0, encode(result or {"x": float(i)}), 0.5, {"attlas": "0", "numpy": "2"})


@pytest.fixture
def filled(tmp_path):
    """A store of 60 results, some of several pages."""
    import numpy as np

    path = tmp_path / "filled.db"
    with Store(path) as store:
        for i in range(60):
            store.put(record(i, x=np.full((3, 400, 1500)[i % 3], float(i)), label=f"result {i}"))
    return path
