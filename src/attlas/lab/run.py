"""The driver: runs what a plan holds and the store does not. Only the driver writes."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from attlas.claims import Tier, find
from attlas.errors import DamagedStore, InputError, Stopped
from attlas.inputs import integer, real
from attlas.lab import cluster, executors, processes
from attlas.lab.execute import Computed, Job, differing, versions
from attlas.lab.plan import Cell, plan
from attlas.lab.progress import Display, progress
from attlas.lab.slurm import slurm_cluster, slurm_settings
from attlas.lab.verdicts import stored_point
from attlas.store import Record, Store, present, read, stored_keys

Executor = Literal["serial", "processes", "dask", "slurm"]
EXECUTORS: tuple[Executor, ...] = ("serial", "processes", "dask", "slurm")
LONGEST, PATIENCE = 3600.0, 100.0  # a point may take this many seconds, and this many times what its claim expects

_REFUSAL = "leave out --same-versions to go on, or give another --store to begin anew"


@dataclass
class Summary:
    """What a run did.

    Attributes
    ----------
    planned, found, computed, elsewhere : int
        Points in the plan, in the store beforehand, computed by this run, and meanwhile by another on the same store.
    failed : dict
        Why, by the key of the point.
    repaired : str or None
        What was done to a damaged store.
    mixed : dict
        How many of the results found were computed with other versions than these, by what differs, such as
        ``{"numpy 2.0.1": 12}``.
    """

    planned: int = 0
    found: int = 0
    computed: int = 0
    elsewhere: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    repaired: str | None = None
    mixed: dict[str, int] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """Points that need nothing more from this run."""
        return self.found + self.computed + self.elsewhere + len(self.failed)


@dataclass(frozen=True)
class Expectation:
    """What a run is expected to take: points, seconds with the given workers, peak bytes of all workers together."""

    planned: int
    found: int
    seconds: float
    memory: int


def run(
    claims: Sequence[str] | None = None,
    tier: Tier = "quick",
    *,
    store: Path | str = "attlas.db",
    seed: int = 0,
    runs: int = 1,
    workers: int | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    slurm: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
    point_timeout: float | None = None,
    same_versions: bool = False,
) -> Summary:
    """Run claims; what the store already holds is not computed again.

    Parameters
    ----------
    claims : sequence of str, optional
        Ids; all claims if not given.
    tier : {"quick", "full"}
    store : path
        Created if it does not exist.
    seed : int, default 0
        Run number; runs of different numbers share no random numbers.
    runs : int, default 1
        How many runs, numbered from `seed` on: independent repetitions.
    workers : int, optional
        Worker processes; the number of cores if not given.
    executor : {"serial", "processes", "dask", "slurm"}, optional
        ``serial`` for one worker, else ``processes``; ``dask`` if a scheduler is named. All give the same bits.
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://127.0.0.1:8786``.
    slurm : mapping, optional
        Settings of the Slurm jobs, see `attlas.lab.SlurmSettings`.
    grid, seeds : optional
        Other settings and seeds than the tier's, see `attlas.lab.plan`.
    point_timeout : float, optional
        Seconds that a point may take before it is broken off and reported as failed; an hour and a hundred times what its
        claim expects, if not given.
    same_versions : bool, default False
        Refuse to go on from results that were computed with other versions of attlas, numpy or scipy.

    Raises
    ------
    InputError
        If something given is not acceptable, or versions differ and must not.
    Stopped
        On Ctrl-C or SIGTERM, after a clean stop.

    Examples
    --------
    >>> from attlas import lab
    >>> found = lab.run(["features.invariance"], store="here.db", grid={"d": [8], "heads": [20]}, seeds=1, workers=1)
    >>> found.computed, found.failed
    (6, {})
    """
    tasks = plan(find(list(claims) if claims else None), tier, seed, grid, seeds, runs)
    executor, workers = choose(executor, workers, scheduler)
    check_timeout(point_timeout)
    summary = Summary(len(tasks))
    with _stoppable(tasks, store), ExitStack() as stack:
        # what is still to start is known to be possible before the store is touched
        start = stack.enter_context(_started(executor, workers, scheduler, slurm or {}))
        keeper = stack.enter_context(Store(store))
        stored = keeper.versions()
        todo = {task.key: task for task in tasks if task.key not in stored}
        summary.found, summary.repaired = len(tasks) - len(todo), keeper.repaired
        summary.mixed = _mixed([stored[task.key] for task in tasks if task.key in stored])
        show = stack.enter_context(progress(summary.planned, summary.found))
        if keeper.repaired:
            show.note(keeper.repaired)
        if summary.mixed:
            _note_versions(summary, same_versions, bool(todo), show)
        if todo:
            _drive(todo, start, keeper, summary, show, workers, point_timeout)
    return summary


def _mixed(found: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Return how many results were computed with other versions than these, by what differs."""
    others = Counter(
        ", ".join(f"{name} {number}" for name, number in sorted(differing(each).items())) for each in found
    )
    return {text: count for text, count in others.items() if text}


def _note_versions(summary: Summary, refuse: bool, resumed: bool, show: Display) -> None:
    """Say that a sweep has results of several versions, or refuse to make it so."""
    sentence = _mixture(summary.mixed, summary.found)
    if refuse:
        raise InputError(f"{sentence}; {_REFUSAL}")
    show.note(sentence + (". Bits may differ between the two parts of this sweep" if resumed else ""))


def _mixture(mixed: Mapping[str, int], found: int) -> str:
    here = ", ".join(f"{name} {number}" for name, number in versions().items() if name != "python")
    told = "; ".join(f"{count} with {text}" for text, count in mixed.items())
    count = f"{sum(mixed.values())} of {found} results in the store"
    return f"{count} were computed with other versions than those here ({here}): {told}"


def expect(
    tasks: Sequence[Cell],
    store: Path | str,
    workers: int | None = None,
    executor: Executor | None = None,
    *,
    fresh: bool = False,
) -> Expectation:
    """Return what a run would take, from the claims' own estimates corrected by what the store has measured.

    With `fresh`, what it would take to compute everything again, also what the store holds.

    Examples
    --------
    >>> from attlas import lab
    >>> from attlas.claims import find
    >>> tasks = lab.plan(find(["features.invariance"]))
    >>> lab.expect(tasks, "none.db", workers=1).planned == len(tasks)
    True
    """
    _, workers = choose(executor, workers, None)
    done = {r.key: r for r in read(store)} if present(store) else {}
    todo = [task for task in tasks if fresh or task.key not in done]
    seconds = 0.0
    for claim in {task.claim.id: task.claim for task in todo}.values():
        guessed = taken = 0.0
        for r in done.values():
            if (r.claim, r.version) == (claim.id, claim.version):
                with suppress(DamagedStore):  # settings that the claim does not have teach nothing
                    guessed += claim.cost(stored_point(claim, r)).seconds
                    taken += r.seconds
        correction = taken / guessed if guessed else 1.0
        seconds += correction * sum(task.cost.seconds for task in todo if task.claim.id == claim.id)
    memory = sum(sorted((task.cost.memory for task in todo), reverse=True)[:workers])
    return Expectation(len(tasks), len(tasks) - len(todo), seconds / max(1, min(workers, len(todo))), memory)


def choose(executor: Executor | None, workers: int | None, scheduler: str | None) -> tuple[Executor, int]:
    """Return the executor and the number of workers that the options ask for.

    Examples
    --------
    >>> from attlas import lab
    >>> lab.choose(None, workers=1, scheduler=None)
    ('serial', 1)
    """
    count = (os.cpu_count() or 1) if workers is None else integer(workers, "workers")
    if executor is None:
        executor = "dask" if scheduler else "serial" if count == 1 else "processes"
    if executor not in EXECUTORS:
        raise InputError(f"executor must be one of {', '.join(EXECUTORS)}; got {executor!r}")
    if scheduler and executor != "dask":
        raise InputError(f"a scheduler goes with the executor dask, not with {executor}")
    return executor, 1 if executor == "serial" else count


def check_timeout(point_timeout: float | None) -> None:
    """Refuse a time limit that is not a positive number of seconds.

    Examples
    --------
    >>> from attlas import lab
    >>> lab.check_timeout(600)
    """
    if point_timeout is not None:
        real(point_timeout, "point_timeout", above=0.0)


def check_versions(tasks: Sequence[Cell], store: Path | str) -> None:
    """Raise `InputError` if the store holds results of a plan that were computed with other versions than these.

    Examples
    --------
    >>> from attlas import lab
    >>> from attlas.claims import find
    >>> lab.check_versions(lab.plan(find(["features.invariance"])), "none.db")  # an empty store holds no other versions
    """
    keys = {task.key for task in tasks}
    found = [r.versions for r in read(store) if r.key in keys] if present(store) else []
    if mixed := _mixed(found):
        raise InputError(f"{_mixture(mixed, len(found))}; {_REFUSAL}")


def _drive(
    todo: dict[str, Cell],
    start: Callable[[executors.Jobs], Iterator[Computed]],
    keeper: Store,
    summary: Summary,
    show: Display,
    workers: int,
    limit: float | None = None,
) -> None:
    """Lease, compute, keep: until nothing of the plan is left that this run could do."""
    left = dict(todo)
    rest = sum(task.cost.seconds for task in todo.values())
    guessed = taken = 0.0  # how right the claims' estimates were so far corrects those of the points left
    waiting = False

    def jobs() -> Iterator[Job | None]:
        nonlocal waiting, rest
        while True:
            key, there = keeper.lease(left)
            for name in there:
                rest -= left.pop(name).cost.seconds
            summary.elsewhere += len(there)
            if key is not None:
                task = left.pop(key)
                rest -= task.cost.seconds
                point, seed = task.claim.settings(**task.point), task.claim.own_seed(task.seed)
                most = LONGEST + PATIENCE * task.cost.seconds if limit is None else limit
                yield Job(key, task.claim.measure, point, seed, most)
            elif left:
                if not waiting:
                    show.note(f"the last {len(left)} points are being computed by another run; waiting for it")
                waiting = True
                yield None
            else:
                return

    for outcome in start(jobs()):
        task = todo[outcome.key]
        if outcome.payload is None:
            keeper.release(task.key)
            summary.failed[task.key] = outcome.error or "unknown"
            show.note(f"{task.claim.id} {task.point} seed {task.seed} failed: {outcome.error}")
        else:
            keeper.put(
                Record(
                    task.claim.id,
                    task.claim.version,
                    task.point,
                    task.seed,
                    outcome.payload,
                    outcome.seconds,
                    outcome.versions,
                )
            )
            summary.computed += 1
            guessed += task.cost.seconds
            taken += outcome.seconds
        show.update(summary.finished, rest / workers * taken / guessed if guessed else None)


@contextmanager
def _started(
    executor: Executor, workers: int, scheduler: str | None, slurm: Mapping[str, Any]
) -> Iterator[Callable[[executors.Jobs], Iterator[Computed]]]:
    """Give the function that runs jobs, with its cluster behind it where there is one."""
    if executor == "serial":
        yield executors.serial
    elif executor == "processes":
        yield lambda jobs: processes.processes(jobs, workers)
    elif executor == "dask":
        with cluster.connect(scheduler, workers) as client:
            yield lambda jobs: cluster.dask(jobs, client)
    else:
        with (
            slurm_cluster(slurm_settings(dict(slurm))) as jobqueue,
            cluster.client_of(jobqueue) as client,
        ):
            cluster.ready_workers(client)
            jobqueue.scale(jobs=workers)
            yield lambda jobs: cluster.dask(jobs, client)


@contextmanager
def _stoppable(tasks: Sequence[Cell], store: Path | str) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a clean stop, `Stopped`, once everything inside is closed."""
    caught: list[int] = []

    def stop(number: int, _: Any) -> None:
        caught.append(number)
        for each in before:  # a second one would break off the clean end of the first
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()
    before: dict[int, Any] = {}
    for each in (signal.SIGINT, signal.SIGTERM) if here else ():
        before[each] = signal.signal(each, stop)
    try:
        yield
    except KeyboardInterrupt:
        kept = stored_keys(store) & {t.key for t in tasks} if present(store) else set()
        sentence = f"Stopped: {len(kept)} of {len(tasks)} points are in {store}. Run the same command again to finish."
        raise Stopped(sentence, caught[-1] if caught else signal.SIGINT) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
