"""A store of a hundred thousand results: opened in seconds, exported, judged and drawn within a minute and a gigabyte."""

import os
import subprocess
import sys

import pytest

from attlas import lab
from attlas.claims import find
from attlas.lab.execute import versions
from attlas.store import Record, Store, encode

from ..conftest import TESTS
from .form import LONG, tell

# not ru_maxrss, which begins at the peak of the process that started this one: here pytest's, whatever it did before
PEAK = """
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM"))
"""
TIMED = f"""{PEAK}
import sys, time
start = time.perf_counter()
from attlas.cli import main
try: main()
except SystemExit as end: code = end.code or 0
print("measured", time.perf_counter() - start, time.process_time(), peak(), code)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.db"
    environment = {"ATTLAS_CLAIMS": "big_claim"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTLAS_CLAIMS", "big_claim")
        patch.syspath_prepend(str(TESTS / "attack"))
        (claim,) = find(["test.big"])
        cells = lab.plan([claim], "quick" if LONG else "full")
        records = (
            Record(claim.id, 1, cell.point, cell.seed, encode(claim.measure(claim.settings(**cell.point), cell.seed)), 0.001,
                   versions())
            for cell in cells
        )  # fmt: skip
        with Store(path) as store:
            assert store.put_all(records) == len(cells)
    return path, len(cells), environment


COMMANDS = ["run", "verdicts", "export x.csv", "export x.parquet", "export x.nc", *(["report"] if LONG else [])]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_on_a_large_store(large, tmp_path, command):
    path, count, environment = large
    name, *rest = command.split()
    claims = [] if name == "report" else ["test.big"]
    options = ["--quick" if LONG else "--full"] if name != "export" else []
    workers = ["--workers", "1"] if name == "run" else []
    here = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    paths = os.pathsep.join([str(TESTS / "attack"), *here])
    done = subprocess.run(
        [sys.executable, "-c", TIMED, name, *rest, *claims, *options, *workers, "--store", str(path)],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ | environment | {"PYTHONPATH": paths},
    )  # fmt: skip
    measured = (done.stdout.splitlines() or [""])[-1].split()
    assert measured[:1] == ["measured"], done.stderr
    seconds, cpu, megabytes, code = map(float, measured[1:])
    tell(f"{command} of {count} results: {seconds:.1f} s ({cpu:.1f} s of CPU), {megabytes:.0f} MB")
    assert code == 0, done.stderr
    assert megabytes < 1000


def test_the_memory_that_is_measured_is_of_the_command_alone():
    """Started by a process that has had 300 MB, one that needs none shows none."""
    code = f"""
import subprocess, sys
bytearray(b"x") * 300_000_000
print(subprocess.run([sys.executable, "-c", {PEAK + "print(peak())"!r}], capture_output=True, text=True).stdout)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100


def test_opening(large):
    import time

    path, count, _ = large
    start = time.process_time()
    with Store(path) as store:
        assert len(store.versions()) == count
    tell(f"opening {count} results, every seal verified: {time.process_time() - start:.1f} s of CPU")
