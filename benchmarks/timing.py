"""How the benchmarks take time."""

import time


def best(call, repeats=3):
    """Return the shortest of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
