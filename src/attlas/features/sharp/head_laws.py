"""What does not concentrate in a head: its score offset, and the lengths of the rows by which it looks at query and keys.

The score is s = omega + <w_1, x_0> + <w_2, x> + x_0^T W x with omega ~ N(0, 1/4), |w_1|^2, |w_2|^2 ~ chi^2_d/4. Given
omega and the
two lengths, with m = omega + |w_1| p + |w_2| q, p and q the cosines of the directions with query and key,

    E[act act'] = sum_k c_k(m, 1/2) c_k(m', 1/2) (u v)^k,    c_k = sum_lj C_k[l, j] P_l(p) P_j(q),

and the mean over directions turns P_l(p) P_l(p') into P_l(u)/N_l: sectors again, with eigenvalues that are sums of squares,

    L(a, b) = D_b sum_k sum_lj C_k[l, j]^2/(N_l N_j) E[u^k P_l P_a] E[v^k P_j P_b].

The value along w_2 has c_k(m) q in the place of c_k(m); the whole vector has v^(k+1) in the place of v^k.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.features.scoring import Scoring
from attlas.features.sharp.harmonics import harmonics, legendre, sphere_nodes
from attlas.features.sharp.offsets import offsets

Array = NDArray[np.float64]

_TERMS = 40
_NODES = 40
_DEGREES = 16  # of the expansion in directions


class HeadLaws(NamedTuple):
    """Operators of heads of each law.

    Attributes
    ----------
    shares : array of shape (laws,)
    L : array of shape (4, laws, degrees, degrees)
        Of the scalar, of the value along w_2, of their cross term, and of the whole vector.
    traces : array of shape (4, laws)
        E[K(X, X)] of the same.
    """

    shares: Array
    L: Array
    traces: Array


def head_laws(d: int, keys: int, scoring: Scoring, degrees: int, offset_nodes: int, norm_nodes: int) -> HeadLaws:
    """Return the laws: `offset_nodes` values of omega times `norm_nodes` of each length."""
    omega, shares = offsets(offset_nodes)
    length, weights = lengths(d, norm_nodes)
    t, measure = sphere_nodes(_NODES, d)
    P, N = legendre(_DEGREES, t, d) * measure, harmonics(np.arange(_DEGREES), d)
    G = _products(d, degrees)
    D = np.where(np.arange(degrees) == 0, 1.0, 1 / keys)
    found, traces, each = [], [], []
    for at, share in zip(omega, shares, strict=True):
        for first, weight in zip(length, weights, strict=True):
            for second, other in zip(length, weights, strict=True):
                m = at + first * t[:, None] + second * t
                c = scoring.coefficients(m, 0.5, _TERMS)
                square = measure[:, None] * measure * scoring.square(m, 0.5)
                by_key = [c @ P.T * N, (c * t) @ P.T * N]  # along p, expanded in q: scalar, parallel
                both = [np.einsum("kpj,lp->klj", one, P, optimize=True) * N[:, None] for one in by_key]
                pairs = ((0, 0, 0, np.ones(_NODES)), (1, 1, 0, t**2), (0, 1, 0, t), (0, 0, 1, np.ones(_NODES)))
                found.append(
                    [_operator(both[i] * both[j] / (N[:, None] * N), G, shift) * D for i, j, shift, _ in pairs]
                )
                apart = [np.einsum("kpj,p->kj", by_key[i] * by_key[j], measure) / N for i, j, _, _ in pairs]
                traces.append(
                    [
                        np.sum(square * factor) / keys + (1 - 1 / keys) * np.sum(off * G[shift : _TERMS + shift, :, 0])
                        for off, (_, _, shift, factor) in zip(apart, pairs, strict=True)
                    ]
                )
                each.append(share * weight * other)
    return HeadLaws(np.array(each), np.array(found).transpose(1, 0, 2, 3), np.array(traces).T)


def lengths(d: int, nodes: int) -> tuple[Array, Array]:
    """Return values of |w|, |w|^2 ~ chi^2_d/4, and their weights, by Gauss-Laguerre quadrature."""
    from scipy.special import roots_genlaguerre

    y, weights = roots_genlaguerre(nodes, d / 2 - 1)
    return np.sqrt(y / 2), np.asarray(weights / weights.sum())


def _products(d: int, degrees: int) -> Array:
    """Return E[u^k P_l P_a], (terms + 1, directions, degrees)."""
    t, weights = sphere_nodes(_TERMS // 2 + _DEGREES + degrees, d)
    P = legendre(max(_DEGREES, degrees), t, d)
    powers = t ** np.arange(_TERMS + 1)[:, None]
    return np.asarray(np.einsum("kt,lt,at,t->kla", powers, P[:_DEGREES], P[:degrees], weights, optimize=True))


def _operator(F: Array, G: Array, shift: int) -> Array:
    by_query = G[:_TERMS].transpose(0, 2, 1) @ F  # (k, a, j)
    return np.asarray((by_query @ G[shift : _TERMS + shift]).sum(0))
