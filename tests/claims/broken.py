"""Runs a claim with something deliberately broken in it."""

from attlas.claims import Measurement


def verdict_of(claim, points=None, seeds=3, first=0):
    """Measure and judge a claim, on its quick points or on others."""
    points = claim.tiers["quick"].points if points is None else points
    return claim.judge([Measurement(p, s, claim.measure(p, s)) for p in points for s in range(first, first + seeds)])
