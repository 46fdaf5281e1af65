"""Solved settings of one learner with one number of heads: any n, any penalty, each started from its neighbour."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.features.sharp.fixed_point import Equations, Image, Response, respond, solve
from attlas.features.sharp.model import Placed
from attlas.features.sharp.spectrum import Spectrum
from attlas.numerics import Solution, Status

Array = NDArray[np.float64]


class Point(NamedTuple):
    """A solved setting."""

    n: float
    ridge: float
    response: Response
    solution: Solution[Array]

    def error(self, target: Placed, noise: float) -> float:
        """Return the test error over variance of a target with label noise of `noise` times its variance."""
        return float(self.mean_square(target) / target.variance + noise * self.response.noise)

    def mean_square(self, target: Placed) -> float:
        """Return the squared test error without label noise. What no sector holds stays, and acts as noise on the rest."""
        return float(target.energies @ self.response.H + target.outside * (1 + self.response.noise))


@dataclass(frozen=True)
class Predictor:
    """A spectrum, samples of the lengths of features, and the number of heads (units of the model)."""

    spectrum: Spectrum
    tau: Array = field(repr=False)
    heads: float

    def at(self, n: float, ridge: float, start: Point | None = None) -> Point:
        """Return the solved setting, from a neighbour if one is given.

        Where Newton's method does not arrive from there, it starts anew, and at last follows the solution down from a
        penalty so large that all is simple.
        """
        equations = Equations(self.spectrum, self.tau, n, ridge, self.heads)
        found, image = None, None
        if start is not None and start.solution.converged:
            found, image = solve(equations, start.solution.value, max_steps=12)
        if found is None or image is None or not found.converged:
            found, image = solve(equations, max_steps=60)
        if not found.converged:
            found, image = self._followed(n, ridge)
        return Point(n, ridge, respond(equations, found.value, image), found)

    def _followed(self, n: float, ridge: float) -> tuple[Solution[Array], Image]:
        """Return the solution reached from a large penalty, a factor of three at a time."""
        large = 1e3 * self.spectrum.trace * n
        steps = max(2, int(np.ceil(np.log(max(large / ridge, 10.0)) / np.log(3))))
        found, image = solve(Equations(self.spectrum, self.tau, n, large, self.heads))
        for penalty in np.geomspace(large, ridge, steps)[1:]:
            if found.status is Status.DIVERGED:
                break
            found, image = solve(Equations(self.spectrum, self.tau, n, float(penalty), self.heads), found.value)
        return found, image
