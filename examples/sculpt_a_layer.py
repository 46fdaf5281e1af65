"""Carving a layer out of its examples

Each example on which all heads attend alike confines their query-key matrices to a slab.
Enough slabs leave a body that is thin in every direction but one: from head to head.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import layers, recovery, tokens

quick = "--quick" in sys.argv  # a small run, to see what it does
n = 10_000 if quick else 40_000

# %%
# Two planted heads, and the body that their examples carve. The gap says how much flatter
# the longest direction is.

Theta, W = recovery.planted_layer(heads=2, d=6, seed=1, scale=3.0)
X = tokens.boolean(n, 2, 6, seed=2)
found = recovery.sculpt(X, layers.multi_head_attention(X, Theta, W), heads=2)
print(f"{len(found.body.slabs)} slabs of rank {found.body.rank}, gap {found.gap:.1f}")
print(f"residual of the best heads in the body: {found.residual:.2f}")

# %%
# Look at the plane through both heads and the proxy, the point that is close to every slab.
# Slabs meet it in lines.

middle, along = Theta.mean(0).ravel(), (Theta[1] - Theta[0]).ravel()
across = found.proxy.ravel() - middle
axes = np.linalg.qr(np.column_stack([along, across]))[0].T


def place(matrices):
    return (np.reshape(matrices, (-1, 36)) - middle) @ axes.T


figure, axis = plt.subplots(figsize=(6, 4.6), layout="constrained")
order = np.argsort(-found.body.weights)[:150]
for slab, level in zip(
    found.body.slabs[order].reshape(-1, 36), found.body.levels[order], strict=True
):
    normal, offset = axes @ slab, level - slab @ middle
    if np.linalg.norm(normal) > 0.05 * np.linalg.norm(slab):
        axis.axline(
            normal * offset / (normal @ normal),
            slope=-normal[0] / normal[1],
            color="#0072B2",
            alpha=0.25,
            linewidth=0.7,
        )
heads, proxy = place(Theta), place(found.proxy)
axis.plot(*heads.T, "o", color="#D55E00", markersize=10, label="planted heads")
axis.plot(
    *place(found.layer.Theta).T,
    "x",
    color="#000000",
    markersize=9,
    label="heads found in the body",
)
axis.plot(*proxy.T, "D", color="#009E73", label="proxy")
reach = 1.6 * np.abs(heads[:, 0]).max()
axis.set(
    aspect="equal",
    xlim=(-reach, reach),
    ylim=(-0.75 * reach, 0.75 * reach),
    xticks=[],
    yticks=[],
)
axis.set(xlabel="from head to head", ylabel="toward the proxy")
axis.legend(loc="upper right")
figure.savefig("sculpt_a_layer.png", dpi=150)
