"""Claims that several processes share are judged and drawn as by one."""

import pickle
import subprocess
import sys

from attlas import lab
from attlas.claims import find
from attlas.lab.side_by_side import side_by_side

NAMES = ["features.invariance", "aim.quadratic-networks"]


def test_two_processes_judge_as_one(tmp_path):
    one, two = (
        lab.verdicts(NAMES, store=tmp_path / "none.db", shipped=True, repeats=True, workers=workers)
        for workers in (1, 2)
    )
    assert [entry.claim for entry in two] == find(NAMES)
    assert [entry.verdict for entry in two] == [entry.verdict for entry in one]
    assert [entry.runs for entry in two] == [entry.runs for entry in one]
    assert [[r.key for r in entry.records] for entry in two] == [[r.key for r in entry.records] for entry in one]


def test_two_processes_know_a_claim_of_ones_own(fast, tmp_path):
    """In a process of its own, as a person's command is: workers are started once and keep its environment."""
    lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial")
    code = (
        "from attlas import lab\n"
        f"judged = lab.verdicts(['test.fast', {NAMES[1]!r}], 'full', store='a.db', workers=2)\n"
        "print([entry.status for entry in judged])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['supported', 'not run']\n", "")


def test_what_is_judged_travels_without_its_claim(tmp_path):
    (entry,) = lab.verdicts(NAMES[1:], store=tmp_path / "none.db", shipped=True)
    again = pickle.loads(pickle.dumps(entry))
    assert again.claim is entry.claim
    assert again == entry


def test_one_worker_needs_no_process():
    seen = []
    assert side_by_side(seen.append, [1, 2]) == [None, None]  # in this process
    assert seen == [1, 2]
