"""From the weights of a model to a layer: the conventions of PyTorch and of GPT-2.

Head i owns d_head = D/heads rows of the projections. With queries q = Wq x + bq and keys k = Wk x + bk its logits are

    q_r . k_c/sqrt(d_head) = x_r^T Theta_i x_c + u_i . x_c + (terms that are the same for all c),
    Theta_i = Wq_i^T Wk_i/sqrt(d_head),  u_i = Wk_i^T bq_i/sqrt(d_head),

so that bk drops out of the softmax; and with values Wv x + bv and the output Wo o + bo,

    W_i = Wv_i^T Wo_i^T,  b = bo + Wo bv.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, choice, integer
from attlas.recovery.layer import Layer

Array = NDArray[Any]


def layer_from_weights(
    Wq: ArrayLike,
    Wk: ArrayLike,
    Wv: ArrayLike,
    Wo: ArrayLike,
    bq: ArrayLike | None = None,
    bk: ArrayLike | None = None,
    bv: ArrayLike | None = None,
    bo: ArrayLike | None = None,
    *,
    heads: int,
    convention: Literal["torch", "gpt2"] = "torch",
    causal: bool = False,
) -> Layer:
    """Return the layer that the weights of an attention module amount to, its scale 1/sqrt(d_head) folded into Theta.

    Parameters
    ----------
    Wq, Wk, Wv : arrays of shape (D, d), (D, d_keys), (D, d_keys)
        Projections as PyTorch's `Linear` has them, queries Wq x; with "gpt2" transposed, as `Conv1D` has them, x Wq.
    Wo : array of shape (d_out, D)
        Likewise; (D, d_out) with "gpt2".
    bq, bk, bv : arrays of shape (D,), optional
    bo : array of shape (d_out,), optional
    heads : int
        D must be a multiple of it.
    convention : {"torch", "gpt2"}
    causal : bool, default False
        GPT-2's layers are causal; `layer_from_gpt2` sets it.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import recovery
    >>> Wq, Wk, Wv, Wo = np.random.default_rng(0).standard_normal((4, 6, 6))
    >>> recovery.Layer.from_weights(Wq, Wk, Wv, Wo, heads=2).rank
    3
    """
    names = ("Wq", "Wk", "Wv", "Wo")
    rows, columns = ("D", "d") if choice(convention, "convention", ("torch", "gpt2")) == "torch" else ("d", "D")
    q, k, v, o = (array(each, name, (rows, columns)) for each, name in zip((Wq, Wk, Wv, Wo), names, strict=True))
    if convention == "gpt2":
        q, k, v, o = q.T, k.T, v.T, o.T
    D, m = len(q), integer(heads, "heads")
    if not (len(k) == len(v) == o.shape[1] == D):
        raise InputError(
            f"Wq, Wk, Wv and Wo must share the width of all heads; got {D}, {len(k)}, {len(v)}, {o.shape[1]}"
        )
    if k.shape[1] != v.shape[1]:
        raise InputError(
            f"keys have dimension {k.shape[1]} and values {v.shape[1]}; a layer takes both from one sequence"
        )
    if D % m:
        raise InputError(f"the width {D} of all heads must be a multiple of heads = {m}")
    query_bias = None if bq is None else array(bq, "bq", ("D",), (D,)).reshape(m, -1)
    if bk is not None:
        array(bk, "bk", ("D",), (D,))  # the same for all keys: it drops out
    scale = 1 / np.sqrt(D // m)
    q, k, v = (each.reshape(m, D // m, -1) for each in (q, k, v))
    values = o.reshape(len(o), m, -1).transpose(1, 2, 0)  # (m, d_head, d_out)
    constant = None if bo is None else array(bo, "bo", ("d_out",), (len(o),))
    if bv is not None:
        constant = o @ array(bv, "bv", ("D",), (D,)) + (0.0 if constant is None else constant)
    return Layer(
        scale * (q.transpose(0, 2, 1) @ k),
        v.transpose(0, 2, 1) @ values,
        None if query_bias is None else scale * np.matmul(query_bias[:, None, :], k)[:, 0],
        constant,
        causal,
    )


def layer_from_gpt2(
    c_attn_weight: ArrayLike,
    c_attn_bias: ArrayLike | None,
    c_proj_weight: ArrayLike,
    c_proj_bias: ArrayLike | None,
    heads: int,
) -> Layer:
    """Return the causal layer of GPT-2's weights: queries, keys and values come from one matrix, x c_attn.

    Parameters
    ----------
    c_attn_weight : array of shape (d, 3 d)
        Queries, keys and values side by side.
    c_attn_bias : array of shape (3 d,) or None
    c_proj_weight : array of shape (d, d)
    c_proj_bias : array of shape (d,) or None
    heads : int

    Notes
    -----
    GPT-2 normalises tokens first: give the layer `attlas.layers.layer_norm` of them, with the weights of ln_1.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import recovery
    >>> rng = np.random.default_rng(0)
    >>> layer = recovery.layer_from_gpt2(rng.standard_normal((4, 12)), np.zeros(12), np.eye(4), np.zeros(4), heads=2)
    >>> layer.heads, layer.rank, layer.causal
    (2, 2, True)
    """
    fused = array(c_attn_weight, "c_attn_weight", ("d", "3 d"))
    if fused.shape[1] % 3:
        raise InputError(f"c_attn_weight holds queries, keys and values, (d, 3 d); got shape {fused.shape}")
    bq, bk, bv = (None, None, None) if c_attn_bias is None else _thirds(c_attn_bias, fused.shape[1])
    Wq, Wk, Wv = np.split(fused, 3, axis=1)
    return layer_from_weights(
        Wq, Wk, Wv, c_proj_weight, bq, bk, bv, c_proj_bias, heads=heads, convention="gpt2", causal=True
    )


def _thirds(bias: ArrayLike, width: int) -> list[Array]:
    return list(np.split(array(bias, "c_attn_bias", ("3 d",), (width,)), 3))
