"""Large layers from examples: minibatch Adam on the factors in single precision, then L-BFGS in double.

A gradient costs O(n k d D) operations, where a step of variable projection costs O(n k m^2 d^4). Without noise the
gradient of a batch vanishes at the solution as that of all examples does, so Adam ends at the rounding of single precision,
not at a floor set by its rate. L-BFGS on all examples takes over from there, or from wherever Adam stalls: at the noise, or
at sharp logits.

References
----------
kingma2015adam; liu1989limited.
"""

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attlas.inputs import flag, integer, real
from attlas.numerics import Event, Progress, Status
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.factor_frame import Frame
from attlas.recovery.factor_gradient import Block, blocks, loss_and_gradient, outputs
from attlas.recovery.factors import Factors, Sizes
from attlas.recovery.fit import Fit
from attlas.recovery.layer import Layer

Array = NDArray[np.float64]

TOL = 1e-12
_ROWS = 500  # outputs in a batch
_RATE, _USUAL = (
    0.01,
    64,
)  # the rate up to this d; beyond, entries are smaller and there are more of them, so it falls as 1/d
_WARM = 50  # steps in which the rate grows to its full size
_POLISH = 1000  # gradients of L-BFGS at most, by default
_SINGLE = 3e-6  # a residual below which single precision no longer knows where down is
_PAIRS = 30  # that L-BFGS remembers
_STALL, _WINDOW = 1e-7, 20  # no more to be gained: the loss falls by less than this of itself in so many gradients
_LOOKED_AT = 500  # sequences, to tell which heads have an effect
_OFTEN = 50  # gradients between two events


def factor_fit(
    data: Examples,
    heads: int,
    rank: int,
    rng: np.random.Generator,
    *,
    biases: bool = False,
    spare: int = 0,
    tol: float = TOL,
    max_steps: int | None = None,
    max_polish: int = _POLISH,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Fit:
    """Fit Theta_i = A_i^T B_i and W_i = V_i^T O_i^T of a rank, from one random start, by |F(X) - Y|^2.

    Parameters
    ----------
    data : Examples
    heads, rank : int
    rng : numpy.random.Generator
        Of the start and of the batches.
    biases : bool, default False
        Fit a key bias of every head and an output bias, too.
    spare : int, default 0
        Heads more to begin with. Those of the least effect are dropped at the end, and the others polished without them:
        trained layers, whose heads are far from random ones, are hardly ever found with exactly as many heads as they have.
    tol : float, default 1e-12
        Relative residual |F(X) - Y|/|Y| on the examples that ends the search; |Y| is about its mean where there are biases.
    max_steps : int, optional
        Batches of Adam: 2000 up to d = 64, then in proportion to d^0.8 if not given.
    max_polish : int, default 1000
        Gradients of L-BFGS.
    max_seconds : float, optional
        Stop by the clock, too; the result then depends on the machine.
    throw : bool, default False
        Raise `ConvergenceError` if it did not converge.
    progress : callable, optional
        Called with an `Event` after every fiftieth gradient.

    Returns
    -------
    Fit
        Converged at `tol`, and also where the residual stopped falling above it. `steps` counts gradients, those of a batch
        and those of all examples alike; `history` has their residuals.
    """
    d, d_out = data.X.shape[2], data.Y.shape[2]
    sizes = Sizes(integer(heads, "heads"), integer(rank, "rank"), d, d_out, flag(biases, "biases"))
    wide = sizes._replace(heads=heads + integer(spare, "spare", least=0))
    steps = integer(max_steps, "max_steps") if max_steps is not None else usual_steps(d)
    goal, polish = real(tol, "tol", least=0), integer(max_polish, "max_polish", least=0)
    frame = Frame.of(data, sizes.biased)
    seen = frame.see(data)
    search = _Search(seen, wide, Clock(max_seconds), progress, steps + (1 + (spare > 0)) * polish)
    v = search.adam(random_factors(seen, wide, rng), steps, rng)
    v, status = search.polish(v, goal, polish)
    if spare:
        v = kept_heads(v, wide, heads, seen)
        search.sizes = sizes
        v, status = search.polish(v, goal, polish)
    layer = layer_of_factors(frame.back(v, sizes), sizes)
    residual = search.residual(v) * frame.scale * float(np.linalg.norm(seen.Y) / np.linalg.norm(data.Y))
    fit = Fit(layer, search.clock.status(status), residual, len(search.history), np.array(search.history))
    return fit.or_raise("the fit of factors") if throw else fit


def usual_steps(d: int) -> int:
    """Return how many batches Adam takes."""
    return int(2000 * max(1.0, d / _USUAL) ** 0.8)


def layer_of_factors(v: Array, sizes: Sizes) -> Layer:
    """Return the layer of some factors."""
    Theta, W, u, b = Factors.of(v, sizes).heads(sizes)
    return Layer(Theta, W, key_bias=u, output_bias=b) if sizes.biased else Layer(Theta, W)


def random_factors(data: Examples, sizes: Sizes, rng: np.random.Generator) -> Array:
    """Return a start whose logits have standard deviation one on white tokens, and the best O for it by ridge regression."""
    v = np.zeros(sizes.numbers)
    start = Factors.of(v, sizes)
    for M in start[:3]:
        M[:] = rng.standard_normal(M.shape) / np.sqrt(2 * sizes.d)
    v[: start.A.size + start.B.size] *= np.sqrt(2 / np.sqrt(sizes.rank))
    G, C = np.zeros((sizes.width, sizes.width)), np.zeros((sizes.d_out, sizes.width))
    for part, block in outputs(v, sizes, blocks(data, np.float64)):
        o = part.o.reshape(sizes.width, -1)
        G += o @ o.T
        C += block.Y.reshape(sizes.d_out, -1) @ o.T
    G.flat[:: len(G) + 1] += 1e-6 * float(np.trace(G)) + 1e-300
    start.O[:] = np.linalg.solve(G, C.T).T
    return v


def kept_heads(v: Array, sizes: Sizes, heads: int, data: Examples) -> Array:
    """Return the factors of those heads that have the largest effect on the outputs."""
    some = replace(data.take(slice(0, _LOOKED_AT)), bias=sizes.biased)
    Theta, W, u, _ = Factors.of(v, sizes).heads(sizes)
    stacked = np.concatenate([Theta, u[:, None]], axis=1) if sizes.biased else Theta
    effects = [float(np.linalg.norm(some.attend(theta)[1] @ value)) for theta, value in zip(stacked, W, strict=True)]
    order = np.sort(np.argsort(effects)[::-1][:heads])
    rows = (order[:, None] * sizes.rank + np.arange(sizes.rank)).ravel()
    found = Factors.of(v, sizes)
    parts = [found.A[rows], found.B[rows], found.V[rows], found.O[:, rows], found.a[rows] if sizes.biased else found.a]
    return np.concatenate([np.ravel(part) for part in (*parts, found.b)])


class _Over(Exception):
    """Ends L-BFGS from within."""


@dataclass
class _Search:
    """A search on one set of examples, in their frame."""

    data: Examples
    sizes: Sizes
    clock: Clock
    progress: Progress | None
    most: int
    history: list[float] = field(default_factory=list)

    def adam(self, start: Array, steps: int, rng: np.random.Generator) -> Array:
        """Return where Adam ends; its rate falls as a cosine."""
        n, q, d_out = self.data.Y.shape
        batch = min(n, max(1, round(_ROWS / q)))
        numbers = batch * q * d_out
        top = _RATE * min(1.0, _USUAL / self.sizes.d)
        v, mean, square, order = start.copy(), np.zeros_like(start), np.zeros_like(start), np.arange(0)
        for step in range(1, steps + 1):
            if self.clock.out:
                break
            if len(order) < batch:
                order = rng.permutation(n)
            loss, slope = loss_and_gradient(v, self.sizes, [Block.of(self.data, order[:batch], np.float32)])
            order = order[batch:]
            done = max(step / steps, self.clock.share)
            _adam_step(v, slope, mean, square, step, top * min(1.0, step / _WARM) * (1 + np.cos(np.pi * done)) / 2)
            self._tell("Adam", np.sqrt(loss / numbers))  # outputs have unit mean square
        return v

    def polish(self, v: Array, goal: float, steps: int) -> tuple[Array, Status]:
        """Return where L-BFGS ends: in single precision, and if it comes close there, or ends, in double precision."""
        v, status = self.lbfgs(v, np.float32, max(goal, _SINGLE), steps)
        if goal < _SINGLE and (status is Status.CONVERGED or self.residual(v) < 10 * _SINGLE):
            v, status = self.lbfgs(v, np.float64, goal, steps)
        return v, status

    def lbfgs(self, start: Array, dtype: Any, tol: float, steps: int) -> tuple[Array, Status]:
        """Return the best point met, and whether `tol` was reached or nothing more was to be gained."""
        from scipy.optimize import minimize

        parts, size = blocks(self.data, dtype), float(np.sum(self.data.Y**2))
        best, v, losses = np.inf, start, []

        def value(w: Array) -> tuple[float, Array]:
            nonlocal best, v
            loss, slope = loss_and_gradient(w, self.sizes, parts)
            loss /= size
            if loss < best:
                best, v = loss, w.copy()
            losses.append(best)
            self._tell("L-BFGS", np.sqrt(loss))
            if best <= tol**2 or len(losses) >= steps or self.clock.out or stalled():
                raise _Over
            return loss, slope / size

        def stalled() -> bool:
            return len(losses) > _WINDOW and losses[-_WINDOW - 1] - best <= _STALL * best

        if steps == 0:
            return start, Status.OUT_OF_STEPS
        options = {"maxiter": steps, "maxcor": _PAIRS, "ftol": 0.0, "gtol": 0.0, "maxfun": steps, "maxls": 40}
        ended = False
        with contextlib.suppress(_Over):
            minimize(value, start, jac=True, method="L-BFGS-B", options=options)
            ended = True  # no step lowers the loss, to rounding
        return v, Status.CONVERGED if ended or best <= tol**2 or stalled() else Status.OUT_OF_STEPS

    def residual(self, v: Array) -> float:
        """Return the relative residual on all examples."""
        parts, total = blocks(self.data, np.float64), 0.0
        for found, block in outputs(v, self.sizes, parts):
            total += float(np.sum((found.output - block.Y.reshape(found.output.shape)) ** 2))
        return float(np.sqrt(total / np.sum(self.data.Y**2)))

    def _tell(self, what: str, residual: float) -> None:
        self.history.append(float(residual))
        if self.progress is not None and len(self.history) % _OFTEN == 0:
            count = len(self.history)
            self.progress(Event(count, max(self.most, count), f"{what}, gradient {count}: {residual:.2e}", residual))


@njit(cache=True, nogil=True)
def _adam_step(v: Any, gradient: Any, mean: Any, square: Any, step: int, rate: float) -> None:
    """Move v by one step of Adam, all in one pass (kingma2015adam, algorithm 1)."""
    first, second = 1 - 0.9**step, 1 - 0.999**step
    for i in range(v.size):
        mean[i] += 0.1 * (gradient[i] - mean[i])
        square[i] += 0.001 * (gradient[i] * gradient[i] - square[i])
        v[i] -= rate * (mean[i] / first) / (np.sqrt(square[i] / second) + 1e-12)
