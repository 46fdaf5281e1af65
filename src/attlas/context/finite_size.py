"""The theory at a finite dimension: what a layer of d^2 parameters reaches for the very tasks it was given.

The rows x o h of the regression have norms that fluctuate by d^(-1/2). That alone makes the O(1/d) excess of the errors over
their limit, and it is kept here. `attlas.context.equivalent` has the equations for one set of tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from attlas.context.equivalent import equivalent
from attlas.context.layer import Errors
from attlas.context.tasks import TaskSet, draw_tasks
from attlas.inputs import integer, require_parts
from attlas.numerics import Event, Progress, Solution


@dataclass(frozen=True)
class FiniteSize(Solution[float]):
    """Errors at a finite d, each a mean over draws of tasks or of pools.

    Attributes
    ----------
    value, icl, idg, training : float
        As in `Theory`.
    standard_error : Errors
        Of icl, idg and training, from the scatter between draws; NaN with one draw.
    residual : float
        Last relative change of the iteration, the largest over draws.
    """

    idg: float = field(kw_only=True)
    training: float = field(kw_only=True)
    standard_error: Errors = field(kw_only=True)

    @property
    def icl(self) -> float:
        """Error on new tasks."""
        return self.value


def finite_size(
    d: int,
    alpha: float,
    kappa: float,
    tau: float,
    ridge: float = 0.0,
    noise: float = 0.0,
    *,
    draws: int = 8,
    pool: int | None = None,
    seed: int = 0,
    column: bool = True,
    test_alpha: float | None = None,
    spectrum: ArrayLike | None = None,
    test_spectrum: ArrayLike | None = None,
    progress: Progress | None = None,
    throw: bool = True,
) -> FiniteSize:
    """Return the errors of the trained layer at dimension d, 1/d terms included, as a mean over drawn sets of tasks.

    With delta = (d/n) |x|^2 h^T M h, M = (Q + ridge)^-1 and averages over sequences,

        Q = E[|x|^2 h h^T/(1 + delta)],      G = E[|x|^2 w h^T/(1 + delta)] M,
        V = (d/n) M E[|x|^2 h h^T e^2/(1 + delta)^2] M,      e^2 = noise + |x|^2 (|w - G h|^2/d + h^T V h),
        error = error(G) + tr(B_test V),      training = E[e^2/(1 + delta)^2].

    Parameters
    ----------
    d : int
    alpha, kappa, tau, ridge, noise, test_alpha, spectrum, test_spectrum
        As in `theory`; counts are rounded as in `sample`.
    draws : int, default 8
        Sets of tasks. Set i has the tasks that `sample` draws at seed + i.
    pool : int, optional
        Sequences that averages are taken over; 1000 d if not given. The errors are biased by about d/pool, more near
        tau = 1; at least 10 (d + 1).
    seed : int
    column : bool, default True
        As in `fit`.
    progress : callable, optional
        Called with an `Event` for every draw.
    throw : bool, default True
        Raise `ConvergenceError` if an iteration does not converge; otherwise the status says so.

    Raises
    ------
    InputError
        As `theory`; and where there are as many sequences as parameters, without ridge.

    Examples
    --------
    >>> from attlas import context
    >>> found = context.finite_size(10, alpha=2, kappa=1, tau=2, ridge=0.1, noise=0.1, draws=2, pool=2000)
    >>> bool(found.icl > context.theory(alpha=2, kappa=1, tau=2, ridge=0.1, noise=0.1).icl)  # small layers have more error
    True

    References
    ----------
    Ours: deterministic equivalents for rows of fluctuating norm. Checked against simulation at d = 20 and 40.
    """
    d, seed = integer(d, "d"), integer(seed, "seed", least=0)

    def one(i: int) -> Solution[Errors]:
        tasks = draw_tasks(d, alpha, kappa, noise, seed + i, spectrum)
        return equivalent(tasks, tau, ridge, pool, seed + i, column, tasks.fresh(test_alpha, test_spectrum))

    return _mean(one, integer(draws, "draws"), progress, throw)


def finite_size_of(
    tasks: TaskSet,
    tau: float,
    ridge: float = 0.0,
    *,
    draws: int = 2,
    pool: int | None = None,
    seed: int = 0,
    column: bool = True,
    test_alpha: float | None = None,
    test_spectrum: ArrayLike | None = None,
    progress: Progress | None = None,
    throw: bool = True,
) -> FiniteSize:
    """Return the same for the tasks given, as a mean over `draws` pools: what a layer trained on these tasks reaches.

    The remaining scatter of a simulation is that of its sequences.

    Examples
    --------
    >>> from attlas import context
    >>> tasks = context.draw_tasks(d=10, alpha=2, kappa=1, noise=0.1, seed=0)
    >>> found = context.finite_size_of(tasks, tau=2, ridge=0.1, draws=1, pool=2000)
    >>> found.status.name
    'CONVERGED'
    """
    require_parts(tasks, "tasks", ("fresh", "moments", "d"), "what `draw_tasks` returns, or the `tasks` of a `sample`")
    seed = integer(seed, "seed", least=0)
    fresh = tasks.fresh(test_alpha, test_spectrum)
    return _mean(
        lambda i: equivalent(tasks, tau, ridge, pool, seed + i, column, fresh), integer(draws, "draws"), progress, throw
    )


def _mean(one: Callable[[int], Solution[Errors]], draws: int, progress: Progress | None, throw: bool) -> FiniteSize:
    found: list[Solution[Errors]] = []
    for i in range(draws):
        found.append(one(i))
        if progress is not None:
            progress(Event(i + 1, draws, f"finite-size theory: {i + 1} of {draws} draws", found[-1].value.icl))
    values = np.array([each.value for each in found])
    spread = values.std(0, ddof=1) / sqrt(draws) if draws > 1 else np.full(3, nan)
    worst = max(found, key=lambda each: (not each.converged, each.residual))
    icl, idg, training = (float(v) for v in values.mean(0))
    result = FiniteSize(
        icl,
        worst.status,
        worst.residual,
        worst.steps,
        values[:, 0],
        idg=idg,
        training=training,
        standard_error=Errors(*(float(v) for v in spread)),
    )
    return result.or_raise("the finite-size theory") if throw else result
