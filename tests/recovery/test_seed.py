"""A seed gives the same layer whatever the machine is doing: budgets count steps and starts, not seconds."""

import itertools
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from attlas.numerics import stream
from attlas.recovery import learn, learn_from_queries, sculpt

from .tasks import oracle_of, planted, task

X, Y, _ = task(2, 4, 2, 400, noise=0.02)
NOISE = stream(1, "noise").standard_normal(Y.shape)
ORACLE = oracle_of(*planted(2, 4, d_out=2))
SEARCHES = {
    "varpro": lambda: learn(X, Y, 2, max_starts=3, max_steps=20),
    "nothing to find": lambda: learn(X, NOISE, 2, max_starts=3, max_steps=10),
    "lbfgs": lambda: learn(X, Y, 2, method="lbfgs", max_starts=2, max_steps=40),
    "adam": lambda: learn(X, Y, 2, method="adam", max_starts=1, max_steps=300),
    "sculpt": lambda: learn(X, Y, 2, method="sculpt", max_starts=2, max_steps=20),
    "the body alone": lambda: sculpt(X, Y, 2),
    "queries": lambda: learn_from_queries(ORACLE, 4, heads=None),
    "ordinary queries": lambda: learn_from_queries(ORACLE, 4, heads=None, method="ordinary", max_starts=4),
}


@contextmanager
def busy(loops=2):
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def same(one, other):
    return (
        np.array_equal(one.Theta, other.Theta)
        and np.array_equal(one.W, other.W)
        and np.array_equal(one.history, other.history)
        and (one.status, one.steps) == (other.status, other.steps)
    )


@pytest.fixture(scope="module")
def idle():
    return {name: search() for name, search in SEARCHES.items()}


def test_two_busy_loops_beside_it_change_nothing(idle):
    with busy():
        for name, search in SEARCHES.items():
            assert same(search(), idle[name]), name


@pytest.mark.parametrize("name", SEARCHES)
def test_a_machine_a_million_times_slower_finds_the_same(idle, name, monkeypatch):
    clock = itertools.count(step=1e6)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert same(SEARCHES[name](), idle[name])
