"""The global proximal map of the loss of one sample, compiled.

    prox(w) = argmin over (s, r) of |(s, r) - w|^2/(2V) + sigma^2 [(sig(s(s + r)) - t1)^2 + (sig(s(s - r)) - t2)^2].

It is the gradient of a convex function of w: for fixed w_r, s grows with w_s. With psi(s) the least of s^2/(2V) + loss +
(r - w_r)^2/(2V) over r, s minimises psi(s) - s w_s/V, so that it jumps where psi is not convex. At s = 0, tau = t - 1/2, it
is not if

    tau1 + tau2 + V sigma^2 (tau1 - tau2)^2/4 > 1/(V sigma^2) + w_r^2/4,

never if V sigma^2 < 1, and s = 0 is passed at w* = -V sigma^2 (t1 - t2) w_r/2 otherwise. Where w_r (t1 - t2) is not zero psi
can bend down on one side of s = 0 only; there the jump is looked for at a few values of s. On either side of a jump a Newton
iteration whose steps are short and never cross the middle of it stays on its minimum.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import numbers, real

Array = NDArray[np.float64]

_STEP = 0.2  # a longer step changes the minimum
_SMALL = 1e-6  # after a Newton step of this size the error is its square
_MOST = 60
_WIDEST, _STIFFEST = 10.0, 1e6  # of w and of V sigma^2, for which the map was compared with a grid search
_LOOKS = 9  # values of s, 0.08 apart, at which psi is looked at
_NEAR, _LEAN = 0.6, 0.02  # how far below its onset, and from which |w_r (t1 - t2)| on, a jump off s = 0 is looked for


def proximal_map(
    w_s: ArrayLike, w_r: ArrayLike, t1: ArrayLike, t2: ArrayLike, V: float, token_scale: float = 1.0
) -> tuple[Array, Array]:
    """Return the global minimiser (s, r) of |(s, r) - w|^2/(2V) + loss, for arrays that broadcast.

    Parameters
    ----------
    w_s, w_r : array_like
        Where the map is taken.
    t1, t2 : array_like
        Targets T_11 and T_22, in [0, 1].
    V : float
        Positive.
    token_scale : float, default 1
        sigma.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import positional
    >>> s, r = positional.proximal_map(0.5, 0.1, 0.3, 0.3, V=1e-6)
    >>> round(float(s), 3), round(float(r), 3)  # at V near 0 nothing moves
    (0.5, 0.1)
    """
    V, variance = real(V, "V", above=0), real(token_scale, "token_scale", above=0) ** 2
    t1, t2 = numbers(t1, "t1", least=0), numbers(t2, "t2", least=0)
    if max(t1.max(), t2.max()) > 1:
        raise InputError(f"t1 and t2 are attention weights in [0, 1]; got {max(t1.max(), t2.max()):g}")
    w_s, w_r = numbers(w_s, "w_s"), numbers(w_r, "w_r")
    largest = max(float(np.abs(w_s).max()), float(np.abs(w_r).max()))
    if largest > _WIDEST or not 1 / _STIFFEST <= V * variance <= _STIFFEST:
        raise InputError(
            f"w must be at most {_WIDEST:g} and V token_scale^2 between {1 / _STIFFEST:g} and {_STIFFEST:g}: beyond, the"
            f" minimum is not always found; got |w| up to {largest:g} and V token_scale^2 = {V * variance:g}"
        )
    try:
        w_s, w_r, t1, t2 = np.broadcast_arrays(w_s, w_r, t1, t2)
    except ValueError:
        shapes = ", ".join(str(one.shape) for one in (w_s, w_r, t1, t2))
        raise InputError(f"w_s, w_r, t1 and t2 must have shapes that fit each other; got {shapes}") from None
    found = _each(*(np.ascontiguousarray(one).ravel() for one in (w_s, w_r, t1, t2)), V, variance)
    return found[0].reshape(w_s.shape), found[1].reshape(w_s.shape)


@njit(cache=True, nogil=True)
def _each(w_s: Any, w_r: Any, t1: Any, t2: Any, V: float, variance: float) -> Any:
    found = np.empty((2, len(w_s)))
    for i in range(len(w_s)):
        found[0, i], found[1, i] = _everywhere(w_s[i], w_r[i], t1[i], t2[i], V, variance)
    return found


@njit(cache=True, nogil=True)
def _everywhere(w_s: float, w_r: float, t1: float, t2: float, V: float, variance: float) -> Any:
    """Return the lowest of the minima that are reached from w* and from where the loss has others: near w, s = |r|."""
    _, _, _, s_up, r_up, s_down, r_down = split(w_r, t1, t2, V, variance)
    mean, gap = 0.5 * (w_s + w_r), 0.5 * (w_s - w_r)
    starts = (
        (s_up, r_up),
        (s_down, r_down),
        (0.1, w_r),
        (-0.1, w_r),
        (w_s, w_r),
        (w_r, w_r),
        (-w_r, w_r),
        (mean, mean),
        (gap, -gap),
    )
    best = (0.0, w_r, math.inf)
    for s, r in starts:
        found = minimum(s, r, w_s, w_r, t1, t2, V, variance, -1.0 if s < 0 else 1.0, 0.0)
        if found[2] < best[2]:
            best = (found[0], found[1], found[2])
    return best[0], best[1]


@njit(cache=True, nogil=True, inline="always")
def jump(w_r: float, t1: float, t2: float, V: float, variance: float) -> float:
    """Return a number that is positive where psi is not convex at s = 0, so that the map jumps over it."""
    return t1 + t2 - 1.0 + V * variance * (t1 - t2) ** 2 / 4 - 1.0 / (V * variance) - w_r * w_r / 4


@njit(cache=True, nogil=True)
def split(w_r: float, t1: float, t2: float, V: float, variance: float) -> Any:
    """Return w*, whether the map jumps there, the middle of the jump, and the minimisers (s, r) just above and below w*."""
    w, mid, r = -0.5 * V * variance * (t1 - t2) * w_r, 0.0, w_r
    at_zero = jump(w_r, t1, t2, V, variance)
    if at_zero <= 0:
        lean = w_r * (t1 - t2)
        if V * variance <= 1 or at_zero < -_NEAR or abs(lean) < _LEAN:
            return w, False, 0.0, 0.0, w_r, 0.0, w_r
        least = 0.0
        for k in range(1, _LOOKS + 1):
            s = -math.copysign(0.08 * k, lean)
            bend, r_there, w_there = _bend(s, r, w_r, t1, t2, V, variance)
            if bend < least:
                least, mid, r, w = bend, s, r_there, w_there
        if least == 0.0:
            return w, False, 0.0, 0.0, w_r, 0.0, w_r
    # at this w the point (mid, r) is a saddle, so that a minimum exists on either side; their energies meet at w*
    mean = min(max(0.5 * (t1 + t2), 0.52), 0.98)
    away = math.sqrt(math.log(mean / (1 - mean))) if mid == 0.0 else 0.2
    s_up, r_up, s_down, r_down = mid + away, r, mid - away, r
    low, high = -math.inf, math.inf
    for _ in range(_MOST):
        s_up, r_up, e_up, _, _, _, _ = minimum(s_up, r_up, w, w_r, t1, t2, V, variance, 1.0, mid)
        s_down, r_down, e_down, _, _, _, _ = minimum(s_down, r_down, w, w_r, t1, t2, V, variance, -1.0, mid)
        if s_up - mid < 1e-12 or (mid - s_down > 1e-12 and e_up > e_down):
            low = w
        else:
            high = w
        gap = s_up - s_down
        step = V * (e_up - e_down) / gap if gap > 1e-12 else math.inf
        new = w + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - w) < 1e-13 * (1 + abs(w)) or not math.isfinite(new):
            break
        w = new
        if s_up - mid < 1e-12:
            s_up, r_up = mid + away, r
        if mid - s_down < 1e-12:
            s_down, r_down = mid - away, r
    return w, True, mid, s_up, r_up, s_down, r_down


@njit(cache=True, nogil=True)
def _bend(s: float, r: float, w_r: float, t1: float, t2: float, V: float, variance: float) -> Any:
    """Return the second derivative of psi at s, the r that belongs to it, and the w_s at which s is stationary."""
    for _ in range(8):
        _, _, g_s, g_r, h_ss, h_sr, h_rr = _derivatives(s, r, 0.0, w_r, t1, t2, V, variance)
        step = -g_r / max(h_rr, 0.1 / V)
        r += min(max(step, -_STEP), _STEP)
        if abs(step) < 1e-5:
            break
    return h_ss - h_sr * h_sr / max(h_rr, 0.1 / V), r, V * g_s


@njit(cache=True, nogil=True)
def minimum(
    s: float, r: float, w_s: float, w_r: float, t1: float, t2: float, V: float, variance: float, side: float, mid: float
) -> Any:
    """Return the minimum on this side of s = mid that Newton's iteration reaches from (s, r).

    As (s, r, energy, loss, h_ss, h_sr, h_rr): the energy is |(s, r) - w|^2/(2V) + loss, h its second derivatives.
    """
    e, loss, g_s, g_r, h_ss, h_sr, h_rr = _derivatives(s, r, w_s, w_r, t1, t2, V, variance)
    for _ in range(_MOST):
        half = 0.5 * (h_ss + h_rr)
        least = half - math.sqrt(0.25 * (h_ss - h_rr) ** 2 + h_sr * h_sr)
        shift = max(0.0, 1e-4 / V - least)
        a, b = h_ss + shift, h_rr + shift
        det = a * b - h_sr * h_sr
        d_s, d_r = -(b * g_s - h_sr * g_r) / det, -(a * g_r - h_sr * g_s) / det
        size = math.sqrt(d_s * d_s + d_r * d_r)
        if size < _SMALL and shift == 0.0 and (s + d_s - mid) * side >= 0:
            # the last step: loss and energy follow by their slopes
            slope_s, slope_r = g_s - (s - w_s) / V, g_r - (r - w_r) / V
            loss += slope_s * d_s + slope_r * d_r
            e += 0.5 * (g_s * d_s + g_r * d_r)
            return s + d_s, r + d_r, e, loss, h_ss, h_sr, h_rr
        scale = 1.0 if size <= _STEP else _STEP / size
        slope = g_s * d_s + g_r * d_r
        moved = False
        for _ in range(40):
            s_new, r_new = s + scale * d_s, r + scale * d_r
            if (s_new - mid) * side >= 0:
                new = _derivatives(s_new, r_new, w_s, w_r, t1, t2, V, variance)
                if new[0] <= e + 1e-4 * scale * slope + 1e-15:
                    s, r, moved = s_new, r_new, True
                    e, loss, g_s, g_r, h_ss, h_sr, h_rr = new
                    break
            scale *= 0.5
        if not moved:
            break
    return s, r, e, loss, h_ss, h_sr, h_rr


@njit(cache=True, nogil=True, inline="always")
def _derivatives(s: float, r: float, w_s: float, w_r: float, t1: float, t2: float, V: float, variance: float) -> Any:
    """Return the energy, the loss, and first and second derivatives of the energy."""
    p, k = 1.0 / (1.0 + math.exp(-s * (s + r))), 1.0 / (1.0 + math.exp(-s * (s - r)))
    a, b = p * (1 - p), k * (1 - k)
    e1, e2 = p - t1, k - t2
    loss = variance * (e1 * e1 + e2 * e2)
    g_u, g_v = 2 * variance * e1 * a, 2 * variance * e2 * b
    h_u, h_v = 2 * variance * a * (a + e1 * (1 - 2 * p)), 2 * variance * b * (b + e2 * (1 - 2 * k))
    u, v = 2 * s + r, 2 * s - r
    d_s, d_r = s - w_s, r - w_r
    return (
        (d_s * d_s + d_r * d_r) / (2 * V) + loss,
        loss,
        d_s / V + g_u * u + g_v * v,
        d_r / V + (g_u - g_v) * s,
        1 / V + h_u * u * u + h_v * v * v + 2 * (g_u + g_v),
        (h_u * u - h_v * v) * s + (g_u - g_v),
        1 / V + (h_u + h_v) * s * s,
    )
