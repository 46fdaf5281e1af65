"""Half a turn in a plane: with long u every head is a step across its hyperplane, and bisection finds all of them."""

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.oracle import Lost, Task, Tasks
from attlas.recovery.view import View

Array = NDArray[np.float64]

_NARROW = 3e-5  # radians: an interval in which a head is neither off nor on holds that one step
_STEPS = 40  # bisections of an interval with one step
_SPLITS = 300  # intervals looked into in one half turn, before the answers are taken not to be those of heads
_ROUNDING = 1e-12  # noise below this is none


def turn(basis: Array, angle: float) -> Array:
    """Return the unit vector at an angle in the plane of the first two rows of a basis."""
    return np.asarray(np.cos(angle) * basis[0] + np.sin(angle) * basis[1])


class Plane:
    """D along a turn in the plane of the first two rows of a basis."""

    def __init__(self, view: View, basis: Array) -> None:
        self.view, self.basis = view, basis
        self.scale = float(np.linalg.norm(view.total)) or 1.0

    def ask(self, angle: float) -> Task:
        """Return where in the plane u was, and D(u), both over the length of u."""
        long = self.view.long
        u, D = yield from self.view(long * turn(self.basis, angle))
        return self.basis[:2] @ u / long, D / long

    def map(self, angles: tuple[float, float]) -> Task:
        """Return the linear map (2, d_out) of the cell of two angles, and how far it may be off."""
        asked = yield Tasks([self.ask(angle) for angle in angles])
        rows, answers = zip(*asked, strict=True)
        error = max(1e-7, 10 * self.view.noise / abs(angles[1] - angles[0])) * self.scale
        return np.linalg.solve(np.array(rows), np.array(answers)), error

    def cell(self, angle: float) -> Task:
        """Return the map of the cell at an angle: from two close queries or, if there is noise, the farthest that agree."""
        if self.view.noise > _ROUNDING:
            for apart in (0.1, 0.03, 0.01, 0.003):
                M, error = yield from self.map((angle, angle + apart))
                if (yield from self.misses(M, angle + 0.6 * apart)) < error:
                    return M, error
        return (yield from self.map((angle, angle + max(1e-6, float(np.sqrt(self.view.noise))))))

    def misses(self, M: Array, angle: float) -> Task:
        """Return by how much a map misses D at an angle."""
        place, D = yield from self.ask(angle)
        return float(np.linalg.norm(place @ M - D))


def steps_of(plane: Plane) -> list[tuple[float, Array]]:
    """Return the angles in [0, pi) at which D jumps, with the maps (2, d_out) of the cells before each."""
    found: list[tuple[float, Array]] = []
    splits = 0

    def split(low: float, before: tuple[Array, float], high: float, after: tuple[Array, float]) -> Task:
        """Find the steps between two cells: as long as every middle belongs to one of the two there is one step."""
        nonlocal splits
        if np.linalg.norm(before[0] - after[0]) < 3 * (before[1] + after[1]):
            return
        splits += 1
        if splits > _SPLITS:
            raise Lost("no end of steps: these answers are not those of saturated heads")
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            if (yield from plane.misses(before[0], middle)) < before[1]:
                low = middle
            elif (yield from plane.misses(after[0], middle)) < after[1]:
                high = middle
            elif high - low < _NARROW:
                low = high = middle
                break
            else:
                between = yield from plane.cell(middle)
                yield Tasks([split(low, before, middle, between), split(middle, between, high, after)])
                return
        found.append((0.5 * (low + high), before[0]))

    ask = plane.view.ask
    (first,) = ask.run(plane.cell(0.0))
    ask.run(split(0.0, first, np.pi, (plane.basis[:2] @ plane.view.total - first[0], first[1])))
    return sorted(found, key=lambda step: step[0])


def cells_of(plane: Plane, steps: list[tuple[float, Array]]) -> Array:
    """Return the linear maps (heads + 1, d, d_out) of D in the cells around the half turn, in the unit vectors.

    Directions out of the plane are seen by leaning out of it a little, less than would leave the cell; noise asks for more.
    """
    view, basis = plane.view, plane.basis
    noisy = view.noise > _ROUNDING
    angles = np.array([step[0] for step in steps])
    edges = np.concatenate([[angles[-1] - np.pi], angles])
    maps = np.empty((len(steps) + 1, *view.total.shape))

    def seen(cell: int) -> Task:
        middle, width = 0.5 * (edges[cell] + edges[cell + 1]), edges[cell + 1] - edges[cell]
        M = np.empty_like(view.total)  # in the basis
        if noisy:
            M[:2] = (yield from plane.map((middle - 0.4 * width, middle + 0.4 * width)))[0]
        else:
            M[:2] = steps[cell][1]
        lean = (0.1 if noisy else 0.01) * width
        leaning = [view(view.long * (turn(basis, middle) + lean * other)) for other in basis[2:]]
        for j, (u, D) in enumerate((yield Tasks(leaning)), start=2):
            place = basis @ u
            M[j] = (D - place[:2] @ M[:2]) / place[j]
        return basis.T @ M

    maps[:-1] = view.ask.run(*(seen(cell) for cell in range(len(steps))))
    maps[-1] = view.total - maps[0]
    return maps
