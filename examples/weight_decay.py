"""More data can hurt, unless the weights decay

Train an attention layer on noisy outputs by least squares. Without weight decay the test
error rises to a peak just where the layer stops being able to fit every output. A little
decay removes the peak, and the best decay comes close to the smallest error that any
learner can have.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from attlas import aim

quick = "--quick" in sys.argv  # a small run, to see what it does
points = 30 if quick else 150
channel, rho = aim.Linear(tokens=1, noise=1.0), 0.5

# %%
# Below this number of samples every output can be fitted exactly. The test error peaks
# there.

edge, peak = aim.interpolation_threshold(channel, rho)
print(
    f"every output is fitted below alpha = {edge:.3f}, where the test error is {peak:.2f}"
)
tuned = aim.best_decay(channel, edge, rho)
print(
    f"with the best decay, {tuned.value:.3f}, it is {tuned.mse:.2f}; no learner can do better than {tuned.bayes:.2f}"
)

# %%
# One convex problem is solved for each point: theory in the limit of many dimensions.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
alpha = np.unique(np.append(np.linspace(0.05, 1.5, points), edge))
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
decays = {0.003: "#D55E00", 0.03: "#E69F00", 0.1: "#009E73", 0.3: "#56B4E9"}
for decay, colour in decays.items():
    error = aim.trained_curve(channel, alpha, rho, decay)["mse"].values.ravel()
    axis.plot(alpha, error, color=colour, label=f"decay {decay:g}")
bayes = [aim.state_evolution(channel, one, rho).value for one in alpha]
axis.plot(alpha, bayes, color="#000000", linestyle="--", label="best possible")
axis.axhline(1, color="#B0B0B0", linewidth=0.8)
axis.text(1.5, 1.03, "guessing the mean", color="#555555", ha="right", fontsize=9)
axis.set(xlabel=r"samples $\alpha = n/d^2$", ylabel="test error", ylim=(0, None))
axis.legend(frameon=False)
figure.savefig("weight_decay.png", dpi=150)
