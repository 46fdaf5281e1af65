"""A layer: what of its parameters can be known, and the canonical form of what gives the same function."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, flag, integer, real
from attlas.layers import multi_head_attention, softmax
from attlas.numerics import stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """F(X) = b + sum_i softmax(X Theta_i X^T + 1 (X u_i)^T) X W_i.

    These are the numbers that can be known. Query, key, value and output biases of a model add up to u and b: what they add
    to the logits of all keys alike drops out of the softmax, and since attention sums to one, values' biases are constants.

    Attributes
    ----------
    Theta : array of shape (m, d, d)
        Of shape (m, d, d_keys) for a layer whose keys are other tokens, of another dimension.
    W : array of shape (m, d, d_out)
    key_bias : array of shape (m, d), optional
        u_i; None is zero.
    output_bias : array of shape (d_out,), optional
        b; None is zero.
    causal : bool, default False
        Whether a token attends only to itself and to those before it.
    """

    Theta: Array
    W: Array
    key_bias: Array | None = None
    output_bias: Array | None = None
    causal: bool = False

    def __post_init__(self) -> None:
        Theta = array(self.Theta, "Theta", ("m", "d", "d"))
        m, _, d = Theta.shape
        W = array(self.W, "W", ("m", "d", "d_out"))
        if W.shape[:2] != (m, d):
            raise InputError(
                f"Theta must have shape (m, d, d) and W (m, d, d_out); got Theta {Theta.shape} and W {W.shape}"
            )
        object.__setattr__(self, "Theta", Theta)
        object.__setattr__(self, "W", W)
        if self.key_bias is not None:
            object.__setattr__(self, "key_bias", array(self.key_bias, "key_bias", ("m", "d"), (m, d)))
        if self.output_bias is not None:
            b = array(self.output_bias, "output_bias", ("d_out",), (W.shape[2],))
            object.__setattr__(self, "output_bias", b)
        object.__setattr__(self, "causal", flag(self.causal, "causal"))

    @classmethod
    def from_weights(
        cls,
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
    ) -> "Layer":
        """Return the layer of the weights of a model: see `attlas.recovery.layer_from_weights`."""
        from attlas.recovery.weights import layer_from_weights

        return layer_from_weights(Wq, Wk, Wv, Wo, bq, bk, bv, bo, heads=heads, convention=convention, causal=causal)

    @classmethod
    def from_gpt2(
        cls,
        c_attn_weight: ArrayLike,
        c_attn_bias: ArrayLike | None,
        c_proj_weight: ArrayLike,
        c_proj_bias: ArrayLike | None,
        heads: int,
    ) -> "Layer":
        """Return the causal layer of GPT-2's fused weights: see `attlas.recovery.layer_from_gpt2`."""
        from attlas.recovery.weights import layer_from_gpt2

        return layer_from_gpt2(c_attn_weight, c_attn_bias, c_proj_weight, c_proj_bias, heads=heads)

    def to_torch(self, **options: Any) -> Any:
        """Return the layer as a `torch.nn.MultiheadAttention`: see `attlas.recovery.to_torch`."""
        from attlas.recovery.torch_modules import to_torch

        return to_torch(self, **options)

    @property
    def layer(self) -> "Layer":
        """Itself, so that it can stand wherever something with a layer can."""
        return self

    @property
    def heads(self) -> int:
        """Number of heads."""
        return len(self.Theta)

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.Theta.shape[1])

    @property
    def d_keys(self) -> int:
        """Dimension of a key token, which is d unless the layer attends to tokens of another kind."""
        return int(self.Theta.shape[2])

    @property
    def outputs(self) -> int:
        """Dimension of an output."""
        return int(self.W.shape[2])

    @property
    def rank(self) -> int:
        """The largest rank of a head with its key bias, the least d_head of a model that holds it."""
        return int(max(np.linalg.matrix_rank(each, rtol=1e-10) for each in self.stacked()))

    def stacked(self) -> Array:
        """Return Theta_i with u_i as its last row, (m, d + 1, d_keys): what a token (x, 1) sees of the keys."""
        u = np.zeros((self.heads, self.d_keys)) if self.key_bias is None else self.key_bias
        return np.concatenate([self.Theta, u[:, None, :]], axis=1)

    def factors(self, rank: int | None = None) -> tuple[Array, Array]:
        """Return Q (m, d + 1, r) and K (m, d_keys, r) with (Theta_i, u_i) = Q_i K_i^T, by truncated SVD.

        The last row of Q belongs to the key bias. With `rank` below that of the heads it is the closest such layer.
        """
        r = self.rank if rank is None else integer(rank, "rank")
        U, s, V = np.linalg.svd(self.stacked(), full_matrices=False)
        r = min(r, s.shape[1])
        root = np.sqrt(s[:, None, :r])
        return U[:, :, :r] * root, V[:, :r].transpose(0, 2, 1) * root

    def __call__(self, X: ArrayLike, keys: ArrayLike | None = None, padding: ArrayLike | None = None) -> Array:
        """Return the outputs (n, k, d_out) of all tokens; `keys` and `padding` are those of `multi_head_attention`."""
        if keys is None and self.d_keys != self.d:
            raise InputError(
                f"this layer attends to tokens of dimension {self.d_keys}: give keys of shape (n, l, d_keys)"
            )
        return multi_head_attention(
            X,
            self.Theta,
            self.W,
            keys=keys,
            key_bias=self.key_bias,
            output_bias=self.output_bias,
            causal=self.causal,
            padding=padding,
        )

    def canonical(self, k: int | None = None, tol: float = 1e-8) -> "Layer":
        """Return the canonical layer of the same function: heads of equal attention merged, those without effect dropped.

        Heads are in the order of their norm |W_i|, the largest first. What is equal and what has no effect is decided on
        outputs for random tokens, to `tol` of the whole. Biases that are zero are None.

        Parameters
        ----------
        k : int, optional
            Length of the sequences, if it is always the same. At k = 2 alone, head (T, A) equals head (-T, -A) plus head
            (0, 2 A); the sign is then chosen so that the largest entry of T is positive, and a head (0, B) may be added.
        """
        if k is not None:
            integer(k, "k", least=2)
        stack, W = (self.stacked(), self.W) if k != 2 else self._one_sign()
        length = 3 if k is None else k
        X = stream(0, "canonical").standard_normal((200, length, self.d))
        Z = X if self.d_keys == self.d else stream(0, "canonical", "keys").standard_normal((200, length, self.d_keys))
        tol = real(tol, "tol", above=0)
        groups: list[tuple[Array, Array, Array]] = []  # Theta and u, attention, W
        before = 0.0
        for theta, value in zip(stack, W, strict=True):
            scores = (X @ theta[:-1]) @ Z.transpose(0, 2, 1)
            P = softmax(scores if self.key_bias is None else scores + (Z @ theta[-1])[:, None, :])
            before = float(np.hypot(before, np.linalg.norm((P @ Z) @ value)))
            for place, (first, attention, total) in enumerate(groups):
                if np.abs(P - attention).mean() < tol:
                    groups[place] = (first, attention, total + value)
                    break
            else:
                groups.append((theta, P, value))
        effects = [float(np.linalg.norm((P @ Z) @ total)) for _, P, total in groups]
        whole = max(float(np.linalg.norm(effects)), 1e-12 * before)  # what cancels leaves its rounding
        kept = [group for group, effect in zip(groups, effects, strict=True) if effect > tol * whole]
        kept.sort(key=lambda group: -float(np.linalg.norm(group[2])))
        if not kept:  # a constant
            kept = [(np.zeros((self.d + 1, self.d_keys)), np.zeros(0), np.zeros(self.W.shape[1:]))]
        found = np.array([group[0] for group in kept])
        u, b = found[:, -1], self.output_bias
        return replace(
            self,
            Theta=found[:, :-1],
            W=np.array([group[2] for group in kept]),
            key_bias=u if u.any() else None,
            output_bias=b if b is not None and b.any() else None,
        )

    def _one_sign(self) -> tuple[Array, Array]:
        """Return the heads with the sign of k = 2 chosen, and the uniform head that this leaves."""
        stack = self.stacked()
        largest = stack.reshape(self.heads, -1)
        places = np.argmax(np.abs(largest), axis=1)
        flip = largest[np.arange(self.heads), places] < 0
        sign = np.where(flip, -1.0, 1.0)[:, None, None]
        uniform = 2 * self.W[flip].sum(0)
        return (
            np.concatenate([stack * sign, np.zeros((1, *stack.shape[1:]))]),
            np.concatenate([self.W * sign, uniform[None]]),
        )
