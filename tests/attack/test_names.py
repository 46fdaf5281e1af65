"""Two writers under two names of one file."""

import os
import subprocess
import sys

from attlas.store import Store, check, read

from ..conftest import TESTS, record
from .form import tell, times


def test_writers_under_two_names_lose_nothing(tmp_path):
    """One writes, the other comes by a hard link, at any moment; what either said to be kept is there."""
    code = (
        "import sys; from tests.conftest import record; from attlas.store import Store\n"
        "from attlas.errors import AttlasError\n"
        "try:\n"
        "  with Store(sys.argv[1]) as s:\n"
        "    for i in range(int(sys.argv[2]), int(sys.argv[2]) + 40): s.put(record(i)); print(i, flush=True)\n"
        "except AttlasError as error: print(error, file=sys.stderr)"
    )
    said, refused, rounds = set(), 0, times(2, 20)
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    with Store(first) as store:
        store.put(record(10**6))
    for n in range(rounds):
        os.link(first, second)
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", code, path, str(1000 * n + 500 * k)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TESTS.parent,
            )
            for k, path in enumerate((first, second))
        ]  # fmt: skip
        for writer in writers:
            out, err = writer.communicate()
            said |= {int(line) for line in out.split()}
            refused += "hard links" in err
        second.unlink()
        if n == 0:  # with one name it goes on
            with Store(first) as store:
                store.put(record(10**6 + 1))
    there = {r.key for r in read(first)}
    lost = sum(record(i).key not in there for i in said)
    tell(f"pairs of writers through a hard link: {rounds}; refused: {refused}; acknowledged results lost: {lost}")
    assert not lost
    assert refused == 2 * rounds
    assert check(first).good
