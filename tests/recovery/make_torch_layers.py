"""Write assets/torch_layers.npz: weights and outputs of attention modules, computed by torch alone.

Run it again, with torch installed, if a convention is added: ``python tests/recovery/make_torch_layers.py``.
"""

from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

FILE = Path(__file__).parent / "assets" / "torch_layers.npz"


def main():
    torch.manual_seed(0)
    found = {}
    for name, options in {"plain": {"bias": False}, "biases": {}, "keys": {"kdim": 3, "vdim": 3}}.items():
        module = torch.nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64, **options).eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(0, 0.7)
        X = torch.randn(3, 4, 6, dtype=torch.float64)
        Z = torch.randn(3, 5, 3, dtype=torch.float64) if "kdim" in options else X
        padding = torch.zeros(Z.shape[:2], dtype=torch.bool)
        padding[0, -2:] = padding[2, 1] = True
        found |= {f"{name}/{key}": value.detach() for key, value in module.state_dict().items()}
        found |= {f"{name}/X": X, f"{name}/Z": Z, f"{name}/padding": padding}
        found[f"{name}/Y"] = module(X, Z, Z)[0].detach()
        found[f"{name}/Y_padded"] = module(X, Z, Z, key_padding_mask=padding)[0].detach()
        if Z is X:
            later = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
            found[f"{name}/Y_causal"] = module(X, X, X, attn_mask=later)[0].detach()
    found |= {f"gpt2/{key}": value for key, value in gpt2().items()}
    np.savez_compressed(FILE, **{key: value.numpy() for key, value in found.items()})


def gpt2(d=6, heads=3, n=3, k=4):
    """Return weights in the layout of GPT-2 (x W + b, queries, keys and values fused) and what such a block computes.

    Tokens are normalised first, as there, and attention is causal; the residual is left out.
    """
    draw = lambda *shape: 0.7 * torch.randn(*shape, dtype=torch.float64)  # noqa: E731
    parts = {"ln_weight": 1 + draw(d), "ln_bias": draw(d), "c_attn_weight": draw(d, 3 * d), "c_attn_bias": draw(3 * d)}
    parts |= {"c_proj_weight": draw(d, d), "c_proj_bias": draw(d), "X": torch.randn(n, k, d, dtype=torch.float64)}
    x = functional.layer_norm(parts["X"], (d,), parts["ln_weight"], parts["ln_bias"])
    q, key, v = (x @ parts["c_attn_weight"] + parts["c_attn_bias"]).split(d, dim=2)
    split = lambda t: t.view(n, k, heads, d // heads).transpose(1, 2)  # noqa: E731
    o = functional.scaled_dot_product_attention(split(q), split(key), split(v), is_causal=True)
    parts["Y"] = o.transpose(1, 2).reshape(n, k, d) @ parts["c_proj_weight"] + parts["c_proj_bias"]
    return parts


if __name__ == "__main__":
    main()
