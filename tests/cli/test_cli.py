"""The command line as a person uses it: what is printed, which code is returned, what is left behind."""

import json
import os
import re
import sqlite3
from pathlib import Path

import pytest

from attlas.claims import door, doors, find
from attlas.cli.mounted import tables
from attlas.store import check, read

FAST = ("run", "test.fast", "--full", "--workers", "1")


def test_help_names_every_command_and_the_exit_codes(attlas_here):
    done = attlas_here("--help")
    assert done.returncode == 0
    for table in tables("COMMANDS").values():
        for name in table:
            assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE)
            assert attlas_here(name, "--help").returncode == 0
    assert "Exit codes: 0 done" in done.stdout
    assert attlas_here("--version").stdout.startswith("attlas 0.")


def test_predictions_stand_under_the_titles_of_their_doors(attlas_here):
    said = attlas_here("predict", "--help").stdout
    places = [said.index(f"\n{found.title}:\n") for key, found in doors().items() if key in tables("PREDICT")]
    assert places == sorted(places)
    for key, table in tables("PREDICT").items():
        section = said.partition(f"\n{door(key).title}:\n")[2].partition("\n\n")[0]
        assert all(re.search(rf"^  {name} ", section, re.MULTILINE) for name in table)


def test_no_two_modules_name_the_same_command():
    for kind in ("COMMANDS", "PREDICT"):
        found = [name for table in tables(kind).values() for name in table]
        assert len(found) == len(set(found)) > 0


def test_list_and_show(attlas, tmp_path):
    said = attlas("list").stdout
    assert not re.search(r"\b(not run|unfinished|damaged)  ", said)  # nothing was run here: these came with attlas
    rows = [f"\n {found.title} " for found in doors().values()]
    assert [said.index(row) for row in rows] == sorted(said.index(row) for row in rows)
    first = said.index(rows[0])
    assert first < said.index("features.invariance") < said.index(rows[1])
    shown = json.loads(attlas("show", "features.invariance", "--json").stdout)
    assert shown["rerun"] == "attlas run features.invariance --quick --seed 0"
    told = attlas("show", "features.invariance").stdout
    assert "30 points; came with attlas: 30/30" in told
    assert "Verdict (results that came with attlas): supported" in told
    assert "\nDesign: " in told
    assert "\nWould not see: " in told
    assert "Verdict: not run" in attlas("show", "features.invariance", "--seed", "999").stdout
    assert not list(tmp_path.iterdir())


def test_run_then_run_again(attlas, fast, tmp_path):
    first, second = attlas(*FAST), attlas(*FAST)
    assert first.returncode == second.returncode == 0
    assert "20 points computed, 0 were in attlas.db already" in first.stderr
    assert "0 points computed, 20 were in attlas.db already" in second.stderr
    assert "supported" in first.stdout
    assert len(fast.read_text().split()) == 20
    assert "20 of 20 points" in first.stderr  # plain lines, since this is no terminal
    assert "\x1b" not in first.stderr + first.stdout


def test_run_without_a_claim_runs_them_all(attlas):
    planned = json.loads(attlas("run", "--dry-run", "--json").stdout)["planned"]
    sweeps = [claim.tiers["quick"] for claim in find()]
    assert planned == sum(count for sweep in sweeps for _, count in sweep)


def test_json_of_a_run(attlas, fast):
    done = json.loads(attlas(*FAST, "--json", "--set", "i=0:4:3").stdout)
    assert done["planned"] == done["computed"] == 3
    assert done["verdicts"][0]["status"] == "supported"
    assert done["verdicts"][0]["numbers"] == {"n": 3}


def test_dry_run_says_points_time_and_memory_and_does_nothing(attlas, fast, tmp_path):
    done = attlas(*FAST, "--dry-run")
    assert "20 points, 0 of them in attlas.db already" in done.stdout
    assert "expected: about 0 s, 1 MB of memory" in done.stdout
    assert not (tmp_path / "attlas.db").exists()
    script = attlas("run", "--executor", "slurm", "--slurm", "queue=long", "--dry-run").stdout
    assert "#SBATCH -p long" in script


def test_strict(attlas, fast):
    assert attlas("verdicts", "test.fast", "--full").returncode == 0
    assert attlas("verdicts", "test.fast", "--full", "--strict").returncode == 1
    assert attlas(*FAST, "--strict").returncode == 0
    assert attlas("verdicts", "test.fast", "--full", "--strict").returncode == 0


def test_a_refuted_claim_is_exit_1_only_when_strict(attlas, fast, monkeypatch, tmp_path):
    (tmp_path / "wrong_claim.py").write_text(
        "import dataclasses, fast_claim\nfrom attlas.claims import Verdict, Outcome\n"
        "CLAIM = dataclasses.replace(fast_claim.CLAIM, id='test.wrong',"
        " judge=lambda m: Verdict(Outcome.REFUTED, 'no', -1.0, 'points'))\n"
    )
    monkeypatch.setenv("ATTLAS_CLAIMS", "wrong_claim")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    run = ("run", "test.wrong", "--full", "--workers", "1")
    assert attlas(*run).returncode == 0
    done = attlas(*run, "--strict")
    assert done.returncode == 1
    assert "refuted" in done.stdout


def test_a_failed_point_is_exit_1(attlas, fast):
    done = attlas(*FAST, "--set", "fails=true", "--set", "i=0,1")
    assert done.returncode == 1
    assert "2 points failed; run the same command again to retry them" in done.stderr


def test_export(attlas, fast, tmp_path):
    attlas(*FAST)
    for name in ("a.csv", "a.parquet", "a.nc"):
        done = attlas("export", name, "test.fast")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).stat().st_size > 100
    assert json.loads(attlas("export", "b.csv", "--json").stdout) == {"file": "b.csv", "results": 20}


def test_report(attlas, attlas_here, fast, nothing_shipped, tmp_path):
    attlas(*FAST)
    done = attlas_here("report", "--full", "--workers", "1", "--out", "site", "--address", "https://example.org/atlas")
    assert done.stdout == f"The atlas is at {(tmp_path / 'site' / 'index.html').as_uri()}\n"
    assert 'content="https://example.org/atlas/test.fast.png"' in (tmp_path / "site" / "test.fast.html").read_text()


def test_store_check(attlas, fast, tmp_path):
    attlas(*FAST)
    done = attlas("store", "check")
    assert done.returncode == 0
    assert "20 results are intact, 0 damaged" in done.stdout
    whole = {r.key: r.payload for r in read(tmp_path / "attlas.db")}
    data = bytearray((tmp_path / "attlas.db").read_bytes())
    victim = whole[sorted(whole)[0]]
    data[data.index(victim[400:1200]) + 300] ^= 4
    (tmp_path / "attlas.db").write_bytes(data)
    done = attlas("store", "check")
    assert done.returncode == 3
    assert f"damaged: test.fast {sorted(whole)[0]}: its payload does not match its SHA-256" in done.stdout
    assert "19 results are intact, 1 damaged" in done.stdout
    assert attlas("verdicts", "test.fast", "--full").returncode == 3
    assert attlas("export", "x.csv").returncode == 3
    assert not (tmp_path / "x.csv").exists()
    report = json.loads(attlas("store", "check", "--json").stdout)
    assert (report["good"], report["intact"], len(report["damaged"])) == (False, 19, 1)
    fast.write_bytes(b"")
    done = attlas(*FAST)
    assert done.returncode == 0
    assert "was damaged: its 19 intact results are kept" in done.stderr
    assert len(fast.read_text().split()) == 1  # just the damaged one
    assert {r.key: r.payload for r in read(tmp_path / "attlas.db")} == whole
    assert check(tmp_path / "attlas.db").good


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "features.invarience"], 2, "did you mean features.invariance?"),
        (["show", "nothing.at-all"], 2, "No claim 'nothing.at-all'; `attlas list` shows them all"),
        (["show", "features.at-all"], 2, "No claim 'features.at-all'; `attlas list` shows them all"),
        (["show", "aim.wdth"], 2, "did you mean aim.width?"),
        *[
            ([*command, "--store", "none.db"], 2, "there is no store here")
            for command in (["verdicts"], ["list"], ["show", "aim.width"], ["report"], ["power", "aim.width"])
        ],
        (["report", "aim.width"], 2, "name claims together with --set"),
        (["store", "copy", "none.db", "b.db"], 2, "there is no store here"),
        (["store", "merge", "a.db", "none.db"], 2, "there is no store here"),
        (["run", "test.fast", "--point-timeout", "0"], 2, "No claim"),
        (["run", "trained"], 2, "the claims of that door are trained.double-descent, trained.factorised"),
        (
            ["run", "features.invariance", "--executor", "serial", "--scheduler", "tcp://x:1", "--dry-run"],
            2,
            "a scheduler goes with the executor dask",
        ),
        (["predict", "softmax", "--diagram", "d.png"], 2, "--diagram needs two ranges"),
        (["predict", "trained", "--diagram", "d.png", "--alpha", "0.1:0.2:3"], 2, "--diagram needs two ranges"),
        (["run", "--seed", "-1"], 2, "--seed"),
        (["run", "--seed", "nan"], 2, "--seed"),
        (["run", "--workers", "0"], 2, "--workers"),
        (["run", "--workers", "-3"], 2, "--workers"),
        (["run", "--seeds", "0"], 2, "--seeds"),
        (["run", "aim.gaussian-indices", "--set", "d=1:2"], 2, "a range is START:STOP:COUNT"),
        (["run", "aim.gaussian-indices", "--set", "d=1:x:3"], 2, "a range is START:STOP:COUNT"),
        (["run", "aim.gaussian-indices", "--set", "d=10:20:1"], 2, "a count of at least 2"),
        (["run", "aim.gaussian-indices", "--set", "d"], 2, "write NAME=VALUE"),
        (["run", "aim.gaussian-indices", "--set", "d=-5"], 2, "greater than 0; got -5"),
        (["run", "aim.gaussian-indices", "--set", "d=16.5"], 2, "d: input should be a valid integer"),
        (["run", "aim.gaussian-indices", "--set", "rho=nan"], 2, "not a finite number"),
        (["run", "aim.gaussian-indices", "--set", "rho=inf"], 2, "not a finite number"),
        (["run", "aim.gaussian-indices", "--set", "size=3"], 2, "has no setting size"),
        (["run", "--executor", "threads"], 2, "--executor"),
        (["run", "--slurm", "queue=x"], 2, "--slurm goes with --executor slurm"),
        (["run", "--executor", "slurm", "--slurm", "queu=x", "--dry-run"], 2, "slurm setting queu"),
        (["run", "--executor", "slurm", "--slurm", "queue"], 2, "write NAME=VALUE"),
        (["run", "--scheduler", "tcp://127.0.0.1:9"], 2, "no Dask scheduler answers"),
        (["run", "--executor", "serial", "--scheduler", "tcp://127.0.0.1:9"], 2, "goes with the executor dask"),
        (["run", "--workers", "2", "--scheduler", "tcp://127.0.0.1:9"], 2, "--workers does not go with --scheduler"),
        (["run", "--workers", "2", "--executor", "serial"], 2, "--executor serial is one worker"),
        (["run", "--store", "."], 2, "is a folder"),
        (["run", "--store", "no/such/folder/a.db"], 2, "there is no folder"),
        (["run", "--store", "other.sqlite"], 3, "not an attlas store"),
        (["verdicts", "--store", "other.sqlite"], 3, "not an attlas store"),
        (["store", "check", "--store", "other.sqlite"], 3, "not an attlas store"),
        (["store", "check"], 2, "there is no store here"),
        (["export", "a.csv"], 2, "there is no store here"),
        (["report", "--out", "other.sqlite"], 2, "is a file"),
        (["fly"], 2, "No such command"),
        (["run", "--speed"], 2, "No such option"),
        *[
            ([*command, option, "1"], 2, f"No such option: {option}")  # some other command's
            for command, options in {
                ("list",): ["--workers", "--scheduler", "--strict"],
                ("show", "aim.width"): ["--scheduler"],
                ("verdicts",): ["--workers", "--scheduler"],
                ("export", "a.csv"): ["--seed", "--workers", "--scheduler", "--full"],
                ("report",): ["--scheduler"],
                ("explore",): ["--workers", "--scheduler"],
                ("store", "check"): ["--seed", "--workers", "--scheduler"],
            }.items()
            for option in options
        ],
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_nothing_is_written(attlas_here, tmp_path, arguments, code, message):
    db = sqlite3.connect(tmp_path / "other.sqlite")
    db.execute("CREATE TABLE contacts (name TEXT)")
    db.commit()
    db.close()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = attlas_here(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_sweep_has_a_verdict_and_a_page_of_its_own(attlas_here, fast, tmp_path):
    """Settings that nobody registered, shown by every command that shows a claim."""
    sweep = ("--set", "i=30:60:3", "--seeds", "2")
    assert attlas_here(*FAST, *sweep).returncode == 0
    shown = json.loads(attlas_here("show", "test.fast", "--full", "--json", *sweep).stdout)
    assert [point["i"] for point in shown["settings"]] == [30, 45, 60]
    assert (shown["status"], shown["stored"], shown["planned"]) == ("supported", 6, 6)
    assert shown["rerun"] == "attlas run test.fast --full --seed 0 --set i=30:60:3 --seeds 2"
    (judged,) = json.loads(attlas_here("verdicts", "test.fast", "--full", "--json", *sweep).stdout)
    assert judged["numbers"] == {"n": 6}
    (plain,) = json.loads(attlas_here("verdicts", "test.fast", "--full", "--json").stdout)
    assert plain["status"] == "not run"
    (page,) = json.loads(attlas_here("report", "test.fast", "--full", "--json", "--out", "site", *sweep).stdout)[
        "pages"
    ]
    text = (tmp_path / page).read_text()
    assert "<svg" in text
    assert "attlas run test.fast --full --seed 0 --set i=30:60:3 --seeds 2" in text
    assert "A sweep with settings of its own: <code>--set i=30:60:3 --seeds 2</code>" in text
    assert (tmp_path / page).with_suffix(".csv").exists()
    other = json.loads(attlas_here("report", "test.fast", "--full", "--json", "--sweep", "i=1", "--out", "site").stdout)
    assert other["pages"] != [page]
    seeds = attlas_here("report", "test.fast", "--full", "--json", "--seeds", "1", "--out", "site").stdout
    text = (tmp_path / json.loads(seeds)["pages"][0]).read_text()
    assert (
        "A sweep with settings of its own: <code>--seeds 1</code>" in text
    )  # not to be taken for the claim's own page


def test_show_tells_what_reproducing_takes(attlas_here, fast):
    attlas_here(*FAST)
    said = attlas_here("show", "test.fast", "--full", "--workers", "1").stdout
    assert "(about 0 s)" in said.replace("0.0", "0")
    assert re.search(r"To reproduce it from nothing: 20 points, about \d+ s, 1 MB of memory", said)


def test_json_has_one_form(attlas_here, fast, capfd):
    """Lists of claims are lists of the same objects; what JSON does not have is null."""
    from attlas.cli.printing import print_json

    attlas_here(*FAST)
    (listed,) = (e for e in json.loads(attlas_here("list", "--full", "--json").stdout) if e["claim"] == "test.fast")
    (judged,) = json.loads(attlas_here("verdicts", "test.fast", "--full", "--json").stdout)
    shown = json.loads(attlas_here("show", "test.fast", "--full", "--json").stdout)
    ran = json.loads(attlas_here(*FAST, "--json").stdout)["verdicts"][0]
    assert listed.keys() == judged.keys() == ran.keys() <= shown.keys()
    assert isinstance(json.loads(attlas_here("predict", "hardmax", "--json").stdout), list)
    print_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": (1, -float("inf"))})
    assert json.loads(capfd.readouterr().out, parse_constant=pytest.fail) == {
        "a": None,
        "b": [None, 1.5],
        "c": [1, None],
    }


def test_copy_and_merge(attlas_here, fast, tmp_path):
    attlas_here(*FAST)
    assert "20 results copied to b.db" in attlas_here("store", "copy", "attlas.db", "b.db").stdout
    assert "exists" in attlas_here("store", "copy", "attlas.db", "b.db").stderr
    done = attlas_here("store", "merge", "c.db", "b.db", "attlas.db")
    assert "20 results added to c.db, 20 were there already" in done.stdout
    assert check(tmp_path / "c.db").digest == check(tmp_path / "attlas.db").digest


def test_a_damaged_log_is_exit_3_for_everyone(attlas_here, fast, tmp_path):
    from ..store.test_damage import killed_with_log

    path = killed_with_log(tmp_path)
    data = bytearray((tmp_path / "a.db-wal").read_bytes())
    data[5000] ^= 1
    (tmp_path / "a.db-wal").write_bytes(data)
    for command in (["verdicts"], ["export", "x.csv"], ["report"], ["store", "check"], ["list"]):
        done = attlas_here(*command, "--store", path)
        assert done.returncode == 3, command
        assert "log" in done.stderr + done.stdout


def test_doctor_and_versions(attlas_here, tmp_path):
    import numpy as np

    said = attlas_here("--version").stdout
    assert f"numpy {np.__version__}" in said
    found = json.loads(attlas_here("doctor", "--json").stdout)
    assert found["core"]["good"]
    assert {"python", "blas", "threads", "store", "[lab]", "[slurm]", "browser"} <= found.keys()
    (tmp_path / "attlas.db").write_text("no store " * 50)
    assert attlas_here("doctor").returncode == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    """As a shell asks for it: `--show-completion` looks which shell called, and here none did."""
    import os
    import subprocess
    import sys

    command = Path(sys.executable).with_name("attlas")
    asked = os.environ | {"_ATTLAS_COMPLETE": f"source_{shell}"}
    done = subprocess.run([command], env=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "_ATTLAS_COMPLETE" in done.stdout


def test_a_reader_that_has_seen_enough(attlas, tmp_path):
    import subprocess
    import sys

    command = f"{sys.executable} -m attlas predict softmax --alpha 0.01:1:4000 --rho 0.5 --json | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "[\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("kind", "bar"), [("xterm", True), ("dumb", False)])
def test_progress_on_a_terminal(fast, tmp_path, kind, bar):
    """A bar with an estimate of the time left, drawn over itself; lines where the cursor cannot move."""
    import pty
    import subprocess
    import sys

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "attlas", *FAST, "--set", "pause=0.05"]
    options = {"stdout": subprocess.DEVNULL, "stderr": theirs, "cwd": tmp_path, "env": os.environ | {"TERM": kind}}
    with subprocess.Popen(command, **options) as process:
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
        assert process.wait() == 0
    os.close(ours)
    assert b"left" in said
    assert (b"20/20" if bar else b"20 of 20 points") in said
    assert (b"\x1b[" in said) == bar


def _read(handle):
    try:
        return os.read(handle, 4096)
    except OSError:  # the other end is closed
        return b""


def test_no_margin_is_printed_where_nothing_is_decided(attlas_here):
    """risk-bound is inconclusive at the full tier by the results that come with attlas; queries is supported."""
    shown = attlas_here("show", "features.risk-bound", "--full").stdout
    assert "Verdict (results that came with attlas): inconclusive" in shown
    assert "Margin" not in shown
    decided = attlas_here("show", "recovery.queries", "--full").stdout
    assert re.search(r"Margin: [\d.]+ orders of magnitude", decided)
    told = json.loads(attlas_here("show", "features.risk-bound", "--full", "--json").stdout)
    assert told["status"] == "inconclusive"
    assert told["strength"] is told["unit"] is None
