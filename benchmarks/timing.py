"""How the benchmarks take time."""

import time


def best(call, repeats=3, clock=time.perf_counter):
    """Return the shortest of several runs, in seconds of `clock`."""
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)
