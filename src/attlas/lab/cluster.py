"""Jobs on the workers of a Dask scheduler."""

import contextlib
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

from attlas.errors import AttlasError, InputError
from attlas.lab.execute import Computed, Job, execute, pin_threads, versions
from attlas.lab.executors import IDLE, MOST_DEATHS, Jobs, given_up

GRACE = 60.0  # seconds after which a worker that cannot be interrupted is ended


def dask(jobs: Jobs, client: Any) -> Iterator[Computed]:
    """Compute on the workers of a Dask scheduler, which gives the jobs of a dead worker to another."""
    from distributed import as_completed

    keys: dict[str, Job] = {}
    running = as_completed(loop=client.loop)
    exhausted = False
    try:
        while True:
            room = max(1, sum(client.nthreads().values())) - len(keys)
            while room > 0 and not exhausted:
                try:
                    job = next(jobs)
                except StopIteration:
                    exhausted = True
                    break
                if job is None:
                    break
                keys[job.key] = job
                # the name tells two sweeps on one scheduler apart, and their repeats
                running.add(
                    client.submit(execute_pinned, job, key=f"attlas-{job.key}-{os.urandom(4).hex()}", pure=False)
                )
                room -= 1
            if not keys and exhausted:
                return
            if not keys:
                time.sleep(IDLE)
                continue
            future = next(running)
            job = keys.pop(future.key.split("-")[1])
            yield _answer(future, job)
    except (OSError, TimeoutError) as error:
        raise _lost(error) from error
    finally:
        with contextlib.suppress(Exception):  # a scheduler that is gone has nothing left to cancel
            client.cancel(list(running.futures))


def execute_pinned(job: Job) -> Computed:
    """Measure one point on a Dask worker. One that outlasts its limit within a step of Python takes its worker with it."""
    pin_threads()
    last = threading.Timer(min(job.limit * 1.5 + GRACE, threading.TIMEOUT_MAX), os._exit, (1,))
    last.daemon = True
    last.start()
    try:
        return execute(job)
    finally:
        last.cancel()


def ready_workers(client: Any) -> None:
    """Have every worker, also those that come later, import what jobs need before it is given one.

    Dask counts the death of a worker against the job that it had, also while it was only importing.
    """
    from distributed import WorkerPlugin

    class Ready(WorkerPlugin):  # type: ignore[misc]
        name = "attlas-ready"

        def setup(self, worker: Any) -> None:  # noqa: ARG002
            pin_threads()

    with contextlib.suppress(Exception):  # a worker without attlas fails its first job, and says so there
        client.register_plugin(Ready())


@contextlib.contextmanager
def connect(scheduler: str | None, workers: int) -> Iterator[Any]:
    """Give a Dask client: of a scheduler by address, or of a cluster of `workers` processes here, which ends with it.

    Raises
    ------
    InputError
        If nothing answers at the address.
    """
    try:
        import dask
        from distributed import LocalCluster
    except ImportError as error:
        raise AttlasError('this executor needs Dask: pip install "attlas[lab]"') from error
    dask.config.set({"distributed.scheduler.allowed-failures": MOST_DEATHS})
    for name in logging.root.manager.loggerDict:
        if name.split(".")[0] == "distributed":  # what matters to a person is said by the driver
            logging.getLogger(name).setLevel(logging.CRITICAL)
    if scheduler is None:
        with ignored_interrupts(), warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # such as that of a slow disk, which ends the start where warnings are errors
            own = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                silence_logs=logging.CRITICAL,
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
            )
        with ended(own), client_of(own) as client:
            ready_workers(client)
            yield client
        return
    try:
        client = client_of(scheduler, timeout=5)
    except (OSError, ValueError, TypeError, ImportError) as error:
        raise InputError(f"no Dask scheduler answers at {scheduler}; start one with `dask scheduler`") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=10)
        except TimeoutError as error:
            raise InputError(
                f"the scheduler at {scheduler} has no workers; start some: dask worker {scheduler}"
            ) from error
        ready_workers(client)
        yield client


@contextlib.contextmanager
def ended(cluster: Any) -> Iterator[None]:
    """End a cluster of processes here afterwards, also while Dask is replacing a worker that died.

    A worker that dies within moments of its start is taken for its successor, which Dask then cannot stop: the end fails,
    with the scheduler still running. The second try finds that worker gone, and a worker whose scheduler ends goes with it.
    """
    from distributed.core import Status

    try:
        yield
    finally:
        try:
            cluster.close()
        except AssertionError:
            cluster.status = Status.failed
            cluster.close()


def client_of(cluster: Any, **options: Any) -> Any:
    """Return a Dask client of a cluster, or of the scheduler at an address.

    One that cannot be made is closed here. Left to itself it is closed when it is collected, by whichever thread that
    happens in, which may be its own and wait for itself.
    """
    from distributed import Client

    client = Client.__new__(Client)
    try:
        client.__init__(cluster, set_as_default=False, **options)  # what else uses Dask here is not ours to send there
    except BaseException:
        with contextlib.suppress(Exception):
            client.close()
        raise
    return client


@contextlib.contextmanager
def ignored_interrupts() -> Iterator[None]:
    """Let processes started inside ignore Ctrl-C, which a terminal sends to all of them: the driver decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _lost(error: BaseException) -> AttlasError:
    return AttlasError(
        f"the scheduler is gone ({error}); every result so far is safe; run the same command again to finish"
    )


def _answer(future: Any, job: Job) -> Computed:
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        outcome = future.result()
    except KilledWorker:
        return given_up(job)
    except (CancelledError, CommClosedError) as error:
        raise _lost(error) from error
    except Exception as error:  # the job or its outcome did not travel, such as a module missing on the worker
        return Computed(job.key, None, 0.0, versions(), f"{type(error).__name__}: {error}")
    if not isinstance(outcome, Computed) or outcome.versions != versions():
        theirs = getattr(outcome, "versions", "unknown")
        return Computed(
            job.key, None, 0.0, versions(), f"the worker has other versions than the driver: {theirs}, {versions()}"
        )
    return outcome
