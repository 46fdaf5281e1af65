"""A claim of many fast points, for tests of the lab: what it computes is checked, when it is computed is logged."""

import os
import time

from pydantic import NonNegativeInt

from attlas.claims import Claim, Cost, Outcome, Settings, Sweep, Verdict
from attlas.numerics import stream

LOG = "ATTLAS_TEST_LOG"
DEADLY = "ATTLAS_TEST_DEADLY"


class Point(Settings):
    i: NonNegativeInt
    pause: float = 0.004
    deadly: bool = False
    fails: bool = False


def measure(point, seed):
    if LOG in os.environ:
        with open(os.environ[LOG], "ab", buffering=0) as log:
            log.write(b"%d\n" % point.i)
    if point.deadly and os.environ[DEADLY] == "always":
        os._exit(1)
    if point.deadly and not os.path.exists(os.environ[DEADLY]):
        open(os.environ[DEADLY], "w").close()
        os._exit(1)
    if point.fails:
        raise ArithmeticError("this point is meant to fail")
    time.sleep(point.pause)
    matrix = stream(seed, "matrix", str(point.i)).standard_normal((120, 120))
    return {"x": matrix @ matrix[:, :5], "i": point.i}


def judge(measurements):
    good = all(m.result["i"] == m.point.i for m in measurements)
    return Verdict(Outcome.SUPPORTED if good else Outcome.REFUTED, "counted", 1.0, "points", {"n": len(measurements)})


def draw(measurements):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot([m.point.i for m in measurements])
    return figure


CLAIM = Claim(
    id="test.fast",
    version=1,
    statement="Many points are computed, each once.",
    source="nowhere",
    settings=Point,
    tiers={"quick": Sweep([Point(i=i) for i in range(300)], 1), "full": Sweep([Point(i=i) for i in range(20)], 1)},
    measure=measure,
    judge=judge,
    draw=draw,
    cost=lambda point: Cost(point.pause + 0.001, 1_000_000),
)
