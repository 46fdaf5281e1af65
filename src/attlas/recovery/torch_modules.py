"""Layers from PyTorch modules, and back. The only file that imports torch, and only when it is asked to."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import described, flag, integer
from attlas.recovery.comparison import HasLayer, layer_of
from attlas.recovery.layer import Layer
from attlas.recovery.weights import layer_from_weights

Array = NDArray[np.float64]

_SINGULAR = 1e-10  # relative: singular values below count as zero
_PRECISIONS = ("float64", "float32")


def from_torch(module: Any, causal: bool = False) -> Layer:
    """Return the layer that a `torch.nn.MultiheadAttention` computes, in double precision.

    Parameters
    ----------
    module : torch.nn.MultiheadAttention
        In evaluation mode: dropout is not part of the layer. For a `TransformerEncoderLayer` give its ``self_attn``.
    causal : bool, default False
        Whether it is called with a causal mask, which is an argument of its call and not a part of the module.

    Examples
    --------
    ::

        module = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
        layer = recovery.from_torch(module)
        layer(X)  # equals module(X, X, X)[0] for X of shape (n, k, 8)

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from attlas import recovery
    >>> recovery.from_torch(torch.nn.MultiheadAttention(8, 2)).heads  # doctest: +SKIP
    """
    torch = _torch()
    if not isinstance(module, torch.nn.MultiheadAttention):
        inner = next((n for n in ("self_attn", "attn", "attention") if hasattr(module, n)), None)
        hint = f"; give its .{inner}" if inner else ""
        raise InputError(f"from_torch takes a torch.nn.MultiheadAttention; got {type(module).__name__}{hint}")
    _check_keys(module)
    if module.in_proj_weight is not None:
        Wq, Wk, Wv = np.split(_numbers(module.in_proj_weight), 3)
    else:
        Wq, Wk, Wv = (_numbers(getattr(module, f"{name}_proj_weight")) for name in "qkv")
    fused = module.in_proj_bias
    bq, bk, bv = (None, None, None) if fused is None else np.split(_numbers(fused), 3)
    bo = None if module.out_proj.bias is None else _numbers(module.out_proj.bias)
    return layer_from_weights(
        Wq, Wk, Wv, _numbers(module.out_proj.weight), bq, bk, bv, bo, heads=module.num_heads, causal=causal
    )


def to_torch(
    layer: HasLayer,
    *,
    embed_dim: int | None = None,
    dtype: str = "float64",
    batch_first: bool = True,
) -> Any:
    """Return a `torch.nn.MultiheadAttention` that computes the layer, in evaluation mode.

    A module has heads of rank embed_dim/num_heads. The least number of heads that fits is taken; those beyond the layer's
    own are silent. Masks are arguments of its call: pass ``attn_mask`` for a causal layer.

    Parameters
    ----------
    layer : Layer, or what has one as its `layer`
    embed_dim : int, optional
        The dimension d of tokens, if not given. Where heads have too large a rank for that, a larger one fits; tokens are
        then to be padded with zeros, and outputs beyond d_out are zero.
    dtype : {"float64", "float32"}
    batch_first : bool, default True

    Raises
    ------
    InputError
        If no number of heads fits; it names the least embed_dim that does.

    Examples
    --------
    >>> from attlas import recovery
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=1, d=4, seed=0))
    >>> recovery.to_torch(layer).embed_dim  # doctest: +SKIP
    """
    torch = _torch()
    given = layer_of(layer)
    if not isinstance(dtype, str) or dtype not in _PRECISIONS:
        raise InputError(f"dtype must be one of {', '.join(_PRECISIONS)}; got {described(dtype)}")
    cross = given.d_keys != given.d
    E = given.d if embed_dim is None else integer(embed_dim, "embed_dim")
    values = max(_rank(value) for value in given.W)
    rank = max(given.rank, values, 1)
    heads = _heads_that_fit(given, E, rank, cross)
    r = E // heads
    Q, K = given.factors(r)
    U, s, V = np.linalg.svd(given.W, full_matrices=False)
    width, d_keys = min(r, s.shape[1]), given.d_keys if cross else E
    root = np.sqrt(s[:, :width])
    Wq, Wk, Wv = np.zeros((heads, r, E)), np.zeros((heads, r, d_keys)), np.zeros((heads, r, d_keys))
    Wo, bq, bo = np.zeros((E, heads, r)), np.zeros((heads, r)), np.zeros(E)
    own, gain, found = slice(0, given.heads), r**0.25, Q.shape[2]
    Wq[own, :found, : given.d] = gain * Q[:, :-1].transpose(0, 2, 1)
    Wk[own, :found, : given.d_keys] = gain * K.transpose(0, 2, 1)
    bq[own, :found] = gain * Q[:, -1]
    Wv[own, :width, : given.d_keys] = (U[:, :, :width] * root[:, None]).transpose(0, 2, 1)
    Wo[: given.outputs, own, :width] = (V[:, :width] * root[:, :, None]).transpose(2, 0, 1)
    if given.output_bias is not None:
        bo[: given.outputs] = given.output_bias
    bias = given.key_bias is not None or given.output_bias is not None
    kinds = {"kdim": d_keys, "vdim": d_keys} if cross else {}
    module = torch.nn.MultiheadAttention(
        E, heads, bias=bias, batch_first=flag(batch_first, "batch_first"), dtype=getattr(torch, dtype), **kinds
    )
    parts: dict[str, NDArray[Any]] = {"out_proj.weight": Wo.reshape(E, E)}
    projections = [Wq.reshape(E, E), Wk.reshape(E, d_keys), Wv.reshape(E, d_keys)]
    if cross:
        parts |= {f"{name}_proj_weight": part for name, part in zip("qkv", projections, strict=True)}
    else:
        parts["in_proj_weight"] = np.concatenate(projections)
    if bias:
        parts |= {"in_proj_bias": np.concatenate([bq.ravel(), np.zeros(2 * E)]), "out_proj.bias": bo}
    module.load_state_dict({name: torch.tensor(part, dtype=getattr(torch, dtype)) for name, part in parts.items()})
    return module.eval()


def is_module(thing: Any) -> bool:
    """Return whether something is a PyTorch module, without importing torch: if it is not there, nothing is one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def single_precision(module: Any) -> bool:
    """Return whether the parameters of a module have single precision, or raise `InputError` if it cannot be asked."""
    torch = _torch()
    kinds = {each.dtype for each in module.parameters()}
    if coarse := [kind for kind in kinds if kind.itemsize < 4]:
        raise InputError(
            f"the module computes in {str(coarse[0]).removeprefix('torch.')}, to two or three digits, too coarse to ask;"
            " module.double() has the same weights"
        )
    if isinstance(module, torch.nn.MultiheadAttention):
        _check_keys(module)
        if (module.kdim, module.vdim) != (module.embed_dim,) * 2:
            raise InputError(
                "the module attends to tokens of another dimension, and an oracle is asked with one sequence; from_torch"
                " reads its weights, and learn(X, Y, keys=...) learns from examples"
            )
    return any(kind.itemsize < 8 for kind in kinds)


def answer(module: Any, X: Array) -> Array:
    """Return the outputs (n, k, d_out) of a module for sequences (n, k, d), in its own precision and on its own device.

    The module is in evaluation mode while it is asked: dropout is not part of a layer. Of a tuple the first is the output.
    """
    torch = _torch()
    first = next(module.parameters(), None)
    tokens = torch.tensor(X, dtype=torch.float64 if first is None else first.dtype)
    tokens = tokens if first is None else tokens.to(first.device)
    with torch.no_grad(), _evaluating(module):
        if not isinstance(module, torch.nn.MultiheadAttention):
            found = module(tokens)
            return _numbers(found[0] if isinstance(found, tuple) else found)
        if not module.batch_first:
            tokens = tokens.transpose(0, 1)
        found = module(tokens, tokens, tokens, need_weights=False)[0]
        return _numbers(found if module.batch_first else found.transpose(0, 1))


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Put a module and its parts into evaluation mode for a while."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _check_keys(module: Any) -> None:
    """Raise `InputError` if a `MultiheadAttention` attends to more than tokens."""
    if module.bias_k is not None or module.bias_v is not None:
        raise InputError("add_bias_kv=True appends a key that is no token; such a layer cannot be represented")
    if module.add_zero_attn:
        raise InputError("add_zero_attn=True appends a key that is no token; such a layer cannot be represented")


def _heads_that_fit(layer: Layer, E: int, rank: int, cross: bool) -> int:
    """Return the least number of heads, at least the layer's, that divides E and leaves each the rank it needs."""
    if layer.d > E or layer.outputs > E or (cross and layer.d != E):
        raise InputError(
            f"tokens of dimension {layer.d} and outputs of {layer.outputs} do not fit into embed_dim = {E}"
            + ("; tokens cannot be padded where keys are others" if cross else "")
        )
    for heads in range(layer.heads, E + 1):
        if E % heads == 0 and E // heads >= rank:
            return heads
    least = max(layer.heads * rank, layer.heads * -(-max(layer.d, layer.outputs) // layer.heads))
    raise InputError(
        f"a module of embed_dim = {E} has heads of rank {E}/num_heads, but this layer has {layer.heads} heads of rank up to"
        f" {rank}; embed_dim={least} fits, with tokens padded with zeros"
    )


def _rank(matrix: Array) -> int:
    return int(np.linalg.matrix_rank(matrix, rtol=_SINGULAR))


def _numbers(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _torch() -> Any:
    """Import torch, or say how to get it."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise InputError('this needs PyTorch: pip install "attlas[torch]"') from error
    return torch
