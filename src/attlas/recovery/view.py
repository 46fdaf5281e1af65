"""What is seen of several heads with one final token: D(u) = sum_h sigma(g_h u) u V_h, and the logit of a live head."""

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.oracle import CountingOracle, Task

Array = NDArray[np.float64]


class View:
    """What is seen with the final token b: D(u) for two tokens [b + u; b], and for three; with what relative noise.

    What asks is a task, a generator that yields its queries (`CountingOracle.run`): independent ones go into one call.

    `total` (d, d_out) is the sum of all values, `long` the length of u at which heads count as saturated.
    """

    def __init__(self, ask: CountingOracle, b: Array, total: Array, noise: float, long: float) -> None:
        self.ask, self.b = ask, ask.rounded(b)
        self.offset = self.b @ total
        self.total, self.noise, self.long = total, noise, long

    def __call__(self, u: Array, copies: int = 1) -> Task:
        """Return the u that arithmetic made of it, and D(u)."""
        first = self.ask.rounded(self.b + u)
        answer = yield np.array([*[first] * copies, self.b])
        return first - self.b, answer - self.offset

    def moved(self, by: Array) -> "View":
        """Return the view with the final token b + by."""
        return View(self.ask, self.b + by, self.total, self.noise, self.long)

    def logit(self, u: Array, before: Array, jump: Array) -> Task:
        """Return u as asked and the logit of the live head there; None where it is saturated.

        `before` is the map of all others, `jump` that of the live head: D = u before + sigma(logit) u jump.
        """
        u, D = yield from self(u)
        value = u @ jump
        size = float(value @ value)
        share = float((D - u @ before) @ value) / size if size > 0 else np.nan
        least = max(1e-5, min(100 * self.noise, 0.01))
        if not least < share < 1 - least:
            return None
        return u, float(np.log(share / (1 - share)))

    def slope(self, base: Array, w: Array, before: Array, jump: Array, start: float) -> Task:
        """Return the change of the logit per length along w, from a move that changes it by about one."""
        move, best = 1.0, 0.0
        for _ in range(12):
            found = yield from self.logit(base + move * w, before, jump)
            if found is None:
                move /= 8
                continue
            best = (found[1] - start) / move
            if abs(found[1] - start) > 0.1 or move > 1e3:
                break
            move *= 8
        return best
