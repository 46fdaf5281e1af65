"""Baseline searches: gradients of the squared error in Theta and W together, from random starts."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import choice, integer, real
from attlas.numerics import Adam, Event, Progress, Status
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit
from attlas.recovery.layer import Layer
from attlas.recovery.variable_projection import eliminate

Array = NDArray[np.float64]

_BATCH = 128  # sequences in a step of Adam
_OFTEN = 20  # gradients between two events


def random_start(
    heads: int,
    d: int,
    rng: np.random.Generator,
    *,
    rank: int | None = None,
    bias: bool = False,
    d_keys: int | None = None,
) -> Array:
    """Return Theta (heads, d, d_keys) whose logits have standard deviation one; with a bias a last row of zeros is added.

    The dimension of the keys is d if it is not given.
    """
    e = d_keys or d
    if rank is None:
        Theta = rng.standard_normal((heads, d, e)) / np.sqrt(d * e)
    else:
        r = min(rank, d, e)
        Q = rng.standard_normal((heads, d, r))
        K = rng.standard_normal((heads, e, r))
        Theta = Q @ K.transpose(0, 2, 1) / (np.sqrt(d * e) * np.sqrt(r))
    return np.asarray(np.concatenate([Theta, np.zeros((heads, 1, e))], axis=1) if bias else Theta)


def gradient_search(
    data: Examples,
    heads: int,
    method: Literal["lbfgs", "adam"],
    rng: np.random.Generator,
    *,
    max_starts: int = 1,
    tol: float = 1e-12,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Fit:
    """Minimise |F(X) - Y|^2 over Theta and W by L-BFGS or by Adam, from random starts; the best one is kept.

    Y is scaled to unit mean square, and W starts as the best one for its Theta.

    Parameters
    ----------
    data : Examples
    heads : int
    method : {"lbfgs", "adam"}
    rng : numpy.random.Generator
        Of the starts and of Adam's batches.
    max_starts : int, default 1
    tol : float, default 1e-12
        The root mean square error, relative, that ends the search.
    max_steps : int, optional
        From every start: 500 iterations of L-BFGS, or 10,000 batches of Adam, over which its rate falls as a cosine.
    max_seconds : float, optional
        Stop by the clock, too; the result then depends on the machine, and its status is out of time.
    throw : bool, default False
        Raise `ConvergenceError` if it did not converge.
    progress : callable, optional
        Called with an `Event` after every twentieth gradient.

    Returns
    -------
    Fit
        `steps` counts gradients. L-BFGS converges where no step lowers the error any more; Adam, if it reaches `tol`.
    """
    descend, usual = _SEARCHES[choice(method, "method", _SEARCHES)]
    steps = integer(max_steps, "max_steps") if max_steps is not None else usual
    clock, goal = Clock(max_seconds), real(tol, "tol", least=0) ** 2
    scale = float(np.sqrt(np.mean(data.Y**2)))
    unit = replace(data, Y=data.Y / scale)
    shape = integer(heads, "heads"), data.X.shape[2], data.Y.shape[2]
    most, taken = integer(max_starts, "max_starts") * steps, 0
    runs: list[_Run] = []

    def tell(loss: float) -> None:
        nonlocal taken
        taken += 1
        if progress is not None and taken % _OFTEN == 0:
            text = f"{method}, start {len(runs) + 1}, gradient {taken}: error {np.sqrt(loss):.2e}"
            progress(Event(taken, most, text, float(np.sqrt(loss))))

    for _ in range(max_starts):
        Theta = random_start(heads, data.X.shape[2], rng)
        start = np.concatenate([Theta.ravel(), eliminate(unit, Theta).W.ravel()])
        runs.append(descend(unit, start, shape, steps, clock, rng, tell))
        if clock.out or runs[-1].loss <= goal:
            break
    best = min(runs, key=lambda run: run.loss)
    Theta, W = _matrices(best.v, shape)
    W = W * scale
    status = Status.CONVERGED if best.loss <= goal else clock.status(best.status)
    history = np.sqrt([run.loss for run in runs])
    fit = Fit(Layer(Theta, W, causal=data.causal), status, data.residual(Theta, W), taken, history)
    return fit.or_raise(method) if throw else fit


def loss_and_gradient(data: Examples, v: Array, shape: tuple[int, int, int]) -> tuple[float, Array]:
    """Return the mean squared error of (Theta, W), flattened one after the other, and its gradient."""
    _, d, out = shape
    Theta, W = _matrices(v, shape)
    attended = [data.attend(theta) for theta in Theta]
    R = sum(Z @ value for (_, Z), value in zip(attended, W, strict=True)) - data.Y
    slope = R * (2 / R.size)
    gradient_Theta, gradient_W = np.empty_like(Theta), np.empty_like(W)
    for i, (P, Z) in enumerate(attended):
        gradient_W[i] = Z.reshape(-1, d).T @ slope.reshape(-1, out)
        pull = (slope @ W[i].T) @ data.X.transpose(0, 2, 1)  # of the output on each attention weight
        logits = P * (pull - np.sum(P * pull, axis=2, keepdims=True))
        gradient_Theta[i] = data.queries.reshape(-1, d).T @ (logits @ data.X).reshape(-1, d)
    return float(np.mean(R * R)), np.concatenate([gradient_Theta.ravel(), gradient_W.ravel()])


def _matrices(v: Array, shape: tuple[int, int, int]) -> tuple[Array, Array]:
    heads, d, out = shape
    cut = heads * d * d
    return v[:cut].reshape(heads, d, d), v[cut:].reshape(heads, d, out)


class _Run(NamedTuple):
    """Where a search from one start ended: its loss, the parameters, how it ended."""

    loss: float
    v: Array
    status: Status


def _lbfgs(
    data: Examples,
    start: Array,
    shape: tuple[int, int, int],
    steps: int,
    clock: Clock,
    _: np.random.Generator,
    tell: Callable[[float], None],
) -> _Run:
    from scipy.optimize import minimize

    best, found, status = np.inf, start, Status.OUT_OF_TIME

    class _OutOfTime(Exception):
        pass

    def value(v: Array) -> tuple[float, Array]:
        nonlocal best, found
        loss, slope = loss_and_gradient(data, v, shape)
        if loss < best:
            best, found = loss, v.copy()
        tell(loss)
        if clock.out:
            raise _OutOfTime
        return loss, slope

    options = {"maxiter": steps, "maxcor": 30, "ftol": 1e-30, "gtol": 1e-14, "maxfun": 4 * steps}
    with contextlib.suppress(_OutOfTime):
        ended = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
        status = Status.OUT_OF_STEPS if ended.status == 1 else Status.CONVERGED  # 2: no step lowers it, to rounding
    return _Run(best, found, status)


def _adam(
    data: Examples,
    start: Array,
    shape: tuple[int, int, int],
    steps: int,
    clock: Clock,
    rng: np.random.Generator,
    tell: Callable[[float], None],
) -> _Run:
    """The rate falls as a cosine over the steps, or over the seconds if those are fewer."""
    v, update, order = start.copy(), Adam(start[None]), np.arange(0)
    for step in range(1, steps + 1):
        if clock.out:
            break
        if len(order) < _BATCH:
            order = rng.permutation(len(data.X))
        loss, slope = loss_and_gradient(data.take(order[:_BATCH]), v, shape)
        order = order[_BATCH:]
        rate = 0.01 * 0.5 * (1 + np.cos(np.pi * max(step / steps, clock.share))) + 1e-6
        v = v + rate * update(slope[None])[0]
        tell(loss)
    return _Run(loss_and_gradient(data, v, shape)[0], v, Status.OUT_OF_STEPS)


_SEARCHES = {"lbfgs": (_lbfgs, 500), "adam": (_adam, 10_000)}
