"""Where a piecewise linear function bends along a line.

Every line crosses every hyperplane of a network once, so that the kinks along one line are its neurons. Where the straight
pieces at the two ends of a stretch meet is the kink, if the function follows one of them up to there and the other from
there on; otherwise there are several kinks between, and the stretch is split.

References
----------
rolnick2020reverse; carlini2020cryptanalytic, section 4.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.oracle import Lost

Array = NDArray[np.float64]

_TRIES = 5  # places to look for a piece of straight line of each width in a stretch
_SPLITS = (200, 20)  # of one line, and for every kink found, before the function is taken not to be piecewise linear
_LEAST = 1e-10  # of its place: a stretch narrower than this is not split


class Smooth(Lost):
    """The function does not look piecewise linear."""


class Piece(NamedTuple):
    """The straight line through m with the value there and a slope, as three points w apart have shown it."""

    m: float
    w: float
    value: Array
    slope: Array
    size: float  # what rounding of its values is relative to

    def at(self, s: float) -> Array:
        """Return the line at s."""
        return self.value + self.slope * (s - self.m)


class Line:
    """A function along x0 + s v, s in [-reach, reach], that is asked for its kinks.

    Parameters
    ----------
    f : callable
        Of s; returns (d_out,).
    reach : float
    eps : float
        Relative accuracy of f.
    widths : tuple of float
        Of the three points of a piece, as shares of the room; tried in turn.
    near : float
        How close to a kink, as a share of the room, the function must be on the two lines.
    slack : float
        By how many times its accuracy the function may be off a straight line.
    """

    def __init__(
        self,
        f: Callable[[float], Array],
        reach: float = 1e5,
        eps: float = 1e-15,
        widths: tuple[float, ...] = (1e-2, 1e-4, 1e-6),
        near: float = 1e-3,
        slack: float = 100.0,
    ) -> None:
        self.f, self.reach, self.widths, self.near = f, reach, widths, near
        self.eps = slack * eps
        self.gain = 0.0  # of the function: its largest value over 1 + |s|
        self.splits = 0

    def kinks(self) -> list[float]:
        """Return all kinks, in order.

        Raises
        ------
        Smooth
            If the function does not look piecewise linear.
        """
        ends = [self._piece(s, self.reach, self.widths) for s in (-self.reach, self.reach)]
        if ends[0] is None or ends[1] is None:
            raise Smooth("the answers do not become linear for long tokens: the network may not be made of ReLUs")
        found: list[float] = []
        stretches = [(ends[0], ends[1])]
        while stretches:
            left, right = stretches.pop()
            if self._same(left, right):
                continue
            kink = self._meeting(left, right)
            if kink is not None:
                found.append(kink)
                continue
            self.splits += 1
            if self.splits > _SPLITS[0] + _SPLITS[1] * len(found):
                raise Smooth("no end of kinks: the network may not be made of ReLUs, or its answers are too noisy")
            middle = self._between(left, right)
            stretches += [(left, middle), (middle, right)]
        return sorted(found)

    def off(self, piece: Piece, s: float, value: Array) -> float:
        """Return how far a value at s is off a line, over what its accuracy allows."""
        return float(np.linalg.norm(piece.at(s) - value)) / self._allowed(piece, s)

    def _size(self, s: float, value: Array) -> float:
        self.gain = max(self.gain, float(np.linalg.norm(value)) / (1 + abs(s)))
        return float(np.linalg.norm(value)) + 0.1 * self.gain * (1 + abs(s))

    def _allowed(self, piece: Piece, s: float) -> float:
        return self.eps * (piece.size * (1 + abs(s - piece.m) / piece.w) + self.gain * (1 + abs(s)))

    def _piece(self, m: float, room: float, widths: tuple[float, ...]) -> Piece | None:
        """Return the line at m, if three points are on one."""
        value = self.f(m)
        for share in widths:
            w = share * min(room, 1 + abs(m))
            before, after = self.f(m - w), self.f(m + w)
            size = self._size(m, value) + float(np.linalg.norm(after - before))
            if np.linalg.norm(before + after - 2 * value) < self.eps * size:
                return Piece(m, w, value, (after - before) / (2 * w), size)
        return None

    def _same(self, left: Piece, right: Piece) -> bool:
        middle = 0.5 * (left.m + right.m)
        apart = float(np.linalg.norm(left.at(middle) - right.at(middle)))
        return apart < self._allowed(left, middle) + self._allowed(right, middle)

    def _meeting(self, left: Piece, right: Piece) -> float | None:
        """Return where two lines meet, if there and nowhere else the function turns from one to the other."""
        bend = right.slope - left.slope
        steep = float(bend @ bend)
        if steep == 0:
            return None
        s = left.m + float((left.value - right.at(left.m)) @ bend) / steep
        if not left.m < s < right.m:
            return None
        w = self.near * min(s - left.m, right.m - s, 1 + abs(s))
        if w <= 1e-13 * (1 + abs(s)):
            return None
        # a bend must be told from the accuracy of the two lines, or every place would be accepted
        if self._allowed(left, s) + self._allowed(right, s) > 0.05 * np.sqrt(steep) * w:
            return None
        if self.off(left, s - w, self.f(s - w)) > 1 or self.off(right, s + w, self.f(s + w)) > 1:
            return None
        here = self.f(s)
        return s if self.off(left, s, here) <= 1 and self.off(right, s, here) <= 1 else None

    def _between(self, left: Piece, right: Piece) -> Piece:
        """Return a line between two, near the middle of their angles: kinks of random networks are Cauchy distributed.

        A wide piece elsewhere is worth more than a narrow one in the middle, which shows its slope badly.
        """
        angles = np.arctan([left.m, right.m])
        if right.m - left.m < _LEAST * (1 + abs(left.m)):
            raise Smooth("no end of kinks: the network may not be made of ReLUs, or its answers are too noisy")
        for width in self.widths:
            for number in range(_TRIES):
                share = 0.5 + 0.4 * (-1) ** number * number / _TRIES
                m = float(np.tan(angles[0] + share * (angles[1] - angles[0])))
                if not left.m < m < right.m:
                    m = left.m + share * (right.m - left.m)
                piece = self._piece(m, min(m - left.m, right.m - m), (width,))
                if piece is not None:
                    return piece
        raise Smooth("the answers are straight nowhere along a line: the network may not be made of ReLUs")
