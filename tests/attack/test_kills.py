"""SIGKILL at random moments: nothing that was acknowledged is lost, nothing wrong is accepted."""

import os
import random
import signal
import subprocess
import sys
import time

from attlas import lab
from attlas.store import Store, check, read

from ..conftest import TESTS, record
from .form import tell, times


def test_drivers_are_killed(fast, tmp_path):
    lab.run(["test.fast"], store=tmp_path / "calm.db", executor="serial", grid={"i": range(60), "pause": [0.0]})
    kills, lost, rng = times(6, 90), 0, random.Random(0)
    zygote = subprocess.Popen(
        [sys.executable, TESTS / "lab" / "zygote.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    path, kept = tmp_path / "a.db", {}
    for n in range(kills):
        zygote.stdin.write(f"{path}\n")
        zygote.stdin.flush()
        driver = int(zygote.stdout.readline())
        time.sleep(rng.uniform(0, 0.2))
        os.kill(driver, signal.SIGKILL)
        finished = int(zygote.stdout.readline()) == 0
        now = {r.key: r.payload for r in read(path)} if path.exists() and path.stat().st_size else {}
        lost += sum(now.get(key) != payload for key, payload in kept.items())
        kept = now
        if finished:
            path, kept = tmp_path / f"{n}.db", {}
    zygote.stdin.close()
    zygote.wait()
    zygote.stdout.close()
    tell(f"drivers killed: {kills}; acknowledged results lost: {lost}")
    assert not lost


def test_writers_are_killed_in_the_middle_of_a_commit(tmp_path):
    """What a writer has said to be kept is there after it, whichever instruction it was at."""
    code = (
        "import sys; from tests.conftest import record; from attlas.store import Store\n"
        "s = Store(sys.argv[1]); print('ready', flush=True)\n"
        "for i in range(int(sys.argv[2]), 10**6): s.put(record(i)); print(i, flush=True)"
    )
    rng, kills, path, said, lost = random.Random(1), times(3, 30), tmp_path / "a.db", 0, 0
    for _ in range(kills):
        command = [sys.executable, "-c", code, str(path), str(said)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS.parent) as writer:
            writer.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.1))
            writer.kill()
            numbers = [int(line) for line in writer.stdout.read().split()[:-1]]
        said = max([said, *(number + 1 for number in numbers)])
        there = {r.key for r in read(path)}
        lost += sum(record(i).key not in there for i in range(said))
    with Store(path) as store:
        repaired = store.repaired
    tell(
        f"writers killed while committing: {kills}; of {said} results acknowledged, lost: {lost}; repaired: {repaired}"
    )
    assert not lost
    assert check(path).good
