"""The heads of a trained PyTorch module

Train a PyTorch attention module on a task made here, then recover its heads: by asking it,
and from examples of what it does. This one needs PyTorch: `pip install "attlas[torch]"`.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

try:
    import torch
except ModuleNotFoundError:
    sys.exit('this example needs PyTorch: pip install "attlas[torch]"')

from attlas import recovery
from attlas.numerics import stream

quick = "--quick" in sys.argv  # a small run, to see what it does
d, heads, steps = 8, 2, 300 if quick else 8000
torch.set_num_threads(1)
torch.manual_seed(0)

# %%
# The task has two parts: to find the token whose second half is most like one's own first
# half, and to average all tokens.

module = torch.nn.MultiheadAttention(d, heads, batch_first=True)
descent = torch.optim.Adam(module.parameters(), lr=3e-3)
errors = []
for _ in range(steps):
    X = torch.randn(64, 6, d)
    match = torch.softmax(2 * X[:, :, : d // 2] @ X[:, :, d // 2 :].transpose(1, 2), dim=2)
    loss = (
        (
            module(X, X, X, need_weights=False)[0]
            - match @ X
            - X.mean(1, keepdim=True).flip(2)
        )
        ** 2
    ).mean()
    descent.zero_grad()
    loss.backward()
    descent.step()
    errors.append(loss.item())
module.double().eval()
truth = recovery.from_torch(module)
print(
    f"trained: mean squared error {errors[0]:.2f} -> {np.mean(errors[-50:]):.2f}, heads of rank {truth.rank}"
)

# %%
# From questions: the module is called, its weights are not read.

asked = recovery.learn_from_queries(module, d, heads=None, bias=True)
error = recovery.parameter_error(asked, truth)
print(
    f"from {asked.certificate.queries} queries: {asked.layer.heads} heads, parameters to {error:.0e}"
)

# %%
# From examples of what it does to random tokens.

X = stream(1, "examples").standard_normal((300, 6, d))
with torch.no_grad():
    tokens = torch.tensor(X)
    Y = module(tokens, tokens, tokens, need_weights=False)[0].numpy()
found = recovery.learn(X, Y, heads, bias=True, rank=d // heads)
met = "met" if found.certificate.met else "not met"
print(
    f"from 300 examples: certificate {met}, parameters to {recovery.parameter_error(found, truth):.0e}"
)

# %%
# The query-key matrices of the module and those found by asking.

rows = {"trained": truth.canonical(), "found": asked.canonical()}
most = np.abs(rows["trained"].Theta).max()
figure, axes = plt.subplots(2, heads, figsize=(3 * heads, 6), layout="constrained")
for row, (name, layer) in zip(axes, rows.items(), strict=True):
    for i, axis in enumerate(row):
        picture = axis.imshow(layer.Theta[i], cmap="RdBu_r", vmin=-most, vmax=most)
        axis.set(title=f"head {i + 1}, {name}", xticks=[], yticks=[])
figure.colorbar(picture, ax=axes, label="entries of the query-key matrix")
figure.savefig("recover_a_trained_head.png", dpi=150)
