"""What commands do with stores and words that somebody else made."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attlas.cli
from attlas.store import Record, Store, encode

from ..store.test_hostile import planted

READERS = [
    ("verdicts", "test.fast"),
    ("show", "test.fast"),
    ("power", "test.fast"),
    ("list",),
    ("report",),
    ("explore", "--port", "0"),
    ("export", "a.csv"),
    ("store", "check"),
    ("run", "test.fast"),
    ("run", "test.fast", "--dry-run"),
]


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_every_command_refuses_what_is_no_store(attlas_here, fast, tmp_path, monkeypatch, command):
    """Also where it has nothing in it: pipes and devices have no size."""
    monkeypatch.setattr("attlas.explorer.server.application", lambda *_: pytest.fail("it was served"))
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "empty.db").touch()
    os.link(tmp_path / "empty.db", tmp_path / "other.db")
    (tmp_path / "beside.db").touch()
    os.mkfifo(tmp_path / "beside.db-wal")
    for store, why in (
        ("pipe.db", "is no plain file"),
        ("/dev/null", "is no plain file"),
        ("empty.db", "has 2 names (hard links)"),
        ("beside.db", "beside it is no plain file"),
    ):
        done = attlas_here(*command, "--store", store)
        assert done.returncode == 2, (store, done.stdout, done.stderr)
        assert why in done.stderr


ESCAPES = "\x1b]0;title\x07\x1b[31m"


def test_no_escape_sequence_of_a_store_reaches_the_terminal(attlas_here, fast, tmp_path, monkeypatch):
    """Whatever the check of a record lets through: here, everything."""
    monkeypatch.setattr("attlas.store.record._is_name", lambda _: True, raising=False)
    from attlas.claims import find
    from attlas.lab import plan

    (claim,) = find(["test.fast"])
    cells = plan([claim], "full")
    with Store(tmp_path / "attlas.db") as store:
        for number, cell in enumerate(cells):
            versions = {"attlas": "0", "numpy": f"{number % 2}{ESCAPES}"}
            payload = encode({"x": 1.0, "i": cell.point["i"]})
            store.put(Record("test.fast", 1, cell.point, cell.seed, payload, 0.1, versions))
    for command in (("run",), ("run", "--same-versions"), ("show",), ("verdicts",)):
        done = attlas_here(command[0], "test.fast", "--full", *command[1:])
        said = done.stdout + done.stderr
        assert "\\x1b]0;title" in re.sub(r"\s", "", said)
        assert not set(said) & {"\x1b", "\x07"}


def test_no_escape_sequence_of_a_damaged_result_reaches_the_terminal(attlas_here, tmp_path):
    planted(tmp_path / "attlas.db", claim=f"evil{ESCAPES}")
    for command in (("store", "check"), ("export", "a.csv"), ("store", "copy", "attlas.db", "b.db")):
        done = attlas_here(*command)
        assert done.returncode == 3
        assert "evil" in done.stdout + done.stderr
        assert not set(done.stdout + done.stderr) & {"\x1b", "\x07"}


def test_all_that_commands_print_is_cleaned_in_one_place():
    for path in Path(attlas.cli.__file__).parent.glob("*.py"):
        if path.name != "printing.py":
            assert not re.search(r"typer\.(s?echo|secho)|\bprint\(", path.read_text()), path.name


@pytest.mark.parametrize("changes", [{"versions": "not json"}, {"versions": "[]"}, {"claim": "../../evil"}])
def test_what_a_refusal_advises_helps(attlas_here, fast, tmp_path, changes):
    for advice in (("run", "test.fast", "--full", "--workers", "1"), ("store", "repair")):
        (tmp_path / "attlas.db").unlink(missing_ok=True)
        planted(tmp_path / "attlas.db", **changes)
        refused = attlas_here("export", "a.csv")
        assert refused.returncode == 3
        assert "`attlas store repair` removes them, `attlas run` then computes them again" in refused.stderr
        done = attlas_here(*advice)
        assert done.returncode == 0
        assert "was damaged: its 0 intact results are kept" in done.stdout + done.stderr
        assert attlas_here("store", "check").returncode == 0
    assert attlas_here("store", "repair").stdout == "attlas.db: every result is intact, nothing to repair\n"


def without(module, *arguments, folder):
    """Run a command where a module is not installed."""
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = {list(arguments)!r}\n"
    code += "from attlas.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)


def test_the_core_alone_gives_versions_and_says_what_works(tmp_path):
    said = without("typer", "--version", folder=tmp_path)
    assert said.returncode == 0
    assert said.stdout.startswith("attlas 0.")
    assert " numpy 2." in said.stdout
    said = without("typer", "doctor", folder=tmp_path)
    assert said.returncode == 0
    assert re.search(r"^ok  core ", said.stdout, re.MULTILINE)
    assert re.search(r'^--  \[lab\] +pip install "attlas\[lab\]" brings typer', said.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "extras"), [("report", "lab,report"), ("explore", "lab,explorer,report"), ("run", "lab")]
)
def test_without_the_commands_every_extra_that_one_needs_is_named_at_once(tmp_path, command, extras):
    said = without("typer", command, folder=tmp_path)
    assert said.returncode == 1
    assert f'pip install "attlas[{extras}]"' in said.stderr


@pytest.mark.parametrize(
    ("command", "module", "extra"), [("report", "matplotlib", "report"), ("explore", "dash", "explorer")]
)
def test_a_missing_extra_is_named_before_anything_is_judged(tmp_path, monkeypatch, attlas_here, command, module, extra):
    monkeypatch.setattr("attlas.lab.verdicts", lambda *_, **__: pytest.fail("it judged first"))
    monkeypatch.setattr("attlas.explorer.serve", lambda *_: pytest.fail("it served first"))
    monkeypatch.setitem(sys.modules, module, None)
    said = attlas_here(command)
    assert said.returncode == 1
    assert said.stderr == f'attlas: this needs {module}: pip install "attlas[{extra}]"\n'


def test_a_setting_that_is_swept_twice_has_the_values_of_both(attlas_here, fast):
    for sweep, count in ((["i=4", "i=6"], 2), (["i=4,5", "i=6:9:4", "i=4"], 6)):
        swept = [word for text in sweep for word in ("--set", text)]
        said = attlas_here("run", "test.fast", "--full", *swept, "--dry-run")
        assert said.stdout.startswith(f"{count} points, ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--point-timeout", "inf"], "point_timeout must be a finite number"),
        (["--point-timeout", "-1"], "point_timeout must be a finite number"),
        (["--store", "no/such/folder/a.db"], "there is no folder"),
        (["--same-versions"], "were computed with other versions"),
    ],
)
def test_a_dry_run_refuses_what_a_run_would(attlas_here, fast, tmp_path, options, message):
    from attlas.claims import find
    from attlas.lab import plan

    (cell, *_) = plan(find(["test.fast"]), "full")
    with Store(tmp_path / "attlas.db") as store:
        store.put(Record("test.fast", 1, cell.point, cell.seed, encode({"x": 1.0, "i": 0}), 0.1, {"numpy": "0.1"}))
    for more in ((), ("--dry-run",)):
        said = attlas_here("run", "test.fast", "--full", "--workers", "1", *options, *more)
        assert said.returncode == 2
        assert message in said.stderr
