"""Searches that anyone would try: gradients of the squared error in Theta and W together, from random starts."""

import contextlib
import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import integer
from attlas.numerics import Adam
from attlas.recovery.examples import Examples
from attlas.recovery.variable_projection import Fit, eliminate

Array = NDArray[np.float64]

Method = Literal["lbfgs", "adam"]
_RESTART = 500  # iterations of L-BFGS from one start
_BATCH = 128  # sequences in a step of Adam


def random_start(heads: int, d: int, rng: np.random.Generator) -> Array:
    """Return Theta (heads, d, d) whose logits have standard deviation one."""
    return np.asarray(rng.standard_normal((heads, d, d)) / d)


def gradient_search(
    data: Examples,
    heads: int,
    method: Method,
    rng: np.random.Generator,
    budget: float,
    tol: float = 1e-12,
    max_starts: int = 1000,
    adam_steps: int = 10_000,
) -> Fit:
    """Minimise |F(X) - Y|^2 over Theta and W by L-BFGS with restarts or by Adam; the best start is kept.

    `steps` of the result counts evaluations of the gradient. Y is scaled to unit mean square, and W starts as the best one
    for its Theta. `budget` is in seconds; with an infinite one and a number of starts every machine gives the same result.
    """
    end = time.perf_counter() + budget
    scale = float(np.sqrt(np.mean(data.Y**2)))
    unit = Examples(data.X, data.queries, data.Y / scale)
    d, out = data.X.shape[2], data.Y.shape[2]
    cut, steps, runs = heads * d * d, 0, []
    for _ in range(integer(max_starts, "max_starts")):
        Theta = random_start(heads, d, rng)
        start = np.concatenate([Theta.ravel(), eliminate(unit, Theta).W.ravel()])
        if method == "lbfgs":
            loss, found, taken = _lbfgs(unit, start, (heads, d, out), end)
        else:
            loss, found, taken = _adam(unit, start, (heads, d, out), end, adam_steps, rng)
        steps += taken
        runs.append((loss, found))
        if time.perf_counter() > end or loss <= tol**2:
            break
    found = min(runs, key=lambda run: run[0])[1]
    Theta, W = found[:cut].reshape(heads, d, d), found[cut:].reshape(heads, d, out) * scale
    return Fit(Theta, W, data.residual(Theta, W), steps, False)


def loss_and_gradient(data: Examples, v: Array, shape: tuple[int, int, int]) -> tuple[float, Array]:
    """Return the mean squared error of (Theta, W), flattened one after the other, and its gradient."""
    heads, d, out = shape
    cut = heads * d * d
    Theta, W = v[:cut].reshape(heads, d, d), v[cut:].reshape(heads, d, out)
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


def _lbfgs(
    data: Examples,
    start: Array,
    shape: tuple[int, int, int],
    end: float,
) -> tuple[float, Array, int]:
    from scipy.optimize import minimize

    best, found, taken = np.inf, start, 0

    class _OutOfTime(Exception):
        pass

    def value(v: Array) -> tuple[float, Array]:
        nonlocal best, found, taken
        taken += 1
        loss, slope = loss_and_gradient(data, v, shape)
        if loss < best:
            best, found = loss, v.copy()
        if time.perf_counter() > end:
            raise _OutOfTime
        return loss, slope

    options = {"maxiter": _RESTART, "maxcor": 30, "ftol": 1e-30, "gtol": 1e-14, "maxfun": 4 * _RESTART}
    with contextlib.suppress(_OutOfTime):
        minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    return best, found, taken


def _adam(
    data: Examples, start: Array, shape: tuple[int, int, int], end: float, steps: int, rng: np.random.Generator
) -> tuple[float, Array, int]:
    """The rate falls as a cosine over the steps, or over the time if that is shorter."""
    v, update = start.copy(), Adam(start[None])
    began, step, order = time.perf_counter(), 0, np.arange(0)
    while step < steps and (now := time.perf_counter()) < end:
        if len(order) < _BATCH:
            order = rng.permutation(len(data.X))
        slope = loss_and_gradient(data.take(order[:_BATCH]), v, shape)[1]
        order = order[_BATCH:]
        step += 1
        share = max(step / steps, (now - began) / (end - began) if end < np.inf else 0.0)
        rate = 0.01 * 0.5 * (1 + np.cos(np.pi * share)) + 1e-6
        v = v + rate * update(slope[None])[0]
    return loss_and_gradient(data, v, shape)[0], v, step
