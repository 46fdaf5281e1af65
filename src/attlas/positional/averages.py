"""Averages over the teacher's tokens and the student's: the integrals behind the state evolution, compiled.

Four Gaussian variables: S, R of the teacher and w_s, w_r of the student given them, in the order R > 0, w_r, S, w_s from
without to within. The innermost integral is split at w*, where the proximal map may jump, w_s = w* +- length y^3, since s
goes as (w_s - w*)^(1/3) at the worst. S is cut where the jump sets in, S - S_c = +- length y^2. With tokens that are alike
(A_11 = A_22) half of the values of S suffices.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attlas.positional.model import Model
from attlas.positional.panels import legendre, panels
from attlas.positional.proximal import jump, minimum, split

Array = NDArray[np.float64]

_R_CUTS = (0.0, 1.1, 2.3, 3.8, 6.5)  # in units of sigma
_S_CUTS = (0.0, 0.9, 1.8, 3.0, 4.4, 6.5)  # absolute: sig has its poles at S^2 = +- i pi
_LEAST = 0.8  # of a panel; a shorter one joins the last
_SCAN = 48  # values of S between which the onset of the jump is looked for
_ONSETS = 16  # at most so many are kept


class Averages(NamedTuple):
    """E over samples, f = (prox(w) - w)/V, w0 = w without the shift of the encoding, z = (S, R).

    Attributes
    ----------
    weight : float
        E 1: by how much it misses one is an error of the rule.
    ff, f_s, fz, fw : float
        E |f|^2, E f_s, E f.z, E f.w0.
    loss, test : float
        E loss(prox), E loss(w).
    meaning, place : float
        E (f.z)(z.x) and E f_s x_s, where x = (w - E[w|z])/sd^2: derivatives of E f.z and E f_s by a shift of w.
    trace, square : float
        E Tr(dprox - I) and E |dprox - I|_F^2, jumps left out.
    jumps : float
        What jumps add to E Tr dprox.
    first, second : float
        E softmax(h h^T)_11 and E softmax(h h^T)_22.
    """

    weight: float
    ff: float
    f_s: float
    fz: float
    fw: float
    loss: float
    test: float
    meaning: float
    place: float
    trace: float
    square: float
    jumps: float
    first: float
    second: float


@dataclass(frozen=True)
class Rule:
    """Nodes for R (each panel), w_r, S (each panel) and w_s (each side), and how many standard deviations are covered."""

    R: int
    w_r: int
    S: int
    w_s: int
    reach: float = 6.5


COARSE = Rule(5, 8, 6, 18, 4.6)  # good to 1e-4
USUAL = Rule(7, 10, 9, 28, 5.9)  # to 1e-6
FINE = Rule(11, 14, 14, 40)  # to 1e-8


def averages(model: Model, rule: Rule, V: float, q: float, m: float, theta: float) -> Averages:
    """Return the averages at these order parameters; m or theta has to be zero."""
    sigma = model.token_scale
    R, R_weights = panels(_until(_R_CUTS, rule.reach) * sigma, rule.R)
    R_weights = 2 * R_weights * np.exp(-0.5 * (R / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    x, x_weights = np.polynomial.hermite_e.hermegauss(rule.w_r)
    found = _averages(
        V,
        np.sqrt(2) * model.encoding * m,
        theta / sigma**2,
        np.sqrt(max(q - (theta / sigma) ** 2, 1e-300)),
        sigma,
        model.mixture,
        *model.diagonal,
        model.symmetric,
        R,
        R_weights,
        x,
        x_weights / np.sqrt(2 * np.pi),
        _until(_S_CUTS, rule.reach * sigma),
        rule.reach,
        *legendre(rule.S),
        *legendre(rule.w_s),
    )
    at = Averages(*(float(value) for value in found))
    if model.symmetric:  # half of S is integrated, the other half exchanges the tokens
        at = at._replace(first=(at.first + at.second) / 2, second=(at.first + at.second) / 2)
    # half of the values of (S, R) is integrated; what is odd under the change of their sign vanishes with the other half
    return at._replace(f_s=at.f_s if theta == 0 else 0.0, fz=at.fz if m == 0 else 0.0)


def _until(cuts: tuple[float, ...], end: float) -> Array:
    """Return the cuts up to this end, and beyond the last of them one in every two units."""
    inside = [cut for cut in cuts if cut < end - _LEAST]
    beyond = np.arange(cuts[-1], end - _LEAST, 2.0)
    return np.unique([0.0, *inside, *beyond, end])


@njit(cache=True, nogil=True)
def _averages(
    V: float,
    shift: float,
    slope: float,
    sd: float,
    sigma: float,
    mixture: float,
    A1: float,
    A2: float,
    symmetric: bool,
    R: Any,
    R_weights: Any,
    x: Any,
    x_weights: Any,
    cuts: Any,
    reach: float,
    S_nodes: Any,
    S_weights: Any,
    y: Any,
    y_weights: Any,
) -> Any:
    total, inner = np.zeros(14), np.zeros(14)
    most = len(cuts) + 2 * _ONSETS + 2  # a segment for every cut, and two for every onset
    ends, kinds = np.empty(most), np.empty(most, np.int64)
    one = (V, shift, slope, sd, sigma, mixture, A1, A2)
    for i in range(len(R)):
        for j in range(len(x)):
            w_r = slope * R[i] + sd * x[j]
            for sign in (1.0, -1.0):
                if sign < 0 and symmetric:
                    break
                count = _segments(sign, R[i], w_r, one, cuts, ends, kinds)
                for part in range(count):
                    low, high, kind = ends[part], ends[part + 1], kinds[part]
                    length = high - low
                    for k in range(len(S_nodes)):
                        at, weight = 0.5 * (S_nodes[k] + 1), 0.5 * S_weights[k]
                        if kind == 1:
                            S, weight = low + length * at * at, 2 * weight * at
                        elif kind == 2:
                            S, weight = high - length * at * at, 2 * weight * at
                        else:
                            S = low + length * at
                        weight *= length * math.exp(-0.5 * (S / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
                        weight *= R_weights[i] * x_weights[j] * (2.0 if symmetric else 1.0)
                        _inner(sign * S, R[i], w_r, one, reach, y, y_weights, inner)
                        for a in range(14):
                            total[a] += weight * inner[a]
    return total


@njit(cache=True, nogil=True, inline="always")
def _targets(S: float, R: float, mixture: float, A1: float, A2: float) -> Any:
    t1 = (1 - mixture) / (1 + math.exp(-S * (S + R))) + mixture * A1
    t2 = (1 - mixture) / (1 + math.exp(-S * (S - R))) + mixture * A2
    return t1, t2


@njit(cache=True, nogil=True)
def _onset(S: float, R: float, w_r: float, one: Any) -> float:
    V, _, _, _, sigma, mixture, A1, A2 = one
    t1, t2 = _targets(S, R, mixture, A1, A2)
    return jump(w_r, t1, t2, V, sigma * sigma)


@njit(cache=True, nogil=True)
def _segments(sign: float, R: float, w_r: float, one: Any, cuts: Any, ends: Any, kinds: Any) -> int:
    """Fill ends with the cuts of |S| and kinds with 1 (2) where the jump sets in at the lower (upper) end, else 0."""
    V, sigma = one[0], one[4]
    onsets, found = np.empty(_ONSETS), 0
    if V * sigma * sigma > 1:
        step = cuts[-1] / _SCAN
        before = _onset(0.0, R, w_r, one)
        for i in range(_SCAN):
            after = _onset(sign * (i + 1) * step, R, w_r, one)
            if (before > 0) != (after > 0) and found < _ONSETS:
                low, high = i * step, (i + 1) * step
                for _ in range(45):
                    mid = 0.5 * (low + high)
                    if (_onset(sign * mid, R, w_r, one) > 0) == (before > 0):
                        low = mid
                    else:
                        high = mid
                onsets[found] = 0.5 * (low + high)
                found += 1
            before = after
    count, at, last, from_onset = 0, 0, cuts[0], 0
    for i in range(1, len(cuts)):
        while last < cuts[i]:
            to_onset = 1 if at < found and onsets[at] < cuts[i] else 0
            end = onsets[at] if to_onset == 1 else cuts[i]
            at += to_onset
            ends[count], kinds[count] = last, from_onset if from_onset == 1 else 2 * to_onset
            count += 1
            if from_onset == 1 and to_onset == 1:
                ends[count], kinds[count] = 0.5 * (last + end), 2
                count += 1
            last, from_onset = end, to_onset
    ends[count] = cuts[-1]
    return count


@njit(cache=True, nogil=True)
def _inner(S: float, R: float, w_r: float, one: Any, reach: float, y: Any, y_weights: Any, out: Any) -> None:
    """Fill out with the averages over w_s at these S, R and w_r."""
    V, shift, slope, sd, sigma, mixture, A1, A2 = one
    variance = sigma * sigma
    t1, t2 = _targets(S, R, mixture, A1, A2)
    star, jumps, mid, s_up, r_up, s_down, r_down = split(w_r, t1, t2, V, variance)
    mean = shift + slope * S
    normal = 1.0 / (sd * math.sqrt(2 * math.pi))
    out[:] = 0.0
    last = np.empty((3, 3))
    for side in (1.0, -1.0):
        far = (mean + side * reach * sd - star) * side
        if far <= 0:
            continue
        near = max((mean - side * reach * sd - star) * side, 0.0)
        first = (near / far) ** (1.0 / 3.0)
        known = 0
        if near == 0:
            last[0, 0], known = 0.0, 1
            last[0, 1], last[0, 2] = (s_up, r_up) if side > 0 else (s_down, r_down)
        for k in range(len(y)):
            at = first + 0.5 * (1 - first) * (y[k] + 1)
            w_s = star + side * far * at * at * at
            weight = 1.5 * (1 - first) * y_weights[k] * far * at * at
            weight *= normal * math.exp(-0.5 * ((w_s - mean) / sd) ** 2)
            s, r = _continued(at, last, known, side, mid, w_s, w_r)
            found = minimum(s, r, w_s, w_r, t1, t2, V, variance, side, mid)
            last[2], last[1] = last[1], last[0]
            last[0, 0], last[0, 1], last[0, 2] = at, found[0], found[1]
            known += 1
            _add(weight, found, w_s, w_r, S, R, t1, t2, mean, one, out)
    if jumps:
        d_s, d_r = s_up - s_down, r_up - r_down
        if d_s > 1e-12:
            out[11] = normal * math.exp(-0.5 * ((star - mean) / sd) ** 2) * (d_s + d_r * d_r / d_s)


@njit(cache=True, nogil=True, inline="always")
def _continued(at: float, last: Any, known: int, side: float, mid: float, w_s: float, w_r: float) -> Any:
    """Return where the last minima (y, s, r) lead at y = at: s is smooth in y also where it is a third root of w_s - w*."""
    if known >= 3:
        y0, y1, y2 = last[0, 0], last[1, 0], last[2, 0]
        a = (at - y1) * (at - y2) / ((y0 - y1) * (y0 - y2))
        b = (at - y2) * (at - y0) / ((y1 - y2) * (y1 - y0))
        c = (at - y1) * (at - y0) / ((y2 - y1) * (y2 - y0))
        s, r = a * last[0, 1] + b * last[1, 1] + c * last[2, 1], a * last[0, 2] + b * last[1, 2] + c * last[2, 2]
    elif known == 2:
        a = (at - last[1, 0]) / (last[0, 0] - last[1, 0])
        s, r = a * last[0, 1] + (1 - a) * last[1, 1], a * last[0, 2] + (1 - a) * last[1, 2]
    elif known == 1:
        s, r = last[0, 1] + side * 1e-3, last[0, 2]
    else:
        s, r = mid + side * max((w_s - mid) * side, 0.1), w_r
    if (s - mid) * side <= 0:
        s, r = last[0, 1] + side * 1e-9, last[0, 2]
    return s, r


@njit(cache=True, nogil=True, inline="always")
def _add(
    weight: float,
    found: Any,
    w_s: float,
    w_r: float,
    S: float,
    R: float,
    t1: float,
    t2: float,
    mean: float,
    one: Any,
    out: Any,
) -> None:
    """Add one node to the averages, in the order of `Averages`."""
    V, shift, slope, sd, sigma, _, _, _ = one
    s, r, _, loss, h_ss, h_sr, h_rr = found
    f_s, f_r = (s - w_s) / V, (r - w_r) / V
    x_s, x_r = (w_s - mean) / (sd * sd), (w_r - slope * R) / (sd * sd)
    det = V * (h_ss * h_rr - h_sr * h_sr)
    j_ss, j_rr, j_sr = h_rr / det - 1, h_ss / det - 1, -h_sr / det
    p, k = 1.0 / (1.0 + math.exp(-w_s * (w_s + w_r))), 1.0 / (1.0 + math.exp(-w_s * (w_s - w_r)))
    fz = f_s * S + f_r * R
    out[0] += weight
    out[1] += weight * (f_s * f_s + f_r * f_r)
    out[2] += weight * f_s
    out[3] += weight * fz
    out[4] += weight * (f_s * (w_s - shift) + f_r * w_r)
    out[5] += weight * loss
    out[6] += weight * sigma * sigma * ((p - t1) ** 2 + (k - t2) ** 2)
    out[7] += weight * fz * (S * x_s + R * x_r)
    out[8] += weight * f_s * x_s
    out[9] += weight * (j_ss + j_rr)
    out[10] += weight * (j_ss * j_ss + j_rr * j_rr + 2 * j_sr * j_sr)
    out[12] += weight * p
    out[13] += weight * k
