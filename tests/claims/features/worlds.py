"""Synthetic learning curves: power laws in n with a little scatter, for judges."""

import numpy as np

SIZES = np.geomspace(8, 4096, 28)


def curve(cost, rng, sizes=SIZES, rate=2.0, scatter=0.03):
    """Return an error that is 1 at few samples, one half at `cost`, and then falls as n^-rate."""
    halving = cost * np.exp(rng.normal(0, scatter))
    return 1 / (1 + (sizes / halving) ** rate)


def reaching(costs, rng, sizes=SIZES, scatter=0.03):
    """Return an error that passes through a half, a fifth and a tenth at these three numbers of samples."""
    places = np.log(np.array([1.0, costs[0] / 4, *costs, costs[-1] * 4])) + rng.normal(0, scatter)
    return np.exp(np.interp(np.log(sizes), places, np.log([1.0, 1.0, 0.5, 0.2, 0.1, 0.02])))
