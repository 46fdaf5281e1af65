"""Measurements as if they had been measured."""

from attlas.claims import Measurement
from attlas.numerics import stream


def made(points, seeds, result):
    """Measurements with results from a function of point, seed and a random stream."""
    rng = stream(0, "made")
    return [Measurement(p, s, result(p, s, rng)) for p in points for s in range(seeds)]


def turned(claim, rows):
    """The mutations of a claim that must be refuted, each with its outcome on these measurements."""
    return {
        mutation.label(size): claim.verdict(mutation.applied(rows, size, claim.own_seed)).outcome
        for mutation in claim.mutations
        for size in mutation.sizes[list(mutation.sizes).index(mutation.refuted_at) :]
    }
