"""State evolution of the trained layer: its two minima, one that goes by place and one that goes by meaning.

With w = (sqrt2 c m + (theta/sigma^2) S + sd xi, (theta/sigma^2) R + sd xi'), sd^2 = q - theta^2/sigma^2, and
f = (prox(w) - w)/V,

    qhat = alpha E|f|^2,   mhat = sqrt2 alpha c E f_s,
    [[sigma^2, theta], [theta, q]] (a, b) = (E f.z, E f.w0),   thetahat = alpha a,   Vhat = -alpha b,
    D = lambda + sigma^2 Vhat,   V = sigma^2/D,   m = mhat/D,   theta = sigma^4 thetahat/D,
    q = sigma^2 (sigma^2 qhat + mhat^2 + sigma^4 thetahat^2)/D^2.

b is E div f by Stein's identity, right also where the proximal map jumps. theta = 0 and m = 0 are each kept by the map:
these are the two branches.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import described, integer, real
from attlas.numerics import Event, Progress, Status
from attlas.positional.averages import COARSE, FINE, USUAL, Averages, Rule, averages
from attlas.positional.fixed_point import Branch, FixedPoint, Order, check_branch, least_order
from attlas.positional.mixing import Mixing
from attlas.positional.model import Model, check_scale

Array = NDArray[np.float64]

_RULES = ((1e-4, COARSE), (1e-6, USUAL), (1e-8, FINE))
_SETTLED = 1e-6  # at the coarse rule
_DAMPED = 6  # sweeps of half steps at the beginning
_LONGEST = 0.5  # of a step, in the logarithms of q and V and relative for m and theta
_UNRESOLVED = 0.02  # change from one rule to the next beyond which the quadrature is too coarse
_FADED = 0.2  # of `least_order`: a mechanism that falls below it is gone
_NOTHING = 1e-9  # of |Q|^2/d: what counts as zero
_PATIENCE = 25  # steps without any progress after which a search begins
_SPREAD, _CLOSER = 0.7, 6  # of a search: from one value of m or theta to the next, and looks between two of them
_TOUCHES = -0.15  # relative change of m or theta in a step, below zero, that may hide a fixed point nearby
_LARGEST = 1e6  # of q, m, theta and V of a start
WEAKEST, STRONGEST = 1e-3, 1e6  # encoding
WIDEST = 3.0  # token scale: beyond it the averages take too many panels, and jumps carry most of the response
_TILT = 1e-4  # of the differences that give the derivatives of the map


def state_evolution(
    model: Model,
    alpha: float,
    branch: Branch = "positional",
    *,
    tol: float = 1e-6,
    start: Order | FixedPoint | None = None,
    max_steps: int = 150,
    throw: bool = True,
    progress: Progress | None = None,
) -> FixedPoint:
    """Return what the positional or the semantic minimum has learned from n = alpha d samples, as d grows.

    Parameters
    ----------
    model : Model
    alpha : float
        Samples over d, positive.
    branch : {"positional", "semantic"}
        Which minimum. The semantic one does not depend on the encoding.
    tol : float, default 1e-6
        Relative accuracy of q, V, m and theta, 1e-8 at least. It chooses the quadrature: 1e-8 costs three times as much as
        1e-6, and 1e-4 a third.
    start : Order or FixedPoint, optional
        Where to begin, such as the solution at a neighbouring alpha.
    max_steps : int, default 150
        Of the iteration. Where it does not settle, a search along m or theta takes up to twice as many more; that also finds
        out where there is no such solution.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is the residual.

    Returns
    -------
    FixedPoint
        Its `notes` say where the theory is approximate, and where there is no such solution.

    Examples
    --------
    >>> from attlas import positional
    >>> model = positional.Model(mixture=0.3, encoding=3.0)
    >>> found = positional.state_evolution(model, alpha=3, branch="semantic", tol=1e-4)
    >>> print(f"{found.loss:.4f} {found.test:.4f} {found.theta:.4f}")
    0.1071 0.0441 0.4942

    References
    ----------
    cui2024phase; derived again with an encoding of any strength, and with Stein's identity for the response.
    """
    alpha, tol = real(alpha, "alpha", above=0), real(tol, "tol", above=0)
    check_branch(branch)
    if tol < _RULES[-1][0]:
        raise InputError(f"tol must be at least {_RULES[-1][0]:g}, what the finest quadrature gives; got {tol:g}")
    check_scale(model, WIDEST, "the state evolution")
    if branch == "positional" and model.encoding == 0:
        raise InputError(
            'branch="positional" needs an encoding; got encoding=0: without one nothing tells the places apart;'
            ' take encoding > 0, or branch="semantic"'
        )
    if branch == "positional" and not WEAKEST <= model.encoding <= STRONGEST:
        raise InputError(
            f"the positional branch is computed for an encoding between {WEAKEST:g} and {STRONGEST:g}: below it there is no"
            f" positional minimum, above it m is lost in rounding; got encoding = {model.encoding:g}"
        )
    walk = _Walk(model, alpha, branch, integer(max_steps, "max_steps"), progress)
    begin = start_of(model, alpha, branch) if start is None else order_of(start)
    x, status = walk.settle(walk.vector(begin), cold=start is None)
    if status is Status.OUT_OF_STEPS:
        x, status = walk.search(walk.vector(start_of(model, alpha, branch)), x)
    crude = x
    rule = next(rule for least, rule in _RULES if tol >= least * (1 - 1e-9))
    if status is Status.CONVERGED and rule is not COARSE:
        x, status = walk.refine(x, rule, tol / 10)
    rule_error = _RULES[0][0] if rule is COARSE else float(np.abs(x - crude).max())
    found = walk.found(x, rule, status, rule_error)
    return found.or_raise(f"the {branch} branch at alpha = {alpha:g}") if throw else found


def order_of(start: Order | FixedPoint) -> Order:
    """Return the order parameters that a start holds."""
    if not isinstance(start, Order | FixedPoint):
        raise InputError(
            f"start must be an Order(q, m, theta, V) or a FixedPoint, such as a solution nearby; got {described(start)}"
        )
    given = zip(Order._fields, start.order, strict=True)
    return Order(*(real(value, f"{name} of start", above=-_LARGEST, below=_LARGEST) for name, value in given))


def start_of(model: Model, alpha: float, branch: Branch) -> Order:
    """Return where a solution is begun if nothing is known."""
    variance = model.token_scale**2
    V = variance / (model.decay + 0.1 * alpha * variance**2)
    if branch == "positional":
        m = 0.42 / model.encoding
        return Order(2 * variance * m * m, m, 0.0, V)
    theta = 0.5 * variance
    return Order(1.3 * theta**2 / variance, 0.0, theta, V)


class _Walk:
    """The map in the variables x = (log sd^2, log V, log m or log theta), and the way to its fixed point."""

    def __init__(self, model: Model, alpha: float, branch: Branch, max_steps: int, progress: Progress | None) -> None:
        self.model, self.alpha, self.branch = model, alpha, branch
        self.max_steps, self.progress = max_steps, progress
        self.history: list[Array] = []
        self.residual = self.growth = np.inf
        self.last: Averages | None = None
        self.at, self.rule = np.empty(0), COARSE  # where, and by which rule, the last averages were taken
        self.faded = False  # whether the branch has lost its mechanism: m or theta is zero from then on
        self.least = np.log(_FADED * least_order(branch, model.token_scale, model.encoding))
        self.nothing = np.log(_NOTHING * model.token_scale**2)

    def vector(self, order: Order) -> Array:
        own = order.m if self.branch == "positional" else order.theta
        rest = order.q - (order.theta / self.model.token_scale) ** 2
        if not (rest > 0 and order.V > 0 and own != 0):
            raise InputError(
                f"start must have V and the {self.branch} order parameter above 0, and sigma^2 q above theta^2; got {order}"
            )
        return np.log([rest, order.V, abs(own)])

    def order(self, x: Array) -> Order:
        rest, V, own = np.exp(x)
        own = 0.0 if self.faded else own
        if self.branch == "positional":
            return Order(rest, own, 0.0, V)
        return Order(rest + (own / self.model.token_scale) ** 2, 0.0, own, V)

    def image(self, x: Array, rule: Rule) -> Array:
        """Return where the map leads, and record the step."""
        now = self.order(x)
        self.at, self.rule = x, rule
        self.last = at = averages(self.model, rule, now.V, now.q, now.m, now.theta)
        new = mapped(self.model, self.alpha, self.branch, now, at)
        rest = new.q - (new.theta / self.model.token_scale) ** 2
        image = np.log(np.maximum([rest, new.V, new.m + new.theta], np.exp(x) / 20))
        if self.faded:
            image[2] = x[2]
        if self.vanished(x):
            image[0] = max(image[0], x[0])
        self.residual = float(np.abs(image - x).max())
        self.history.append(np.array([now.q, now.V, now.m + now.theta]))
        if self.progress is not None:
            text = f"step {len(self.history)}, the order parameters change by {self.residual:.1e}"
            self.progress(Event(len(self.history), self.max_steps, text, self.residual))
        return image

    def settle(self, x: Array, cold: bool) -> tuple[Array, Status]:
        """Return the fixed point at the coarse rule, by damped steps and Anderson's mixing."""
        mixing, best, least, damped = Mixing(depth=4), x, np.inf, _DAMPED if cold else 0
        better = 0  # the last step that brought x closer
        for step in range(self.max_steps):
            image = self.image(x, COARSE)
            if not self.residual < 20 * least:  # mixing has led astray
                if not np.isfinite(least):
                    return x, Status.DIVERGED
                x, mixing, damped = best, Mixing(depth=4), _DAMPED
                image = self.image(x, COARSE)
            if self.residual < least:
                best, least, better = x, self.residual, step
            if step - better > _PATIENCE:
                break
            if self.residual < _SETTLED:
                return x, Status.CONVERGED
            if not self.faded and image[2] < x[2] < self.least:
                self.faded, mixing, least = True, Mixing(depth=4), np.inf
                continue
            new = x + (image - x) / 2 if damped > 0 else mixing(x, image - x)
            x, damped = x + np.clip(new - x, -_LONGEST, _LONGEST), damped - 1
            x[0] = max(x[0], self.nothing)
        return x, Status.OUT_OF_STEPS

    def search(self, x: Array, stuck: Array) -> tuple[Array, Status]:
        """Return the fixed point with the largest m or theta at the coarse rule, or the one without any if there is none.

        For each value of it, from large to small, the other two parameters settle first; the map then says whether it grows
        or falls. It is what to do where jumps carry much of the response, and the usual steps lead back and forth.
        """
        budget, self.faded = len(self.history) + 2 * self.max_steps, False
        values = [x[2] + np.log(2.0)]
        while values[-1] > self.least:
            values.append(values[-1] + np.log(_SPREAD))
        looks: list[tuple[Array, float]] = []
        for value in values:
            x = self.hold(x, value, budget)
            if len(self.history) >= budget or not np.isfinite(self.growth):
                return stuck, Status.OUT_OF_STEPS
            looks.append((x, self.growth))
            if self.growth > 0:
                break
        if self.growth <= 0:  # a summit between two looks may reach above zero
            at = max(range(len(looks)), key=lambda i: looks[i][1])
            if looks[at][1] > _TOUCHES and 0 < at < len(looks) - 1:
                looks = self.summit(looks[at - 1 : at + 2], budget)
        if looks[-1][1] <= 0:
            self.faded = True
            return self.settle(x, cold=True)
        if len(looks) == 1:
            return self.settle(x, cold=True)
        return self.bisect(looks[-2], looks[-1], budget)

    def hold(self, x: Array, value: float, budget: int) -> Array:
        """Return x with this m or theta and the other parameters where the map leads them; set `growth` of the former."""
        x = np.array([x[0], x[1], value])
        mixing = Mixing(depth=2)
        for step in range(40):
            image = self.image(x, COARSE)
            move = image - x
            self.growth, move[2] = float(move[2]), 0.0
            if (
                np.abs(move).max() < max(_SETTLED / 3, 0.05 * abs(self.growth))
                or not np.isfinite(move).all()
                or len(self.history) >= budget
            ):
                break
            new = x + move / 2 if step < 4 else mixing(x, move)
            x = x + np.clip(new - x, -_LONGEST, _LONGEST)
            x[0] = max(x[0], self.nothing)
        return x

    def summit(self, looks: list[tuple[Array, float]], budget: int) -> list[tuple[Array, float]]:
        """Return two looks around the upper zero of the growth if it rises above zero between three of them."""
        (high, _), (mid, best), (low, _) = looks
        for _ in range(_CLOSER):
            for other in (high, low):
                x = self.hold(mid, (mid[2] + other[2]) / 2, budget)
                growth = self.growth
                if growth > 0:
                    return [(high, -1.0), (x, growth)]
                if growth > best:
                    low, high = (mid, high) if other is high else (low, mid)
                    mid, best = x, growth
                    break
            else:
                high, low = ((mid + other) / 2 for other in (high, low))
        return [(mid, best)]

    def bisect(self, above: tuple[Array, float], below: tuple[Array, float], budget: int) -> tuple[Array, Status]:
        """Return the fixed point between a look where its m or theta falls and one where it grows."""
        (high, falls), (low, grows) = above, below
        x = low
        for _ in range(60):
            share = 0.5 if min(-falls, grows) < 0.05 * max(-falls, grows) else grows / (grows - falls)
            x = self.hold(x, low[2] + share * (high[2] - low[2]), budget)
            if self.residual < _SETTLED:
                return x, Status.CONVERGED
            if len(self.history) >= budget or not np.isfinite(self.growth):
                break
            if self.growth > 0:
                low, grows = x, self.growth
            else:
                high, falls = x, self.growth
        return x, Status.OUT_OF_STEPS

    def vanished(self, x: Array) -> bool:
        """Whether nothing is left of Q."""
        return bool(x[0] <= self.nothing)

    def refine(self, x: Array, rule: Rule, tol: float) -> tuple[Array, Status]:
        """Return the fixed point at a finer rule, by Newton's iteration with the derivatives of the coarse one."""
        centre, J = self.image(x, COARSE), np.zeros((3, 3))
        for i, tilt in enumerate(_TILT * np.eye(3)[: 2 if self.faded else 3]):
            J[:, i] = (self.image(x + tilt, COARSE) - centre) / _TILT
            self.history.pop()  # a difference is no step
        inverse = np.linalg.inv(np.eye(3) - J)
        for _ in range(12):
            image = self.image(x, rule)
            if not np.isfinite(image).all():
                return x, Status.DIVERGED
            if self.residual < tol:
                return x, Status.CONVERGED
            x = x + np.clip(inverse @ (image - x), -_LONGEST, _LONGEST)
        return x, Status.OUT_OF_STEPS

    def found(self, x: Array, rule: Rule, status: Status, rule_error: float) -> FixedPoint:
        """Return the fixed point with all that follows from it."""
        at = self.last
        if at is None or not np.array_equal(self.at, x) or rule is not self.rule:
            self.image(x, rule)
            at = self.last
        assert at is not None  # noqa: S101 (for mypy: image has just set it)
        model, alpha, now = self.model, self.alpha, Order(*map(float, self.order(x)))
        gone = self.faded and self.vanished(x)  # Q = 0: what is left of q is the floor of the iteration
        variance = model.token_scale**2
        Vhat, D = response(model, alpha, now, at)
        if self.branch == "positional":
            slope = (alpha * at.meaning + variance * Vhat) / D
        else:
            slope = 2 * alpha * model.encoding**2 * at.place / D
        if status is Status.CONVERGED and rule_error > _UNRESOLVED:
            status = Status.INACCURATE
        return FixedPoint(
            alpha * at.loss + (0.0 if gone else model.decay * now.q / (2 * variance)),
            status,
            self.residual,
            len(self.history),
            np.array(self.history),
            test=2 * at.test,
            train=2 * at.loss,
            q=0.0 if gone else now.q,
            m=now.m,
            theta=now.theta,
            V=now.V,
            envelope=now.V * at.ff / 2 + at.loss,
            slope=slope,
            jump_share=alpha * at.jumps,
            replica=alpha * at.square,
            cosine=float(now.theta / np.sqrt(variance * now.q)),
            attention=np.array([[at.first, 1 - at.first], [1 - at.second, at.second]]),
            branch=self.branch,
            alpha=alpha,
            rule_error=rule_error,
            token_scale=model.token_scale,
            encoding=model.encoding,
        )


def response(model: Model, alpha: float, now: Order, at: Averages) -> tuple[float, float]:
    """Return Vhat and D."""
    variance = model.token_scale**2
    b = (variance * at.fw - now.theta * at.fz) / (variance * now.q - now.theta**2)
    return -alpha * b, model.decay - alpha * variance * b


def mapped(model: Model, alpha: float, branch: Branch, now: Order, at: Averages) -> Order:
    """Return where one step of the map leads; m moves by a damped step, since the plain one diverges."""
    variance = model.token_scale**2
    Vhat, D = response(model, alpha, now, at)
    mhat = np.sqrt(2) * alpha * model.encoding * at.f_s if branch == "positional" else 0.0
    thetahat = alpha * (now.q * at.fz - now.theta * at.fw) / (variance * now.q - now.theta**2)
    if D <= 0:
        return Order(np.nan, np.nan, np.nan, np.nan)
    q = variance * (variance * alpha * at.ff + mhat**2 + variance**2 * thetahat**2) / D**2
    m = now.m + (mhat - D * now.m) / (D + 1.5 * model.encoding**2 * max(Vhat, 0.0))
    return Order(q, m, variance**2 * thetahat / D, variance / D)
