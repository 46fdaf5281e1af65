"""Planning, resuming, executors, estimates."""

import os

import numpy as np
import pytest

from attlas import lab
from attlas.claims import find
from attlas.errors import InputError
from attlas.lab.execute import Job, execute, pinned_threads, versions
from attlas.lab.run import choose
from attlas.store import check, key, read

EXECUTORS = [("serial", 1), ("processes", 1), ("processes", 2), ("dask", 1), ("dask", 2)]


def test_same_seed_same_bits_whoever_computes(tmp_path):
    """Real claims with real BLAS: serial, processes, Dask, one worker or two."""
    digests = set()
    grid = {"samples": [2000], "d": [16, 300]}
    for executor, workers in EXECUTORS:
        path = tmp_path / f"{executor}-{workers}.db"
        options = {"store": path, "executor": executor, "workers": workers, "seeds": 2}
        lab.run(["aim.gaussian-indices"], grid=grid, **options)
        lab.run(["features.invariance"], **options)
        digests.add(check(path).digest)
    assert len(digests) == 1


def test_another_seed_gives_other_bits(tmp_path):
    grid = {"samples": [200], "d": [16]}
    for seed in (0, 1):
        lab.run(["aim.gaussian-indices"], store=tmp_path / "a.db", executor="serial", seed=seed, seeds=2, grid=grid)
    records = list(read(tmp_path / "a.db"))
    assert sorted(r.seed for r in records) == [0, 1, 1000, 1001]
    assert len({r.payload for r in records}) == 4


def test_resuming_computes_what_is_missing(fast, tmp_path):
    first = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial", grid={"i": range(5)})
    second = lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial", grid={"i": range(8)})
    assert (first.planned, first.found, first.computed) == (5, 0, 5)
    assert (second.planned, second.found, second.computed) == (8, 5, 3)
    assert len(fast.read_text().split()) == 8


def test_provenance(fast, tmp_path):
    lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial", grid={"i": [0]})
    (record,) = read(tmp_path / "a.db")
    assert record.versions == versions()
    assert set(record.versions) == {"attlas", "numpy", "scipy", "python"}
    assert record.versions["numpy"] == np.__version__
    assert 0.004 <= record.seconds < 1


def test_plan_keys_and_order_do_not_depend_on_how_a_number_is_written():
    claims = find(["aim.gaussian-indices"])
    a, b = (lab.plan(claims, grid={"d": [d], "rho": [rho]}) for d, rho in ((20, 1), (20.0, 1.0)))
    assert [task.key for task in a] == [task.key for task in b]
    assert a[0].key == key("aim.gaussian-indices", claims[0].version, a[0].point, 0)
    assert len(a) == 24  # the five points of the tier differ in d only; the first has the most seeds


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"d": [-5]}, "d: input should be greater than 0; got -5"),
        ({"rho": [float("nan")]}, "rho: input should be a finite number"),
        ({"size": [5]}, "has no setting size; it has d, rho, tokens, samples"),
        ({"d": ["many"]}, "d: input should be a valid integer"),
        ({"tokens": [1]}, "tokens: input should be greater than or equal to 2"),
    ],
)
def test_bad_settings_are_named(grid, message):
    with pytest.raises(InputError, match=message):
        lab.plan(find(["aim.gaussian-indices"]), grid=grid)


def test_too_many_seeds():
    with pytest.raises(InputError, match="at most 1000 seeds"):
        lab.plan(find(["features.invariance"]), seeds=1001)
    for seed in (-1, 10**16):
        with pytest.raises(InputError, match="seed must be"):
            lab.plan(find(["features.invariance"]), seed=seed)


def test_executor_choice():
    assert choose(None, 1, None) == ("serial", 1)
    assert choose(None, 3, None) == ("processes", 3)
    assert choose(None, None, "tcp://x:1")[0] == "dask"
    with pytest.raises(InputError, match="goes with the executor dask"):
        choose("serial", None, "tcp://x:1")
    with pytest.raises(InputError, match="one of serial"):
        choose("threads", None, None)
    with pytest.raises(InputError, match="workers must be"):
        choose(None, 0, None)


def test_expectation_learns_from_the_store(fast, tmp_path):
    """The claim expects 5 ms a point; the store knows better."""
    tasks = lab.plan(find(["test.fast"]), grid={"pause": [0.05]}, seeds=1)[:40]
    untaught = lab.expect(tasks, tmp_path / "a.db", workers=2)
    assert untaught.planned == 40
    assert untaught.found == 0
    assert untaught.seconds == pytest.approx(40 * 0.051 / 2)
    assert untaught.memory == 2_000_000
    lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial", grid={"i": range(10)})
    taught = lab.expect(tasks, tmp_path / "a.db", workers=2)
    measured = sum(r.seconds for r in read(tmp_path / "a.db"))
    assert taught.seconds == pytest.approx(untaught.seconds * measured / (10 * 0.005))


def test_threads_are_pinned_inside_and_restored_outside():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2):
        before, environment = threads(), os.environ.get("OPENBLAS_NUM_THREADS")
        with pinned_threads():
            assert threads() == {1}
            assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
        assert threads() == before
        assert os.environ.get("OPENBLAS_NUM_THREADS") == environment


def blas_threads(point, seed):
    from threadpoolctl import threadpool_info

    return {"threads": max(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")}


@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_workers_have_one_blas_thread(executor):
    from attlas.lab import cluster, processes
    from attlas.store import decode

    jobs = iter([Job(str(i), blas_threads, None, 0) for i in range(3)])
    if executor == "processes":
        outcomes = list(processes.processes(jobs, 2))
    else:
        with cluster.connect(None, 2) as client:
            outcomes = list(cluster.dask(jobs, client))
    assert [decode(outcome.payload)["threads"] for outcome in outcomes] == [1, 1, 1]


def test_a_result_that_cannot_be_kept_is_a_failure():
    outcome = execute(Job("k", lambda point, seed: {"x": object()}, None, 0))
    assert outcome.payload is None
    assert "numbers, text or arrays" in outcome.error


def test_verdicts_come_from_the_store_alone(fast, tmp_path):
    path = tmp_path / "a.db"
    (entry,) = lab.verdicts(["test.fast"], "full", store=path)
    assert entry.status == "not run"
    lab.run(["test.fast"], "full", store=path, executor="serial", grid={"i": range(3)})
    (entry,) = lab.verdicts(["test.fast"], "full", store=path)
    assert entry.status == "unfinished"
    assert entry.verdict is None
    lab.run(["test.fast"], "full", store=path, executor="serial")
    (entry,) = lab.verdicts(["test.fast"], "full", store=path)
    assert entry.status == "supported"
    assert entry.verdict.numbers == {"n": 20}
