"""Reading the weights off a layer

A layer of attention that answers questions gives its weights away: one head after $d^2 + d$
of them, to the last digit. Examples do as well. The certificate says when to believe the
answer, and when not to.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import layers, recovery, tokens

quick = "--quick" in sys.argv  # a small run, to see what it does
d, n = (6, 500) if quick else (12, 3000)

# %%
# One head, from questions: the layer is only ever called, never opened.

head = recovery.Layer(*recovery.planted_layer(heads=1, d=d, seed=0))
probe = recovery.learn_from_queries(lambda x: head(x[None])[0, -1], d=d, heads=1)
error = recovery.parameter_error(probe, head)
print(
    f"one head from {probe.certificate.queries} questions (d² + d = {d * d + d}): parameters to {error:.0e}"
)

# %%
# Two heads, from examples. Looking for one head fails, and the certificate says so.

Theta, W = recovery.planted_layer(heads=2, d=d, seed=1)
X = tokens.boolean(n, 4, d, seed=2)
Y = layers.multi_head_attention(X, Theta, W)
for heads in (1, 2):
    found = recovery.learn(X, Y, heads=heads)
    met = "met" if found.certificate.met else "not met"
    print(
        f"{heads} of two heads from {n} examples: certificate {met}, {found.certificate.reason}"
    )
print(
    f"parameters of both heads to {recovery.parameter_error(found.canonical(), recovery.Layer(Theta, W)):.0e}"
)

# %%
# The query-key matrices of both heads, as planted and as found. Their order is a
# convention.

truth, both = recovery.Layer(Theta, W).canonical(), found.canonical()
figure, axes = plt.subplots(2, 3, figsize=(7, 4.4), layout="constrained")
most = np.abs(truth.Theta).max()
for row, planted, seen in zip(axes, truth.Theta, both.Theta, strict=True):
    for axis, matrix, name in zip(
        row,
        (planted, seen, planted - seen),
        ("planted", "found", "difference"),
        strict=True,
    ):
        picture = axis.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
        axis.set(title=name, xticks=[], yticks=[])
figure.colorbar(picture, ax=axes, label="entries of the query-key matrix")
figure.savefig("recover_a_head.png", dpi=150)
