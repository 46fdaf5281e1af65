"""Where jobs run: here, in worker processes (`processes`), or on Dask (`cluster`).

Each executor is a generator: it takes jobs from an iterator as workers become free and yields outcomes. A job is taken
only when a worker is idle and after the outcome before it has been consumed, so that at most one job per worker is ever
computed and not yet kept. The iterator may give None: nothing to do just now, but perhaps later.
"""

import time
from collections.abc import Iterator

from attlas.lab.execute import Computed, Job, execute, pinned_threads, versions

Jobs = Iterator[Job | None]
MOST_DEATHS = 3  # workers that one job may take with it before it is given up
MOST_STARTS = 10  # workers in a row that may die before they begin, which no job is blamed for
IDLE = 0.1  # seconds between two looks when there is nothing to do


def serial(jobs: Jobs) -> Iterator[Computed]:
    """Compute in this process, one job after the other."""
    with pinned_threads():
        for job in jobs:
            if job is None:
                time.sleep(IDLE)
            else:
                yield execute(job)


def given_up(job: Job) -> Computed:
    """Return the outcome of a job that no worker survives."""
    message = f"its worker died {MOST_DEATHS} times (out of memory?)"
    return Computed(job.key, None, 0.0, versions(), message)
