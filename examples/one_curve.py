"""One learning curve for sequences of every length

How much more does a layer reveal when its sequences are longer? For softmax attention the
answer is exact: $T$ tokens are worth $T^2 + T - 2$ measurements, and in these units all
learning curves are the same.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import aim

quick = "--quick" in sys.argv  # a small run, to see what it does
d = 60 if quick else 150
COLOURS = dict(zip((2, 3, 5, 8), ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))

# %%
# The samples at which the layer is recovered perfectly fall steeply with the length of the
# sequences.

for tokens in COLOURS:
    print(
        f"{tokens} tokens: recovered above alpha = {aim.recovery_threshold(aim.Softmax(tokens), rho=0.5):.4f}"
    )

# %%
# Left, as measured; right, in units of $T^2 + T - 2$. Points are message passing, an
# algorithm that sees only the outputs.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, (plain, scaled) = plt.subplots(
    1, 2, figsize=(8.4, 3.6), sharey=True, layout="constrained"
)
for tokens, colour in COLOURS.items():
    channel, worth = aim.Softmax(tokens), tokens**2 + tokens - 2
    samples = np.linspace(0.02, 1, 60)
    error = aim.curve(channel, samples / worth, rho=0.5)["mse"].values.ravel()
    plain.plot(samples / worth, error, color=colour, label=f"T = {tokens}")
    scaled.plot(samples, error, color=colour)
    for sample in (0.25, 0.5):
        task = aim.sample(channel, d, sample / worth, rho=0.5, seed=1)
        found = aim.message_passing(
            task.X, task.y, channel, 0.5, S=task.S, tol=1e-4, throw=False
        ).mse[-1]
        plain.plot(sample / worth, found, "o", color=colour, markersize=4)
        scaled.plot(sample, found, "o", color=colour, markersize=4)
plain.set(
    xlabel=r"samples $\alpha = n/d^2$",
    ylabel="error of the best learner",
    xlim=(0, 0.25),
    ylim=(0, 1),
)
scaled.set(
    xlabel=r"samples in units of the measurements, $\alpha\,(T^2 + T - 2)$", xlim=(0, 1)
)
plain.legend(frameon=False)
figure.savefig("one_curve.png", dpi=150)
