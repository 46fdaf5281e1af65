"""What can be known of a block: the canonical form that all blocks of one function share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, real
from attlas.layers import softmax
from attlas.recovery.block.network import Network
from attlas.recovery.block.weights import BlockWeights

Array = NDArray[np.float64]

_ZERO = 1e-7  # of what it is compared with: below, a residual, a neuron or a difference of two is none


@dataclass(frozen=True)
class Block:
    """out(X) = G(y), y = x_N + sum_i (sum_j p_ij x_j - x_N) V_i, p_i = softmax_j(x_N^T Theta_i x_j); x_N is the last token.

    M = r_a I + sum_i W_i is what a single token is multiplied by. Where it is invertible, V_i = W_i M^-1 and G(x) = g(x M)
    are all that a function of the tokens can tell. G sees y through S alone, so that of V_i only V_i S is known.

    Attributes
    ----------
    network : Network
        G, with c, L, U, t and beta.
    Theta : array of shape (m, d, d)
    S : array of shape (d, s)
        Orthonormal basis of what the network depends on.
    V : array of shape (m, d, s)
        V_i S.
    """

    network: Network
    Theta: Array
    S: Array
    V: Array

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return self.network.d

    @property
    def heads(self) -> int:
        """Number of heads; those of equal Theta are one, those that nothing sees are none."""
        return len(self.Theta)

    @property
    def hidden(self) -> int:
        """Number of neurons; those of one hyperplane are one, those that nothing sees are none."""
        return len(self.network.t)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the output (d_out,) of the last of the tokens X (k, d)."""
        return np.asarray(self.outputs(array(X, "X", ("k", "d"), (None, self.d))[None])[0])

    def outputs(self, X: Array) -> Array:
        """Return the outputs (n, d_out) of the last tokens of sequences X (n, k, d)."""
        return self.network(self.mixed(X) @ self.S.T)

    def mixed(self, X: Array) -> Array:
        """Return y S (n, s) of sequences X (n, k, d)."""
        last = X[:, -1]
        y = last @ self.S
        for theta, value in zip(self.Theta, self.V, strict=True):
            p = softmax(np.einsum("nd,nkd->nk", last @ theta, X))
            y = y + (np.einsum("nk,nkd->nd", p, X) - last) @ value
        return np.asarray(y)

    @cached_property
    def M(self) -> Array | None:
        """M = (I - sum_i V_i)^-1, where there is a residual around attention and all of y is seen; else it is a gauge."""
        if self.S.shape[1] < self.d:
            return None
        V = (self.V @ self.S.T).sum(0) if self.heads else np.zeros((self.d, self.d))
        R = np.eye(self.d) - V
        if np.linalg.norm(R, 2) <= _ZERO * (1 + np.linalg.norm(V, 2)) or np.linalg.cond(R) > 1e10:
            return None
        return np.linalg.inv(R)

    @cached_property
    def weights(self) -> BlockWeights | None:
        """The block in its original coordinates, hidden neurons scaled to |A_j M^T| = 1; None if they cannot be told.

        A residual around attention pins M. Signs of ReLUs solve L - r_g M = sum_j s_j u_j beta_j^T, and the right r_g makes
        all of them +-1, which needs h <= d d_out and no two neurons with one hyperplane.
        """
        M, G = self.M, self.network
        if M is None or not self.heads or not self.hidden:
            return None
        design = np.einsum("jd,jo->doj", G.U, G.beta).reshape(-1, self.hidden)
        if len(design) < self.hidden:
            return None
        for residual in (False, True) if G.outputs == self.d else (False,):
            target = (G.L - M if residual else G.L).ravel()
            s = np.linalg.lstsq(design, target, rcond=None)[0]
            rest = np.linalg.norm(design @ np.sign(s) - target)
            if np.abs(np.abs(s) - 1).max() < 1e-4 and rest < 1e-5 * (1 + np.linalg.norm(target)):
                s = np.sign(s)
                return BlockWeights(
                    self.Theta,
                    self.V @ self.S.T @ M,
                    s[:, None] * np.linalg.solve(M, G.U.T).T,
                    s * G.t,
                    2 * G.beta.T,
                    G.c - (s * G.t) @ G.beta,
                    attention_residual=True,
                    network_residual=residual,
                )
        return None


def canonical_block(weights: BlockWeights, tol: float = 1e-9) -> Block:
    """Return the canonical form of a block: neurons of one hyperplane merged, those without effect dropped; heads likewise.

    Parameters
    ----------
    weights : BlockWeights
    tol : float
        What counts as equal, or as none.

    Raises
    ------
    InputError
        If M = r_a I + sum_i W_i is singular: single tokens then do not show all of the network.

    Examples
    --------
    >>> from attlas import recovery
    >>> block = recovery.canonical_block(recovery.planted_block(heads=2, d=4, hidden=5, seed=0))
    >>> block.Theta.shape, block.network.t.shape
    ((2, 4, 4), (5,))
    """
    if not isinstance(weights, BlockWeights):
        raise InputError(f"weights must be BlockWeights, such as planted_block draws; got {type(weights).__name__}")
    tol, d = real(tol, "tol", above=0), weights.d
    M = weights.attention_residual * np.eye(d) + weights.W.sum(0)
    if np.linalg.cond(M) > 1 / tol:
        raise InputError("r_a I + sum_i W_i is singular, and this canonical form needs its inverse")
    network = _network(weights, M, tol)
    S = network.seen()
    V = np.linalg.solve(M.T, weights.W.transpose(0, 2, 1)).transpose(0, 2, 1) @ S
    Theta, merged = _merged(weights.Theta, V, tol)
    return Block(network, Theta, S, merged)


def _network(weights: BlockWeights, M: Array, tol: float) -> Network:
    """Return G(x) = g(x M)."""
    A, t, beta = weights.A @ M.T, weights.a0, weights.B.T / 2
    L = A.T @ beta + (M if weights.network_residual else 0)
    c = weights.b0 + t @ beta
    sizes = np.linalg.norm(A, axis=1)
    switching = sizes > tol * max(float(sizes.max(initial=0.0)), 1e-300)
    c = c + np.abs(t[~switching]) @ beta[~switching]  # without a hyperplane |.| is a constant
    A, t, beta, sizes = A[switching], t[switching], beta[switching], sizes[switching]
    U, t, beta = A / sizes[:, None], t / sizes, beta * sizes[:, None]
    kept: list[tuple[Array, float, Array]] = []
    for u, place, value in zip(U, t, beta, strict=True):
        for i, (v, other, total) in enumerate(kept):
            sign = 1.0 if u @ v > 0 else -1.0
            if np.linalg.norm(u - sign * v) + abs(place - sign * other) < tol * (1 + abs(place)):
                kept[i] = (v, other, total + value)
                break
        else:
            kept.append((u, float(place), value))
    largest = max((float(np.linalg.norm(value)) for *_, value in kept), default=0.0)
    kept = [one for one in kept if np.linalg.norm(one[2]) > tol * largest]
    return Network(
        c,
        L,
        np.array([u for u, _, _ in kept]).reshape(-1, len(M)),
        np.array([place for _, place, _ in kept]),
        np.array([value for *_, value in kept]).reshape(-1, len(c)),
    )


def _merged(Theta: Array, V: Array, tol: float) -> tuple[Array, Array]:
    """Return heads of equal Theta as one, without those of no value."""
    kept: list[tuple[Array, Array]] = []
    for theta, value in zip(Theta, V, strict=True):
        for i, (other, total) in enumerate(kept):
            if np.linalg.norm(theta - other) <= tol * (1 + np.linalg.norm(theta)):
                kept[i] = (other, total + value)
                break
        else:
            kept.append((theta, value))
    largest = max((float(np.linalg.norm(value)) for _, value in kept), default=0.0)
    kept = [one for one in kept if np.linalg.norm(one[1]) > tol * largest]
    return (
        np.array([theta for theta, _ in kept]).reshape(-1, *Theta.shape[1:]),
        np.array([value for _, value in kept]).reshape(-1, *V.shape[1:]),
    )


def block_error(found: Block, truth: Block) -> float:
    """Return the largest relative error of the parameters of a block, neurons and heads matched in the best way.

    Of Theta, of V S S^T, of L and c together, and of beta_j (u_j, t_j); infinite if numbers of heads or neurons differ.

    Examples
    --------
    >>> from attlas import recovery
    >>> block = recovery.canonical_block(recovery.planted_block(heads=1, d=4, hidden=5, seed=0))
    >>> recovery.block_error(block, block)
    0.0
    """
    for block in (found, truth):
        if not isinstance(block, Block):
            raise InputError(f"give a Block, such as canonical_block returns; got {type(block).__name__}")
    one, true = found.network, truth.network
    if (found.heads, found.hidden, one.L.shape) != (truth.heads, truth.hidden, true.L.shape):
        return float(np.inf)
    errors = [
        _matched(_neurons(one), _neurons(true)),
        _matched(_heads(found), _heads(truth)),
        _relative(np.vstack([one.c, one.L]), np.vstack([true.c, true.L])),
    ]
    return max(errors)


def _neurons(network: Network) -> list[tuple[Array, ...]]:
    """Return (u_j, t_j) and beta_j of every neuron, signs such that the largest entry of u is positive."""
    found: list[tuple[Array, ...]] = []
    for u, t, beta in zip(network.U, network.t, network.beta, strict=True):
        sign = np.sign(u[np.argmax(np.abs(u))])
        found.append((sign * np.append(u, t / (1 + abs(t))), beta))
    return found


def _heads(block: Block) -> list[tuple[Array, ...]]:
    return [(theta, value @ block.S.T) for theta, value in zip(block.Theta, block.V, strict=True)]


def _matched(mine: list[tuple[Array, ...]], theirs: list[tuple[Array, ...]]) -> float:
    """Return the largest relative error of any part, things matched so that the sum of squares is least."""
    from scipy.optimize import linear_sum_assignment

    if not mine:
        return 0.0
    costs = [[sum(float(np.sum((a - b) ** 2)) for a, b in zip(x, y, strict=True)) for y in theirs] for x in mine]
    rows, columns = linear_sum_assignment(np.array(costs))
    parts = range(len(mine[0]))
    pairs = [(np.array([mine[i][k] for i in rows]), np.array([theirs[j][k] for j in columns])) for k in parts]
    return max(_relative(a, b) for a, b in pairs)


def _relative(mine: Array, theirs: Array) -> float:
    return float(np.linalg.norm(mine - theirs)) / max(float(np.linalg.norm(theirs)), np.finfo(float).tiny)
