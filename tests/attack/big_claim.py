"""A claim of a hundred thousand points that cost nothing, for stores that are large."""

import numpy as np
from pydantic import NonNegativeInt

from attlas.claims import Claim, Cost, Outcome, Settings, Sweep, Verdict


class Point(Settings):
    i: NonNegativeInt
    law: str = "sphere"


def measure(point, seed):
    return {"x": float(point.i + seed), "curve": np.arange(20.0) + seed, "converged": True}


def judge(measurements):
    mean = float(np.mean([m.result["x"] for m in measurements]))
    return Verdict(Outcome.SUPPORTED, "counted", 1.0, "points", {"n": len(measurements), "mean": mean})


def draw(measurements):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot([m.point.i for m in measurements][:100])
    return figure


CLAIM = Claim(
    id="test.big", version=1, statement="Many points.", source="nowhere", settings=Point,
    tiers={"quick": Sweep([Point(i=i) for i in range(100)], 1000), "full": Sweep([Point(i=i) for i in range(100)], 10)},
    measure=measure, judge=judge, draw=draw, cost=lambda point: Cost(0.001, 1_000_000),
)  # fmt: skip
