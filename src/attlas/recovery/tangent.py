"""How the outputs of a layer move with its parameters: the Jacobian, the one place that knows what the parameters are.

A row x with attention p, attended token z = X^T p and C = X^T diag(p) X - z z^T has

    dF = sum_i x~^T d(Theta_i; u_i) C_i W_i + z_i^T dW_i + db,

where x~ is (x, 1) if there are biases, and else x. The parameters stand in this order: (Theta_i; u_i) of every head by rows,
all of W, b.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer
from attlas.recovery.variable_projection import output_moves

Array = NDArray[np.float64]


def numbers(layer: Layer, bias: bool) -> int:
    """Return how many parameters a layer has, whatever its rank."""
    return int(layer.Theta.size + layer.W.size + bias * (layer.heads * layer.d_keys + layer.outputs))


def tangent(part: Examples, layer: Layer) -> Array:
    """Return the Jacobian of the outputs of every sequence, of shape (n, rows d_out, numbers).

    It is zero for rows that do not count. It takes n rows d_out numbers: cut the examples into blocks first.
    """
    x = part.asking
    (n, rows, e), (m, d, out) = x.shape, layer.W.shape
    J = np.zeros((n, rows, out, numbers(layer, part.bias)))
    cut = m * e * d
    of_logits = J[..., :cut].reshape(n, rows, out, m, e, d)
    of_values = J[..., cut : cut + layer.W.size].reshape(n, rows, out, m, d, out)
    for i, theta in enumerate(layer.stacked() if part.bias else layer.Theta):
        V, Z = output_moves(part, theta, layer.W[i])
        V = V.reshape(n, rows, d, out)
        of_logits[:, :, :, i] = x[:, :, None, :, None] * V.transpose(0, 1, 3, 2)[:, :, :, None, :]
        for o in range(out):
            of_values[:, :, o, i, :, o] = Z
    if part.bias:
        J[..., -out:] = part.counted[..., None] * np.eye(out)
    return J.reshape(n, rows * out, -1)


def directions(layer: Layer, bias: bool, rank: int | None, rank_of_values: int | None = None) -> Array | None:
    """Return an orthonormal basis (numbers, directions) of the changes that keep these ranks, or None if all may change.

    Raises
    ------
    InputError
        If the layer has a higher rank.
    """
    stacked = layer.stacked() if bias else layer.Theta
    if (rank or np.inf) >= min(stacked.shape[1:]) and (rank_of_values or np.inf) >= min(layer.W.shape[1:]):
        return None
    bases = [_of_rank(head, rank, "Theta") for head in stacked]
    bases += [_of_rank(W, rank_of_values, "W") for W in layer.W]
    if bias:
        bases.append(np.eye(layer.outputs))
    found = np.zeros((sum(len(b) for b in bases), sum(b.shape[1] for b in bases)))
    at = np.zeros(2, dtype=int)
    for basis in bases:
        found[at[0] : at[0] + len(basis), at[1] : at[1] + basis.shape[1]] = basis
        at += basis.shape
    return found


def _of_rank(M: Array, rank: int | None, name: str) -> Array:
    """Return an orthonormal basis of the matrices U A + B V^T, in which a matrix U S V^T of this rank may move."""
    p, q = M.shape
    if rank is None or rank >= min(p, q):
        return np.eye(p * q)
    U, s, Vt = np.linalg.svd(M)
    if s[rank] > 1e-8 * s[0]:
        raise InputError(f"{name} of a head has a rank above {rank}; give a layer of that rank, or leave the rank out")
    keep = [np.outer(U[:, i], Vt[j]).ravel() for i in range(p) for j in range(q) if i < rank or j < rank]
    return np.array(keep).T
