"""What claims about learning in context share: layers trained on drawn tasks, theory beside them, floors, and points."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas import context
from attlas.claims.claim import Cost, Measurement, Result
from attlas.claims.estimate import Exact, finite_size
from attlas.claims.series import Series
from attlas.claims.verdict import Test, Verdict, about, above, decide
from attlas.numerics import stream

Array = NDArray[np.float64]

LIMIT = " at d = infinity"  # how tests are named whose number is extrapolated
SIZES = 4  # that an extrapolation needs
NEW, OLD = "new tasks", "training tasks"
FLOOR_NEW = "smallest error on new tasks over the Bayes error"
FLOOR_OLD = "smallest error on training tasks over the noise"

predicted = lru_cache(maxsize=1024)(context.theory)  # the same for all seeds of a point
best_ridge = lru_cache(maxsize=256)(context.best_ridge)


def own(seed: int, *names: str) -> int:
    """Return a seed of its own for what is named: no two sizes or purposes share random numbers."""
    return int(stream(seed, *names).integers(1 << 62))


def first(task: context.Sequences, n: int) -> context.Sequences:
    """Return the first n sequences."""
    chosen = None if task.chosen is None else task.chosen[:n]
    return replace(task, X=task.X[:n], H=task.H[:n], y=task.y[:n], chosen=chosen)


def bayes(alpha: float, noise: float) -> float:
    """Return the error of ridge regression on the context, as d grows."""
    return context.ridge_in_context(alpha, noise).value


def floors(new: Iterable[float], old: Iterable[float]) -> list[Test]:
    """Return the tests that nothing leaked: errors on new tasks over Bayes, and on training tasks over the noise, exceed 1.

    A layer that was shown its test tasks, or whose error was computed on the wrong ones, falls below.
    """
    return [
        Test(name, Exact(float(min(values))), above(1))
        for name, values in ((FLOOR_NEW, list(new)), (FLOOR_OLD, list(old)))
        if values
    ]


def leaked(tests: Sequence[Test]) -> Verdict | None:
    """Return the verdict on errors below their floor, before anything else is asked of them."""
    return decide(tests, "an error is below its floor") if min(test.side() for test in tests) < 0 else None


def limits(
    measurements: Sequence[Measurement[Any]],
    label: Callable[[Any], str],
    value: Callable[[Measurement[Any]], float],
    eps: float,
    sizes: int = SIZES,
) -> list[Test]:
    """Return a test for every setting: a ratio to theory, extrapolated to d = infinity, is 1 up to a share `eps`."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for m in measurements:
        groups.setdefault(label(m.point), []).append((m.point.d, value(m)))
    return [
        Test(f"{name}{LIMIT}", finite_size(rows, sizes=sizes), about(1, eps), expected=1.0)
        for name, rows in groups.items()
    ]


def fit_cost(d: int, tau: float, fits: float = 1.0) -> Cost:
    """Expect a fit of tau d^2 sequences, with the drawing of them."""
    return Cost(fits * (2e-3 + 6e-9 * max(tau, 0.3) * d**4), int(120_000_000 + 24 * tau * d**3))


def points(series: Series) -> Series:
    """Return the points of a series without theory: its curve is drawn finer than there are points."""
    return replace(series, theory=None)


def result_of(layer: context.Layer, **more: Any) -> Result:
    """Return the errors of a layer, and whether its fit converged."""
    found = layer.errors()
    return {"icl": found.icl, "idg": found.idg, "training": found.training, "converged": layer.converged} | more
